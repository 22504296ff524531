"""A guarantee does not change under its releases; trees from a day on, and products of one budget."""

from dataclasses import fields, replace
from fractions import Fraction

import pytest

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Key
from optstream.privacy import PrivacyModel, StepSpend


def test_terms_come_back_and_an_identical_call_changes_nothing(ledger, kit):
    terms = kit.terms("other", epsilon="1/3", grant="others", document='{"note": 1}')
    assert ledger.terms("other") is None
    ledger.enrol(terms, kit.now)
    assert ledger.terms("other") == terms
    head = ledger.head("other")
    ledger.enrol(terms, kit.now)
    assert ledger.head("other") == head


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": "2"}, "epsilon"),
        ({"window_length": 5}, "window_length"),
        ({"hierarchy": "another"}, "hierarchy"),
        ({"calibration": "paper"}, "calibration"),
        ({"grant": "fresh"}, "population"),
    ],
)
def test_a_guarantee_may_change_only_before_the_first_release(ledger, reserve, kit, change, name):
    ledger.enrol(kit.terms(**change), kit.now)
    assert ledger.terms("load") == kit.terms(**change)
    ledger.enrol(kit.terms(), kit.now)
    reserve()
    with pytest.raises(LedgerError, match=f"made under another {name}: "):
        ledger.enrol(kit.terms(**change), kit.now)
    assert ledger.terms("load") == kit.terms()
    assert ledger.verify() == []


ANOTHER = [
    {"epsilon": Fraction(2)},
    {"alpha": Fraction(3)},
    {"window_length": 5},
    {"unit": "roaming", "leaves_per_step": 2},
    {"resolution": Fraction(1, 2)},
    {"delta": Fraction(1, 10**6)},
    {"hierarchy_hash": "another", "trees": ()},
    {"grant": "others"},
    {"calendar": "60 min"},
    {"budget_alpha": Fraction(1), "alpha": Fraction(3)},
]


@pytest.mark.parametrize("change", ANOTHER, ids=lambda change: next(iter(change)))
def test_an_amendment_is_proposed_exactly_where_it_is_taken(ledger, reserve, kit, change):
    """A remedy that another command refuses is no remedy."""
    known, names = kit.terms(), {field.name for field in fields(kit.terms())}
    own = {name: value for name, value in change.items() if name in names}
    model = replace(known.model, **{name: value for name, value in change.items() if name not in names})
    wanted = replace(known, **own, model=model)
    ledger.enrol(known, kit.now)
    reserve()
    with pytest.raises(LedgerError, match="made under another ") as refused:
        ledger.enrol(wanted, kit.now)
    if "`optstream ledger amend`" in str(refused.value):
        ledger.amend(wanted, "another", kit.now)
        ledger.enrol(wanted, kit.now)
    else:
        with pytest.raises(LedgerError, match="cannot be amended"):
            ledger.amend(wanted, "another", kit.now)
    assert ledger.verify() == []


def test_the_document_may_change_at_any_time_and_is_recorded(ledger, reserve, kit):
    reserve()
    head = ledger.head("load")
    ledger.enrol(kit.terms(document='{"code": "2"}'), kit.now)
    assert ledger.terms("load").document == '{"code": "2"}'
    assert ledger.head("load") != head
    assert ledger.verify() == []


def test_terms_are_checked(kit):
    with pytest.raises(ParameterError, match="JSON"):
        kit.terms(document="{")
    with pytest.raises(ParameterError, match="stream of StreamTerms"):
        kit.terms("")


def test_unknown_names_are_refused(ledger):
    with pytest.raises(LedgerError, match="enrol"):
        ledger.head("nobody")
    with pytest.raises(LedgerError, match="enrol"):
        ledger.worst("nobody")
    assert ledger.releases("nobody") == ()


OLDEST = (None, "tree")


def dated(kit, *later, **more):
    """Terms whose trees are the oldest and these, each (first step, hash)."""
    entries = (OLDEST, *later)
    return replace(kit.terms(**more), hierarchy_hash=entries[-1][1], trees=entries)


def test_a_tree_from_a_step_on_that_nobody_reserved_is_an_event_of_its_own(ledger, reserve, kit):
    reserve()  # steps 0 to 3
    later = dated(kit, (4, "split"))
    ledger.enrol(later, kit.now)
    assert ledger.terms("load") == later
    assert [one.kind for one in ledger.events_of("load")][-1] == "hierarchy"
    assert ledger.guarantee_number("load") == 0
    again = dated(kit, (4, "split"), (8, "merged"))
    ledger.enrol(again, kit.now)
    ledger.enrol(again, kit.now)
    assert [one.kind for one in ledger.events_of("load")].count("hierarchy") == 2
    assert ledger.verify() == []


@pytest.mark.parametrize("later", [((3, "split"),), ((0, "split"), (8, "merged")), ((-4, "split"),)])
def test_a_tree_of_a_step_that_was_reserved_takes_an_amendment(ledger, reserve, kit, later):
    reserve()
    before = ledger.head("load")
    with pytest.raises(LedgerError, match=r"must begin after .*, the last period that was reserved"):
        ledger.enrol(dated(kit, *later), kit.now)
    assert ledger.head("load") == before
    ledger.void(Key("load", "day 0"), "given up", kit.now)
    ledger.amend(dated(kit, *later), "another hierarchy", kit.now)
    assert ledger.guarantee_number("load") == 1
    assert ledger.verify() == []


def test_what_has_not_begun_may_be_taken_back_and_what_has_may_not(ledger, reserve, kit):
    reserve()
    ledger.enrol(dated(kit, (4, "split"), (12, "merged")), kit.now)
    ledger.enrol(dated(kit, (4, "split"), (16, "moved")), kit.now)
    reserve(period="day 1", plan=kit.plan(4, "1/4"))
    with pytest.raises(LedgerError, match="must begin after"):
        ledger.enrol(kit.terms(), kit.now)
    ledger.enrol(dated(kit, (4, "split")), kit.now)
    assert ledger.verify() == []


def test_a_run_that_planned_under_another_list_reserves_nothing(ledger, reserve, kit):
    reserve()
    ledger.enrol(dated(kit, (4, "split")), kit.now)
    with pytest.raises(LedgerError, match="hierarchy_hash of stream 'load' changed while this run was under"):
        reserve(period="day 1", plan=kit.plan(4, "1/4"), terms=kit.terms())


def test_other_streams_of_the_budget_keep_their_own_lists(ledger, reserve, kit):
    second = dated(kit, (4, "split"), stream="second")
    ledger.enrol(second, kit.now)
    reserve()
    ledger.void(Key("load", "day 0"), "given up", kit.now)
    ledger.amend(kit.terms(epsilon="2"), "more", kit.now)
    assert ledger.terms("second").trees == second.trees
    assert ledger.verify() == []


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        (((0, "tree"),), "None as the first step of the oldest tree"),
        ((OLDEST, (True, "split")), "integers after it"),
        ((OLDEST, (8, "split"), (8, "merged")), "steps that rise"),
        ((OLDEST, (8, "split")), "end with hierarchy_hash"),
    ],
)
def test_what_is_no_list_of_trees_is_refused(kit, entries, rule):
    name = "other" if "hierarchy_hash" in rule else entries[-1][1]
    with pytest.raises(ParameterError, match=rule):
        replace(kit.terms(), hierarchy_hash=name, trees=entries)


def product(kit, alpha="3", budget_alpha="1", stream="gas", **more):
    """Terms of a stream whose readings move by another alpha than the budget's."""
    terms = kit.terms(stream, **more)
    model = PrivacyModel(terms.model.epsilon, terms.model.window_length, alpha, resolution="1")
    return replace(terms, model=model, budget_alpha=None if budget_alpha is None else Fraction(budget_alpha))


def plan_of(alpha_units, scale, first_step=0, n_steps=4):
    """A measurement a step, with discrete Laplace noise of this scale."""
    ones = (Fraction(1),) * n_steps
    return (StepSpend(0, "samples", first_step, ones, Fraction(scale), alpha_units),)


def test_a_plan_is_priced_by_the_alpha_of_its_own_stream(ledger, reserve, kit):
    gas = product(kit)
    ledger.enrol(gas, kit.now)
    with pytest.raises(LedgerError, match="priced for another alpha"):
        reserve("day 0", plan_of(1, 24), stream="gas", terms=gas)
    reserve("day 0", plan_of(3, 24), stream="gas", terms=gas)


@pytest.mark.parametrize("amended", ["load", "gas"])
def test_an_amendment_moves_the_alpha_of_every_product_by_the_same_factor(ledger, publish, kit, amended):
    ledger.enrol(product(kit), kit.now)
    publish("day 0", plan_of(1, 16))
    publish("day 0", plan_of(3, 48), stream="gas")
    assert ledger.worst("customers").epsilon == Fraction(1, 2)
    load = kit.terms()
    twice = replace(load, model=replace(load.model, alpha=Fraction(2)))
    gas = product(kit, alpha="6", budget_alpha="2")
    ledger.amend({"load": twice, "gas": gas}[amended], "larger changes", kit.now)
    assert ledger.terms("load") == twice
    assert ledger.terms("gas") == gas
    # a change twice as large in each is two neighbours of before
    assert ledger.worst("customers").epsilon == 1
    assert ledger.verify() == []


def test_guarantees_are_told_by_the_streams_own_alpha(ledger, publish, kit):
    """Cards and pages say what they cover: the budget's alpha is of other readings."""
    ledger.enrol(product(kit), kit.now)
    publish("day 0", plan_of(3, 48), stream="gas")
    ledger.amend(product(kit, alpha="6", budget_alpha="2"), "larger changes", kit.now)
    alphas = {name: [one.alpha for one in ledger.guarantees(name).values()] for name in ("load", "gas")}
    assert alphas == {"load": [1, 2], "gas": [3, 6]}
    assert {one.resolution for one in ledger.guarantees("gas").values()} == {1}
    assert ledger.guarantees("nobody") == {}


@pytest.mark.parametrize(
    "terms", [{"alpha": "4"}, {"alpha": "3", "budget_alpha": "2"}, {"budget_alpha": None}]
)
def test_a_product_with_releases_keeps_its_alpha_for_one_of_the_budget(ledger, publish, kit, terms):
    """Its spends would be priced by a factor that is not theirs."""
    ledger.enrol(product(kit), kit.now)
    publish("day 0", plan_of(3, 48), stream="gas")
    other = product(kit, **terms)
    with pytest.raises(LedgerError, match="under another"):
        ledger.enrol(other, kit.now)
    with pytest.raises(LedgerError, match="by the same factor"):
        ledger.amend(other, "another alpha", kit.now)
    assert ledger.terms("gas") == product(kit)


def test_the_budgets_alpha_must_agree(ledger, publish, kit):
    publish("day 0", plan_of(1, 16))
    with pytest.raises(LedgerError, match="shared, and has another alpha than stream 'gas'"):
        ledger.enrol(product(kit, budget_alpha="2"), kit.now)
    with pytest.raises(ParameterError, match="greater than 0"):
        product(kit, budget_alpha="0")


def shared(kit, stream, share):
    """Terms of a stream whose share of epsilon was chosen, not written."""
    return replace(kit.terms(stream), stream_share=None if share is None else Fraction(share))


def test_chosen_shares_are_recorded_and_never_more_than_all(ledger, kit):
    ledger.enrol(shared(kit, "load", "5/8"), kit.now)
    assert ledger.terms("load").stream_share == Fraction(5, 8)
    with pytest.raises(LedgerError, match=r"together 9/8, more than all; .* shared_with"):
        ledger.enrol(shared(kit, "gas", "1/2"), kit.now)
    ledger.enrol(shared(kit, "gas", "3/8"), kit.now)
    # until there are releases it follows the public facts, within what the other one leaves
    ledger.enrol(shared(kit, "gas", "1/4"), kit.now)
    with pytest.raises(LedgerError, match="more than all"):
        ledger.enrol(shared(kit, "load", "7/8"), kit.now)
    assert ledger.verify() == []


def test_a_chosen_share_does_not_move_once_there_are_releases(ledger, publish, reserve, kit):
    """Refused whether it grew or shrank, with the number to write; and a number of one's own is taken."""
    load = shared(kit, "load", "1/2")
    ledger.enrol(load, kit.now)
    publish("day 0", plan_of(1, 8), terms=load)
    for moved in ("3/8", "5/8"):
        with pytest.raises(LedgerError, match=r'plan with 1/2 of epsilon, .* stream_share = "1/2"'):
            ledger.enrol(shared(kit, "load", moved), kit.now)
    assert ledger.terms("load").stream_share == Fraction(1, 2)
    ledger.enrol(load, kit.now)
    number = shared(kit, "load", None)
    assert load.differing(number) == []  # what was told to be written is no change to declare
    with pytest.raises(LedgerError, match="nothing to amend"):
        ledger.amend(number, "as told", kit.now)
    ledger.enrol(number, kit.now)
    assert ledger.terms("load").stream_share is None
    # and the share is given back, as when a stream has ended
    ledger.enrol(shared(kit, "gas", "1"), kit.now)
    with pytest.raises(LedgerError, match=r"plan with a number of its own.* keep it, or declare"):
        ledger.enrol(load, kit.now)
    assert ledger.verify() == []


def test_a_chosen_share_that_a_change_of_the_tree_would_move_is_told_with_the_number_to_write(
    ledger, publish, kit
):
    load = shared(kit, "load", "1/2")
    ledger.enrol(load, kit.now)
    publish("day 0", plan_of(1, 8), terms=load)
    split = {"hierarchy": "finer", "trees": ((None, "tree"), (96, "finer"))}
    with pytest.raises(LedgerError, match=r'stream_share = "1/2"'):
        ledger.enrol(replace(kit.terms(**split), stream_share=Fraction(3, 8)), kit.now)
    ledger.enrol(replace(kit.terms(**split), stream_share=Fraction(1, 2)), kit.now)
    assert ledger.verify() == []

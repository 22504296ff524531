"""A guarantee changes under its releases by amendment alone; trees from a day on; products of one budget."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from fractions import Fraction
from random import Random
from threading import Event
from time import sleep

import pytest

from optstream.errors import BudgetError, LedgerError, ParameterError
from optstream.ledger import Key, ReleaseState, open_ledger
from optstream.ledger import terms as terms_module
from tests.optstream.ledger.brute_force import Charged, broken

DAY = Key("load", "day 0")


def changed(known, **change):
    """The same terms with some fields, of theirs or of their model, changed."""
    own = {field.name for field in fields(known)} & change.keys()
    model = replace(known.model, **{name: value for name, value in change.items() if name not in own})
    return replace(known, **{name: change[name] for name in own}, model=model)


ANOTHER = [
    {"epsilon": Fraction(2)},
    {"alpha": Fraction(3)},
    {"window_length": 5},
    {"unit": "roaming", "leaves_per_step": 2},
    {"resolution": Fraction(1, 2)},
    {"delta": Fraction(1, 10**6)},
    {"hierarchy_hash": "another", "trees": ()},
    {"calibration": "paper"},
    {"grant": "others"},
    {"calendar": "60 min"},
    {"budget_alpha": Fraction(1), "alpha": Fraction(3)},
]


@pytest.mark.parametrize("change", ANOTHER, ids=lambda change: next(iter(change)))
def test_a_guarantee_changes_before_the_first_release_or_as_the_refusal_says(ledger, reserve, kit, change):
    """A remedy that another command refuses is no remedy."""
    known = kit.terms()
    wanted = changed(known, **change)
    for terms in (wanted, known):
        ledger.enrol(terms, kit.now)
        assert ledger.terms("load") == terms
    events = ledger.events_of("load")
    ledger.enrol(known, kit.now)
    assert ledger.events_of("load") == events, "an identical call changes nothing"
    reserve()
    with pytest.raises(LedgerError, match="made under another ") as refused:
        ledger.enrol(wanted, kit.now)
    assert ledger.terms("load") == known
    if "`optstream ledger amend`" in str(refused.value):
        ledger.amend(wanted, "another", kit.now)
        assert ledger.terms("load") == wanted
        ledger.enrol(wanted, kit.now)
        with pytest.raises(LedgerError, match="nothing to amend"):
            ledger.amend(wanted, "again", kit.now)
    else:
        with pytest.raises(LedgerError, match="cannot be amended"):
            ledger.amend(wanted, "another", kit.now)


OLDEST = (None, "tree")


def dated(kit, *later, **more):
    """Terms whose trees are the oldest and these, each (first step, hash)."""
    entries = (OLDEST, *later)
    return replace(kit.terms(**more), hierarchy_hash=entries[-1][1], trees=entries)


def test_a_tree_from_a_step_on_that_nobody_reserved_is_an_event_of_its_own(ledger, reserve, kit):
    reserve()  # steps 0 to 3
    later, again = dated(kit, (4, "split")), dated(kit, (4, "split"), (8, "merged"))
    for terms in (later, again, again):
        ledger.enrol(terms, kit.now)
        assert ledger.terms("load") == terms
    assert [one.kind for one in ledger.events_of("load")].count("hierarchy") == 2
    assert ledger.guarantee_number("load") == 0
    with pytest.raises(LedgerError, match="hierarchy_hash of stream 'load' changed while this run was under"):
        reserve("day 1", kit.plan(4, "1/4"), terms=kit.terms())


@pytest.mark.parametrize("later", [((3, "split"),), ((0, "split"), (8, "merged")), ((-4, "split"),)])
def test_a_tree_of_a_step_that_was_reserved_takes_an_amendment(ledger, reserve, kit, later):
    reserve()
    before = ledger.head("load")
    with pytest.raises(LedgerError, match=r"must begin after .*, the last period that was reserved"):
        ledger.enrol(dated(kit, *later), kit.now)
    assert ledger.head("load") == before
    ledger.void(DAY, "given up", kit.now)
    ledger.amend(dated(kit, *later), "another hierarchy", kit.now)
    assert ledger.guarantee_number("load") == 1


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"stream": ""}, "stream of StreamTerms"),
        ({"document": "{"}, "JSON"),
        ({"budget_alpha": Fraction(0)}, "greater than 0"),
        ({"trees": ((0, "tree"),)}, "None as the first step of the oldest tree"),
        ({"trees": (OLDEST, (True, "split")), "hierarchy_hash": "split"}, "integers after it"),
        ({"trees": (OLDEST, (8, "a"), (8, "b")), "hierarchy_hash": "b"}, "steps that rise"),
        ({"trees": (OLDEST, (8, "split")), "hierarchy_hash": "other"}, "end with hierarchy_hash"),
    ],
)
def test_terms_are_checked(kit, change, rule):
    with pytest.raises(ParameterError, match=rule):
        replace(kit.terms(), **change)


def product(kit, alpha=3, budget_alpha=1, **more):
    """Terms of a stream, "gas", with two trees, whose readings move by another alpha than the budget's."""
    budget_alpha = None if budget_alpha is None else Fraction(budget_alpha)
    gas = dated(kit, (400, "split"), stream="gas", **more)
    return changed(gas, alpha=Fraction(alpha), budget_alpha=budget_alpha)


@pytest.mark.parametrize("amended", ["load", "gas"])
def test_an_amendment_moves_the_alpha_of_every_product_alike(ledger, publish, reserve, kit, amended):
    with pytest.raises(LedgerError, match="shared, and has another alpha than stream 'gas'"):
        ledger.enrol(product(kit, budget_alpha=2), kit.now)
    ledger.enrol(product(kit), kit.now)
    with pytest.raises(LedgerError, match="priced for another alpha"):
        reserve("day 0", kit.plan(0, "1/24"), stream="gas")
    publish("day 0", kit.plan(0, "1/16"))
    publish("day 0", kit.plan(0, "1/16", alpha_units=3), stream="gas")
    assert ledger.worst("customers").epsilon == Fraction(1, 2)
    twice, gas = changed(kit.terms(), alpha=Fraction(2)), product(kit, 6, 2)
    ledger.amend({"load": twice, "gas": gas}[amended], "larger changes", kit.now)
    assert [ledger.terms("load"), ledger.terms("gas")] == [twice, gas]
    # a change twice as large in each is two neighbours of before
    assert ledger.worst("customers").epsilon == 1
    # cards and pages say what they cover: the budget's alpha is of other readings
    alphas = {name: [one.alpha for one in ledger.guarantees(name).values()] for name in ("load", "gas")}
    assert alphas == {"load": [1, 2], "gas": [3, 6]}


@pytest.mark.parametrize("terms", [{"alpha": 4}, {"alpha": 3, "budget_alpha": 2}, {"budget_alpha": None}])
def test_a_product_with_releases_keeps_its_alpha_for_one_of_the_budget(ledger, publish, kit, terms):
    """Its spends would be priced by a factor that is not theirs."""
    ledger.enrol(product(kit), kit.now)
    publish("day 0", kit.plan(0, "1/16", alpha_units=3), stream="gas")
    other = product(kit, **terms)
    with pytest.raises(LedgerError, match="under another"):
        ledger.enrol(other, kit.now)
    with pytest.raises(LedgerError, match="by the same factor"):
        ledger.amend(other, "another alpha", kit.now)
    assert ledger.terms("gas") == product(kit)


def test_a_chosen_share_does_not_move_once_there_are_releases(ledger, publish, kit):
    """Refused whether it grew or shrank, with the number to write; and a number of one's own is taken."""
    load = kit.terms(stream_share=Fraction(1, 2))
    ledger.enrol(load, kit.now)
    with pytest.raises(LedgerError, match=r"together 9/8, more than all; .* shared_with"):
        ledger.enrol(kit.terms("gas", stream_share=Fraction(5, 8)), kit.now)
    publish("day 0", kit.plan(0, "1/8"), terms=load)
    split = {"hierarchy_hash": "finer", "trees": ((None, "tree"), (96, "finer"))}
    for share, others in (("3/8", {}), ("5/8", {}), ("3/8", split)):
        terms = replace(load, stream_share=Fraction(share), **others)
        with pytest.raises(LedgerError, match=r'plan with 1/2 of epsilon, .* stream_share = "1/2"'):
            ledger.enrol(terms, kit.now)
    assert ledger.terms("load").stream_share == Fraction(1, 2)
    number = kit.terms()
    assert load.differing(number) == []  # the number that the message names is no change to declare
    with pytest.raises(LedgerError, match="nothing to amend"):
        ledger.amend(number, "on purpose", kit.now)
    ledger.enrol(number, kit.now)
    assert ledger.terms("load").stream_share is None
    # and the share is given back, as when a stream has ended
    ledger.enrol(kit.terms("gas", stream_share=Fraction(1)), kit.now)
    with pytest.raises(LedgerError, match=r"plan with a number of its own.* keep it, or declare"):
        ledger.enrol(load, kit.now)


def test_verify_holds_each_guarantee_for_what_is_planned_under_it(ledger, publish, reserve, kit, let_through):
    publish("day 0", kit.plan(0, "1/4"))
    ledger.amend(kit.terms(epsilon="1/2"), "less from now on", kit.now)
    reserve("far", kit.plan(8, "1/8"))
    assert ledger.verify() == []
    reserve("near it", kit.plan(8, "1/8"))
    assert any("costs 1, more than 1/2" in problem for problem in ledger.verify())


def test_a_plan_from_before_an_amendment_is_made_again(ledger, reserve, drawn, kit):
    held = reserve("day 0", kit.plan(0, "1/8"))
    ledger.amend(changed(kit.terms(), alpha=Fraction(2)), "larger changes", kit.now)
    with pytest.raises(LedgerError, match="amended since"):
        ledger.begin_draw(held, kit.now)
    drawn("day 0", kit.plan(0, "1/8", alpha_units=2))
    # charged once, by its own guarantee
    assert ledger.window_spent("customers", range(0, 4)).epsilon == Fraction(1, 2)


@pytest.mark.parametrize("until", ["draw begun", "drawn"])
def test_what_is_drawn_is_published_before_its_guarantee_changes(ledger, reserve, kit, until):
    held = reserve("day 0", kit.plan(0, "1/8"))
    ledger.begin_draw(held, kit.now)
    if until == "drawn":
        ledger.record_drawn(held, "measured", kit.plan(0, "1/8"), kit.now)
    head = ledger.head("load")
    # a stream of the same budget that lacks the day learns which stream has it
    ledger.enrol(kit.terms("second"), kit.now)
    for stream in ("load", "second"):
        with pytest.raises(LedgerError, match="day 0 of stream 'load' is drawn and not published"):
            ledger.amend(kit.terms(stream, window_length=1), "shorter windows", kit.now)
    assert ledger.head("load") == head
    ledger.withdraw(DAY, "given up", kit.now)
    ledger.amend(kit.terms(window_length=1), "shorter windows", kit.now)


@pytest.mark.nightly
def test_an_amendment_does_not_wait_for_a_stream_that_waits_for_it(postgresql_url, kit, monkeypatch):
    """Each would hold what the other needs, and PostgreSQL would undo one of them."""
    ledger = open_ledger(postgresql_url)
    for name in ("load", "second"):
        ledger.enrol(kit.terms(name), kit.now)
    ledger.reserve(DAY, kit.plan(0, "1/8"), "night", kit.now, kit.lease)
    inside, check = Event(), terms_module.refuse_more_than_all

    def another_comes(*arguments):
        inside.set()
        sleep(0.5)  # until it waits for the privacy budget
        check(*arguments)

    monkeypatch.setattr(terms_module, "refuse_more_than_all", another_comes)

    def reserve_meanwhile():
        assert inside.wait(60)
        return ledger.reserve(Key("second", "day 4"), kit.plan(16, "1/8"), "night", kit.now, kit.lease)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(reserve_meanwhile)
        ledger.amend(kit.terms(epsilon="2"), "agreed with the board", kit.now)
        assert other.result(60).fencing_token == 1
    assert ledger.verify() == []
    ledger.close()


# Noise that others know.


def test_compromised_noise_has_lost_everything_permanently(ledger, publish, reserve, kit):
    publish("day 0", kit.plan(0, "1/8"))
    publish("far", kit.plan(100, "1/8"))
    near, free = reserve("near", kit.plan(6, "1/8")), reserve("free", kit.plan(40, "1/8"))
    for reason in ("the sampler was seeded", "again"):
        ledger.compromise(DAY, reason, kit.now)
    assert ledger.find(DAY).compromised == "the sampler was seeded"
    assert ledger.worst("customers").epsilon == math.inf
    assert ledger.window_spent("customers", range(6, 7)).epsilon == math.inf
    assert ledger.window_spent("customers", range(7, 8)).epsilon == Fraction(1, 2)
    assert ledger.window_spent("customers", range(100, 101)).epsilon == Fraction(1, 2)
    with pytest.raises(BudgetError, match="noise in it was compromised"):
        reserve("day 1", kit.plan(6, "1/1000"))
    reserve("day 2", kit.plan(7, "1/1000"))
    with pytest.raises(BudgetError, match=r"was compromised after.*`optstream withdraw --date near --reason"):
        ledger.begin_draw(near, kit.now)
    assert not ledger.find(near.key).drawing
    ledger.begin_draw(free, kit.now)


@pytest.mark.parametrize("charge", ["1/4", "1/8"])
def test_a_day_whose_draw_died_and_is_compromised_is_refused_with_the_command(ledger, reserve, kit, charge):
    """Until then each night, under the same plan as under another."""
    ledger.begin_draw(reserve(owner="first"), kit.now)
    reserve(owner="second", now=kit.now + kit.lease)  # which dies before its draw
    ledger.compromise(DAY, "stolen", kit.now)
    third = {"owner": "third", "now": kit.now + 2 * kit.lease}
    command = r"compromised \(stolen\).*`optstream withdraw --date day 0 --reason"
    with pytest.raises(BudgetError, match=command):
        reserve(plan=kit.plan(0, charge), **third)
    ledger.withdraw(DAY, "stolen", third["now"])
    assert ledger.find(DAY).state is ReleaseState.VOID


def test_what_is_not_drawn_after_amendments_is_as_brute_force_finds(ledger, publish, reserve, kit):
    """What the ledger refuses to reserve near known noise it also refuses to draw, and nothing else."""
    refused = []
    for number in range(20):
        random, stream = Random(number), f"load {number}"
        chosen = [kit.terms(stream, f"people {number}", window_length=length) for length in (1, 2, 6, 12)]
        guarantees, charged = [random.choice(chosen)], {}
        ledger.enrol(guarantees[0], kit.now)
        places = random.sample(range(6), 4)
        for place in places:
            wanted = random.choice(chosen)
            if random.random() < 0.5 and wanted != guarantees[-1]:
                guarantees.append(wanted)
                ledger.amend(wanted, "another guarantee", kit.now)
            charged[place] = Charged(kit.plan(4 * place, "1/100"), len(guarantees) - 1)
            take = publish if place != places[-1] else reserve
            held = take(f"day {place}", charged[place].spends, stream=stream)
        known = random.choice(places[:-1])
        ledger.compromise(Key(stream, f"day {known}"), "stolen", kit.now)
        charged[known] = replace(charged[known], known=True)
        models, newest = [one.model for one in guarantees], charged[places[-1]]
        try:
            ledger.begin_draw(held, kit.now)
            refused.append(False)
        except BudgetError:
            refused.append(True)
        assert refused[-1] == any(broken(models, list(charged.values()), newest)), number
    assert sum(refused) in range(5, 15)

"""Streams of one privacy budget that measure other quantities: each has an alpha of its own (Lemma 12a)."""

from dataclasses import replace
from fractions import Fraction

import pytest

from optstream.errors import LedgerError, ParameterError
from optstream.privacy import PrivacyModel, StepSpend


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

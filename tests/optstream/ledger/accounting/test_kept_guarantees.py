"""Days that were released under a guarantee keep it, whatever is released beside them under another."""

from fractions import Fraction

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import StreamTerms
from optstream.ledger.accounting import covers
from optstream.mechanisms import Hierarchical, Laplace
from optstream.privacy import PrivacyModel, StepSpend
from optstream.stream import AggregationTree

TREE = AggregationTree.from_parents({"country": None, "a": "country", "b": "country", "c": "country"})


def terms_of(model, stream="load"):
    return StreamTerms(stream, "people", model, "tree", "30 min")


def plan_of(model, first_step, n_steps=4):
    """A whole day of a real mechanism, which costs its model's epsilon in any window."""
    return Hierarchical(Laplace(model), TREE, ["1/2", "1/2"]).plan(n_steps, first_step)


BASE = {"epsilon": "1", "window_length": 4, "alpha": "1"}

WEAKER = {
    "a smaller alpha": ({"alpha": "10"}, {"alpha": "1"}),
    "a shorter window": ({"window_length": 8}, {"window_length": 4}),
    "a larger epsilon": ({}, {"epsilon": "2"}),
    "fewer leaves a step": (
        {"unit": "roaming", "leaves_per_step": 3}, {"unit": "roaming", "leaves_per_step": 1}
    ),
    "another unit": ({"unit": "roaming", "leaves_per_step": 3}, {"unit": "customer"}),
    "everything at once": (
        {"alpha": "10", "window_length": 8}, {"alpha": "1", "window_length": 4, "epsilon": "3"}
    ),
}  # fmt: skip
"""What was promised first, and what is promised after an amendment, which asks for less noise."""


def models(name):
    return tuple(PrivacyModel(**{**BASE, **change}, resolution="1") for change in WEAKER[name])


@pytest.fixture
def amended(ledger, publish, kit):
    """Release day 0 under one guarantee, and put another in force; returns both."""

    def call(old, new):
        ledger.enrol(terms_of(old), kit.now)
        publish("day 0", plan_of(old, 0, old.window_length))
        ledger.amend(terms_of(new), "another guarantee", kit.now)
        return old, new

    return call


@pytest.fixture(params=sorted(WEAKER))
def after(request, amended):
    return amended(*models(request.param))


def test_a_day_beside_one_of_an_earlier_guarantee_waits_for_its_windows(after, ledger, reserve, publish):
    old, new = after
    free = 2 * old.window_length - 1
    assert ledger.worst("people").epsilon <= 1
    with pytest.raises(BudgetError) as refused:
        reserve("day 1", plan_of(new, old.window_length))
    said = str(refused.value)
    assert "by privacy guarantee 0 of privacy budget 'people' (epsilon 1," in said
    assert f"window {old.window_length}, alpha {old.alpha})" in said
    assert f"begins at step {free} or later" in said
    publish("day 2", plan_of(new, free))
    assert ledger.verify() == []


def test_verify_names_the_window_that_an_earlier_version_let_through(after, ledger, reserve, let_through):
    """What the code before did: the plan was priced by the guarantee in force alone."""
    old, new = after
    reserve("day 1", plan_of(new, old.window_length))
    assert any("which privacy guarantee 0 allows" in problem for problem in ledger.verify())


def test_what_would_be_lost_is_told_without_reserving(after, ledger):
    old, new = after
    beside, later = plan_of(new, old.window_length), plan_of(new, 2 * old.window_length - 1)
    head = ledger.head("load")
    judged = ledger.judge_plan("people", beside)
    assert [one.number for one in judged] == [1, 0]
    assert [one.is_broken for one in judged] == [False, True]
    assert not any(one.is_broken for one in ledger.judge_plan("people", later))
    assert ledger.head("load") == head
    # and as it would be under a guarantee that nobody has declared yet
    third = PrivacyModel("1", 1, "1", resolution="1")
    assert [one.number for one in ledger.judge_plan("people", beside, third)] == [2, 0]


def test_a_draw_is_held_to_its_plan_by_every_guarantee(amended, drawn):
    """Windows of now have four steps, of the first guarantee one: an outcome may fit those of now only."""
    amended(PrivacyModel("1", 1, "1", resolution="1"), PrivacyModel("1", 4, "1", resolution="1"))
    plan, outcome = (
        StepSpend(0, "sums", 4, weights, Fraction(4), 1) for weights in ((1, 1, 1, 1), (0, 2, 0, 0))
    )
    assert covers([plan], [outcome], 4)
    with pytest.raises(LedgerError, match="more than its plan"):
        drawn("day 1", [plan], outcome=[outcome])

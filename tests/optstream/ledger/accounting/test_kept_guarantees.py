"""Days that were released under a guarantee keep it, whatever is released beside them under another."""

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import StreamTerms
from optstream.ledger.accounting.spends import covers
from optstream.mechanisms import Hierarchical, Laplace
from optstream.privacy import PrivacyModel, StepSpend
from optstream.stream import AggregationTree

TREE = AggregationTree.from_parents({"country": None, "a": "country", "b": "country", "c": "country"})


def terms_of(model, stream="load"):
    return StreamTerms(stream, "people", model, "tree", "strict", "30 min")


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


@dataclass
class Amended:
    """A ledger on which day 0 was released under one guarantee, and another is in force."""

    ledger: object
    kit: object
    old: PrivacyModel
    new: PrivacyModel

    def reserve(self, period, plan, owner="night", stream="load"):
        kit = self.kit
        return self.ledger.reserve(stream, period, 0, plan, owner, kit.now, kit.lease)

    def draw(self, period, plan, stream="load"):
        held = self.reserve(period, plan, stream=stream)
        self.ledger.begin_draw(held, self.kit.now)
        self.ledger.record_drawn(held, "measured", plan, self.kit.now)
        self.ledger.record_staged(stream, period, 0, "staged", "release-1.parquet", self.kit.now)
        self.ledger.record_published(stream, period, 0, self.kit.now)


def amended(ledger, kit, old, new):
    found = Amended(ledger, kit, old, new)
    ledger.enrol(terms_of(old, "people's load"), kit.now)
    found.draw("day 0", plan_of(old, 0, old.window_length), "people's load")
    ledger.amend(terms_of(new, "people's load"), "another guarantee", kit.now)
    return found


@pytest.fixture(params=sorted(WEAKER))
def after(request, ledger, kit):
    return amended(ledger, kit, *models(request.param))


def test_a_day_beside_one_of_an_earlier_guarantee_waits_for_its_windows(after):
    old, stream = after.old, "people's load"
    free = 2 * old.window_length - 1
    assert after.ledger.worst("people").epsilon <= 1
    beside = plan_of(after.new, old.window_length)
    with pytest.raises(BudgetError) as refused:
        after.reserve("day 1", beside, stream=stream)
    said = str(refused.value)
    assert "by privacy guarantee 0 of privacy budget 'people' (epsilon 1," in said
    assert f"window {old.window_length}, alpha {old.alpha})" in said
    assert f"begins at step {free} or later" in said
    after.draw("day 2", plan_of(after.new, free), stream)
    assert after.ledger.verify() == []


def test_the_wait_is_no_shorter_than_the_message_says(ledger, kit):
    """One step of either day in a window of the earlier guarantee is a quarter and ten quarters."""
    found = amended(ledger, kit, *models("a smaller alpha"))
    with pytest.raises(BudgetError, match=r"would cost 11/4 .* begins at step 7 or later"):
        found.reserve("early", plan_of(found.new, 6), stream="people's load")


def test_a_day_before_one_of_an_earlier_guarantee_waits_too(ledger, kit):
    found = amended(ledger, kit, *models("a smaller alpha"))
    with pytest.raises(BudgetError, match="by privacy guarantee 0"):
        found.reserve("late dump", plan_of(found.new, -4), stream="people's load")
    found.draw("long before", plan_of(found.new, -7), "people's load")
    assert ledger.verify() == []


def test_a_stream_of_the_same_population_waits_too(ledger, kit):
    found = amended(ledger, kit, *models("a smaller alpha"))
    ledger.enrol(terms_of(found.new, "second"), kit.now)
    with pytest.raises(BudgetError, match="by privacy guarantee 0"):
        found.reserve("day 1", plan_of(found.new, 4), stream="second")


def test_a_plan_that_leaves_enough_is_taken_beside_it(ledger, kit):
    """A day of alpha 1 with a tenth of the epsilon costs a change of 10 what is left."""
    found = amended(ledger, kit, *models("a smaller alpha"))
    quiet = PrivacyModel("1/10", 4, "1", resolution="1")
    found.draw("day 1", plan_of(quiet, 4), "people's load")
    assert ledger.verify() == []


def test_an_earlier_guarantee_is_kept_through_further_amendments(ledger, kit):
    """Three guarantees in a row: the first answers for its windows two amendments later."""
    first, second = models("a shorter window")
    found = amended(ledger, kit, first, second)
    third = PrivacyModel("5", 2, "1", resolution="1")
    ledger.amend(terms_of(third, "people's load"), "again", kit.now)
    with pytest.raises(BudgetError, match="by privacy guarantee 0"):
        found.reserve("day 1", plan_of(third, 12), stream="people's load")
    found.draw("day 2", plan_of(third, 15), "people's load")
    assert ledger.verify() == []


def test_verify_names_the_window_that_an_earlier_version_let_through(after, let_through):
    """What the code before did: the plan was priced by the guarantee in force alone."""
    after.reserve("day 1", plan_of(after.new, after.old.window_length), stream="people's load")
    assert any("which privacy guarantee 0 allows" in problem for problem in after.ledger.verify())


def exact_loss(scale, change):
    """The most that a discrete Laplace answer of this scale tells of a change, by enumeration."""
    weight = {x: math.exp(-abs(x) / scale) for x in range(-200, 201)}
    return max(math.log(weight[x] / weight[x - change]) for x in range(-150, 150))


def test_the_figure_of_an_amendment_that_lowers_alpha(ledger, kit, let_through):
    """Where 1 is promised: 5.5 by enumeration, if half of the window was drawn for changes of 10."""
    found = amended(ledger, kit, *models("a smaller alpha"))
    # a change of 10 at a leaf moves the answers of both levels by 10, each by itself
    of_day_0, of_day_1 = (
        sum(exact_loss(float(spend.scale), 10) for spend in plan_of(model, 0))
        for model in (found.old, found.new)
    )
    assert 2 * of_day_0 + 2 * of_day_1 == pytest.approx(5.5)
    found.reserve("day 1", plan_of(found.new, 4), stream="people's load")
    # the window with one step of day 0 and three of day 1 is worse still
    assert of_day_0 + 3 * of_day_1 == pytest.approx(31 / 4)
    (problem,) = ledger.verify()
    assert "the window from step 3 costs 31/4, more than 1" in problem


def test_what_would_be_lost_is_told_without_reserving(after):
    stream, old, new = "people's load", after.old, after.new
    beside, later = plan_of(new, old.window_length), plan_of(new, 2 * old.window_length - 1)
    head = after.ledger.head(stream)
    judged = after.ledger.judge_plan("people", beside)
    assert [one.number for one in judged] == [1, 0]
    assert [one.is_broken for one in judged] == [False, True]
    assert not any(one.is_broken for one in after.ledger.judge_plan("people", later))
    assert after.ledger.head(stream) == head
    # and as it would be under a guarantee that nobody has declared yet
    third = PrivacyModel("1", 1, "1", resolution="1")
    assert [one.number for one in after.ledger.judge_plan("people", beside, third)] == [2, 0]


def test_an_aligned_guarantee_answers_for_no_window_across_days(ledger, kit):
    old = PrivacyModel("1", 4, "10", resolution="1", windows="aligned")
    found = amended(ledger, kit, old, PrivacyModel("1", 4, "1", resolution="1", windows="aligned"))
    found.draw("day 1", plan_of(found.new, 4), "people's load")
    assert ledger.verify() == []
    # a restatement of day 0 itself is inside its windows
    with pytest.raises(BudgetError):
        ledger.reserve("people's load", "day 0", 1, plan_of(found.new, 0), "night", kit.now, kit.lease)


def test_a_draw_is_held_to_its_plan_by_every_guarantee(ledger, kit):
    """Windows of now have four steps, of the first guarantee one: an outcome may fit those of now only."""
    first = PrivacyModel("1", 1, "1", resolution="1")
    found = amended(ledger, kit, first, PrivacyModel("1", 4, "1", resolution="1"))
    plan, outcome = (
        StepSpend(0, "sums", 4, weights, Fraction(4), 1) for weights in ((1, 1, 1, 1), (0, 2, 0, 0))
    )
    assert covers([plan], [outcome], 4, "sliding")
    held = found.reserve("day 1", [plan], stream="people's load")
    ledger.begin_draw(held, kit.now)
    with pytest.raises(LedgerError, match="more than its plan"):
        ledger.record_drawn(held, "measured", [outcome], kit.now)

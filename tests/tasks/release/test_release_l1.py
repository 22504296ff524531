"""A stream with L1 sampling through the whole protocol: plans that depend on what other days measured."""

from datetime import date, timedelta

import pytest

from optstream import read_published
from optstream.errors import ParameterError
from optstream.privacy import CappedSpend, StepSpend
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import budget_of
from tasks.release.stages import Status
from tests.tasks.two_regions import STEPS

DAYS = [date(2016, 3, 25) + timedelta(days=number) for number in range(5)]


@pytest.fixture
def l1(installation):
    installation.configure('method = "equally_spaced"', 'method = "l1"\nthreshold = "50"')
    installation.simulate(*DAYS)
    return installation


def statuses(works):
    return {work.day: work.outcome.status for work in works.values()}


@pytest.mark.parametrize(
    "order",
    [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0, 2, 4, 1, 3]],
    ids=["forwards", "backwards", "late days between others"],
)
def test_days_in_any_order_stay_within_epsilon_across_a_clock_change(l1, order):
    works = l1.release(*[DAYS[number] for number in order])
    assert set(statuses(works).values()) == {Status.PUBLISHED}, works
    assert read_published(l1.folder / "published")["date"].n_unique() == 5
    assert budget_of(l1.settings, l1.ledger).spent <= 1
    assert l1.ledger.verify() == []


def test_the_plan_knows_the_points_of_the_days_around_it(l1):
    l1.released(DAYS[0])
    l1.release(DAYS[1], steps=STEPS[:5])
    reserved = [spend for spend in l1.record(DAYS[1]).spends if isinstance(spend, CappedSpend)]
    drawn = [
        spend
        for spend in l1.record(DAYS[0]).spends
        if isinstance(spend, StepSpend) and spend.stage == "samples"
    ]
    for plan, spend in zip(reserved, drawn, strict=True):
        measured = [spend.first_step + step for step, weight in enumerate(spend.weights) if weight]
        assert plan.taken == tuple(measured)
        assert plan.cap == 10


def test_the_draw_uses_the_state_that_was_charged(l1):
    """Were the rule to look again at draw time, a day could measure what it was not charged for."""
    l1.released(DAYS[0])
    (work,) = l1.release(DAYS[1], steps=STEPS[:5]).values()
    taken = {
        str(spend.level): list(spend.taken)
        for spend in l1.record(DAYS[1]).spends
        if isinstance(spend, CappedSpend)
    }
    assert work.memory.state == {"points": taken}


def test_the_noise_is_that_of_the_shortest_day_on_every_day(l1):
    """Otherwise a window that meets a 46-step day would lose more than its plan says."""
    mechanisms = [mechanism_for(l1.settings, day) for day in DAYS]
    assert {mechanism.shortest_period for mechanism in mechanisms} == {46}
    assert {mechanism.epsilon for mechanism in mechanisms} == {mechanisms[0].epsilon}
    assert mechanisms[0].epsilon <= 1
    assert mechanisms[2].plan(46)
    with pytest.raises(ParameterError):
        mechanisms[2].plan(44)

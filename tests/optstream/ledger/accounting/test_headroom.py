"""What each window is charged, against the accountant over the whole history; and rows without spends."""

from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

import pytest

from optstream.ledger import Key, ReleaseState, Stretch
from optstream.privacy import PeriodSpend, StepSpend, charged_to_windows, worst_window


def history():
    """Uneven charges on four periods, one of them far away."""
    for first in (0, 4, 8, 40):
        weights = (Fraction(1, 8), Fraction(0), Fraction(1, 16), Fraction(1, 8))
        yield (
            first,
            (
                StepSpend(0, "samples", first, weights, Fraction(1), 1),
                PeriodSpend(1, "noise", first, tuple(Fraction(n, 64) for n in range(5))),
            ),
        )


@pytest.fixture
def charged(ledger, reserve):
    for first, plan in history():
        reserve(f"day {first}", plan)
    return ledger


def spelled_out(stretches):
    return {start: one.charged for one in stretches for start in range(one.first_start, one.last_start + 1)}


def test_windows_are_charged_as_the_accountant_says(charged):
    everything = [spend for _, plan in history() for spend in plan]
    for steps in (range(5, 9), range(-10, 60), range(11, 12), range(20, 30)):
        starts = range(steps.start - 3, steps.stop)
        found = charged.charged_windows("customers", steps)
        wanted = dict(zip(starts, charged_to_windows(everything, 4, starts), strict=True))
        assert spelled_out(found) == wanted
        assert all(a.charged != b.charged and a.last_start + 1 == b.first_start for a, b in pairwise(found))
    assert charged.charged_windows("customers", range(20, 30)) == (Stretch(17, 29, Fraction(0)),)


def test_what_a_plan_would_make_is_what_reserve_judges(charged, kit):
    plan = kit.plan(12, "1/8")
    everything = [spend for _, known in history() for spend in known]
    (judged,) = charged.judge_plan("customers", plan)
    cost = judged.loss
    expected = worst_window([*everything, *plan], 4, touching=range(12, 16))
    assert (cost.epsilon, cost.first_step) == (expected.epsilon, expected.first_step)
    assert cost.epsilon >= Fraction(1, 2)
    assert charged.find(Key("load", "day 12")) is None


def test_outlines_are_the_releases_without_their_spends(charged, publish, kit):
    publish("day 60", kit.plan(60, "1/8"))
    wanted = charged.releases("load")
    found = list(charged.outlines("load"))
    assert [(one.period, one.state, one.first_step, one.end) for one in found] == [
        (one.period, one.state, one.first_step, one.first_step + one.n_steps) for one in wanted
    ]
    assert found[-1].published_name == "release-1.parquet"
    assert [one.period for one in charged.outlines("load", range(4, 40))] == ["day 4", "day 8"]
    assert charged.last_release("load") == found[-1]
    assert charged.count_by_state("load") == {ReleaseState.RESERVED: 4, ReleaseState.PUBLISHED: 1}
    assert charged.event_times("load", "published") == {("day 60", 0): kit.now}


def test_what_happened_to_a_period_is_told_in_order(ledger, publish, reserve, kit):
    publish("day 0", kit.plan(0, "1/8"))
    publish("day 4", kit.plan(4, "1/8"))
    later = kit.now + timedelta(hours=1)
    reserve("day 0", kit.plan(0, "1/8"), revision=1, now=later)
    found = ledger.events_of("load", "day 0")
    assert [(one.kind, one.revision) for one in found] == [
        ("reserved", 0),
        ("draw begun", 0),
        ("drawn", 0),
        ("staged", 0),
        ("published", 0),
        ("reserved", 1),
    ]
    assert [one.at for one in found] == [kit.now] * 5 + [later]
    assert len(ledger.events_of("load", "day 4")) == 5
    everything = ledger.events_of("load")
    assert [one.number for one in everything] == list(range(len(everything)))
    assert [one for one in everything if one.period == "day 0"] == list(found)
    assert everything[0].period is None
    assert ledger.events_of("load", first=len(everything) - 1) == everything[-1:]
    assert ledger.heads("load")["load"][0] == len(everything)
    assert ledger.events_of("load", "day 8") == ()
    assert ledger.events_of("other", "day 0") == ()


def test_a_newer_revision_is_the_last_release(ledger, publish, reserve, kit):
    publish("day 0", kit.plan(0, "1/8"))
    reserve("day 0", kit.plan(0, "1/8"), revision=1, now=kit.now + timedelta(hours=1))
    assert ledger.last_release("load").revision == 1

"""Days of an adaptive mechanism, drawn one by one, that wait to be judged and published together."""

from collections import Counter
from dataclasses import replace
from datetime import date

import pytest

from flows.orchestration import release
from optstream import read_published
from optstream.catalogue import check_files
from optstream.ledger import ReleaseState
from tasks.release import estimate
from tasks.release import pipeline as steps
from tasks.release.run import Requested, Status
from tests.tasks.two_regions import CONFIGURATION, FEW_BLOCKS, Installation

pytestmark = pytest.mark.slow

DAYS = [date(2016, 6, day) for day in (1, 2, 3)]
PUBLISHED, DRAWN = ReleaseState.PUBLISHED, ReleaseState.DRAWN


@pytest.fixture
def adaptive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(release, "STEP_PAUSES", (0, 0))
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    installation.simulate(*DAYS)
    return installation


@pytest.fixture
def draws(monkeypatch):
    """How often each day was drawn."""
    counted, genuine = Counter(), steps.draw.draw

    def draw(run, day):
        counted[day.day] += 1
        return genuine(run, day)

    monkeypatch.setattr(steps.draw, "draw", draw)
    return counted


@pytest.fixture
def judged(monkeypatch):
    """The days that were held against the release contract, each time."""
    seen, genuine = [], estimate.judge

    def judge(run, days):
        seen.append([day.day for day in days])
        return genuine(run, days)

    monkeypatch.setattr(estimate, "judge", judge)
    return seen


def released(installation, *days, **changes):
    """What becomes of each day in a run of the flow's steps, in order."""
    run = installation.run(**changes)
    return [one.outcome for one in release.released(run, [Requested(day) for day in days])]


def statuses(outcomes):
    return [one.status for one in outcomes]


def states(installation):
    return [installation.record(day).state for day in DAYS]


def test_a_day_that_its_contract_refuses_keeps_no_other_from_being_published(
    adaptive, monkeypatch, draws, judged
):
    genuine = steps.estimate.estimate

    def without_a_row(run, day):
        done = genuine(run, day)
        return replace(done, rows=done.rows[1:]) if day.day == DAYS[1] else done

    monkeypatch.setattr(steps.estimate, "estimate", without_a_row)
    outcomes = released(adaptive, *DAYS)
    assert statuses(outcomes) == [Status.PUBLISHED, Status.REFUSED, Status.PUBLISHED]
    assert "must have a row for each node and step" in outcomes[1].message
    assert judged == [DAYS]
    assert states(adaptive) == [PUBLISHED, DRAWN, PUBLISHED]
    assert read_published("published")["date"].unique().sort().to_list() == [DAYS[0], DAYS[2]]
    assert draws == dict.fromkeys(DAYS, 1)


def test_a_day_that_was_taken_over_while_it_waited_is_not_judged(adaptive, monkeypatch, draws, judged):
    genuine, by_others = release.estimate.fn, []

    def slow(run, days):
        if run.owner == "slow" and days[0].day == DAYS[1]:
            adaptive.later(minutes=20)  # past the first day's lease
            by_others.extend(released(adaptive, DAYS[0], owner="other"))
        return genuine(run, days)

    monkeypatch.setattr(release.estimate, "fn", slow)
    outcomes = released(adaptive, *DAYS, owner="slow")
    assert statuses(by_others) == [Status.PUBLISHED]
    assert statuses(outcomes) == [Status.FAILED, Status.PUBLISHED, Status.PUBLISHED]
    assert "was taken over by another run (other)" in outcomes[0].message
    assert judged == [[DAYS[0]], [DAYS[1]], [DAYS[2]]]
    assert draws == dict.fromkeys(DAYS, 1)


def test_days_that_waited_are_held_on_while_they_are_judged(adaptive, monkeypatch, draws):
    genuine = {release.estimate: release.estimate.fn, estimate: estimate.judge}
    by_others = []

    def slow(run, days):
        if days[0].day == DAYS[2]:
            adaptive.later(minutes=8)
        return genuine[release.estimate](run, days)

    def judge(run, days):
        if run.owner == "slow":
            adaptive.later(minutes=8)  # past the leases that the first two days were drawn with
            by_others.extend(released(adaptive, *DAYS, owner="other"))
        return genuine[estimate](run, days)

    monkeypatch.setattr(release.estimate, "fn", slow)
    monkeypatch.setattr(estimate, "judge", judge)
    outcomes = released(adaptive, *DAYS, owner="slow")
    assert statuses(by_others) == [Status.BUSY] * 3
    assert statuses(outcomes) == [Status.PUBLISHED] * 3
    assert draws == dict.fromkeys(DAYS, 1)


def test_days_that_waited_when_a_later_draw_was_stopped_are_published_by_the_next_run_at_once(
    adaptive, monkeypatch
):
    genuine = steps.draw.draw

    def stopped(run, day):
        if day.day == DAYS[2]:
            raise KeyboardInterrupt
        return genuine(run, day)

    monkeypatch.setattr(steps.draw, "draw", stopped)
    with pytest.raises(KeyboardInterrupt):
        released(adaptive, *DAYS)
    assert states(adaptive) == [DRAWN, DRAWN, ReleaseState.RESERVED]
    measured = [adaptive.record(day).measurements_hash for day in DAYS]
    # nothing is drawn: there is no noise; the day of the stopped draw stays with the run that was stopped
    outcomes = released(adaptive, *DAYS, owner="next", noise=None)
    assert statuses(outcomes) == [Status.PUBLISHED, Status.PUBLISHED, Status.BUSY]
    assert [adaptive.record(day).measurements_hash for day in DAYS] == measured


@pytest.mark.parametrize("step", ["judge", "record_published"])
def test_a_run_that_is_stopped_after_the_draws_is_finished_by_the_next_one_at_once(
    adaptive, monkeypatch, step
):
    place = estimate if step == "judge" else steps.publish
    genuine = getattr(place, step)

    def stopped(run, of, *rest):
        if step == "judge" or of.day == DAYS[1]:  # whose files and catalogue readers have
            raise KeyboardInterrupt
        return genuine(run, of, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(place, step, stopped)
        with pytest.raises(KeyboardInterrupt):
            released(adaptive, *DAYS)
    first = Status.PUBLISHED if step == "judge" else Status.UNCHANGED
    outcomes = released(adaptive, *DAYS, owner="next", noise=None)
    assert statuses(outcomes) == [first, Status.PUBLISHED, Status.PUBLISHED]
    assert states(adaptive) == [PUBLISHED] * 3
    assert check_files("published") == []

"""The release flow's graph: repeatable steps, kept results, and the same steps without a server."""

import gc
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import partial

import pytest
from prefect import Task
from prefect.cache_policies import NO_CACHE

from flows.orchestration import release
from optstream import read_published
from optstream.catalogue import check_files
from optstream.errors import OptStreamError, PublicationError
from optstream.ledger import ReleaseState
from optstream.stream import PrivatePeriod
from tasks.release import estimate, publish
from tasks.release import pipeline as steps
from tasks.release.run import Requested, Status
from tests.failing import raising
from tests.tasks.two_regions import CONFIGURATION, FEW_BLOCKS, Installation

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]


@pytest.fixture
def installation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(release, "STEP_PAUSES", (0, 0))
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.simulate(*DAYS)
    return installation


def test_prefect_repeats_no_step_and_keeps_nothing_of_it():
    tasks = [one for one in vars(release).values() if isinstance(one, Task)]
    assert len(tasks) > 8
    assert all(task.retries == 0 and task.persist_result is False for task in tasks)
    assert all(task.cache_policy is NO_CACHE for task in tasks)


@pytest.mark.slow
def test_a_step_that_draws_nothing_is_repeated(installation, monkeypatch):
    tries, genuine = [], publish.publish

    def refuses(times, run, days):
        tries.append([day.day for day in days])
        if len(tries) <= times:
            raise PublicationError("the published folder cannot be written")
        return genuine(run, days)

    # each attempt asks for both days together, then for each alone
    monkeypatch.setattr(publish, "publish", partial(refuses, 6))
    assert set(statuses(outcomes_of(installation, *DAYS))) == {Status.PUBLISHED}
    assert tries == [DAYS, DAYS[:1], DAYS[1:]] * 2 + [DAYS]


def test_after_the_last_try_a_failure_is_a_value_and_a_draw_is_tried_once(installation, monkeypatch):
    drawn, genuine = [], steps.draw.draw

    def draw(run, day):
        drawn.append(day.day)
        if day.day == DAYS[0]:
            raise OptStreamError("refused before the first sample")
        return genuine(run, day)

    unwritable = raising(PublicationError("the published folder cannot be written"))
    monkeypatch.setattr(steps.draw, "draw", draw)
    monkeypatch.setattr(publish, "publish", unwritable)
    first, second = outcomes_of(installation, *DAYS)
    assert [first.message, second.message] == [
        "refused before the first sample",
        "the published folder cannot be written",
    ]
    assert drawn == DAYS
    assert installation.record(DAYS[1]).state is ReleaseState.DRAWN


@pytest.mark.slow
def test_raw_values_are_gone_once_they_are_drawn(installation, monkeypatch):
    found, genuine = {}, {task: task.fn for task in (release.draw, release.estimate)}

    def look(task, run, days):
        gc.collect()
        found[task.name] = sum(isinstance(one, PrivatePeriod) for one in gc.get_objects())
        return genuine[task](run, days)

    gc.collect()  # what an earlier test left
    before = sum(isinstance(one, PrivatePeriod) for one in gc.get_objects())
    for task in genuine:
        monkeypatch.setattr(task, "fn", partial(look, task))
    outcomes_of(installation, *DAYS)
    assert found == {"draw": before + 2, "estimate": before}


# Days of an adaptive mechanism, drawn one by one, that wait to be judged and published together.

THREE = [*DAYS, date(2016, 6, 3)]
PUBLISHED, DRAWN = ReleaseState.PUBLISHED, ReleaseState.DRAWN


@pytest.fixture
def adaptive(installation):
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    installation.simulate(THREE[2])
    return installation


@pytest.fixture
def draws(monkeypatch):
    counted, genuine = Counter(), steps.draw.draw

    def draw(run, day):
        counted[day.day] += 1
        return genuine(run, day)

    monkeypatch.setattr(steps.draw, "draw", draw)
    return counted


@pytest.fixture
def judged(monkeypatch):
    seen, genuine = [], estimate.judge

    def judge(run, days):
        seen.append([day.day for day in days])
        return genuine(run, days)

    monkeypatch.setattr(estimate, "judge", judge)
    return seen


def outcomes_of(installation, *days, **changes):
    return list(release.released(installation.run(**changes), [Requested(day) for day in days]))


def statuses(outcomes):
    return [one.status for one in outcomes]


@pytest.mark.slow
def test_a_day_that_its_contract_refuses_keeps_no_other_from_being_published(
    adaptive, monkeypatch, draws, judged
):
    genuine = steps.estimate.estimate

    def without_a_row(run, day):
        done = genuine(run, day)
        return replace(done, rows=done.rows[1:]) if day.day == THREE[1] else done

    monkeypatch.setattr(steps.estimate, "estimate", without_a_row)
    outcomes = outcomes_of(adaptive, *THREE)
    assert statuses(outcomes) == [Status.PUBLISHED, Status.REFUSED, Status.PUBLISHED]
    assert "must have a row for each node and step" in outcomes[1].message
    assert judged == [THREE]
    assert [adaptive.record(day).state for day in THREE] == [PUBLISHED, DRAWN, PUBLISHED]
    assert read_published("published")["date"].unique().sort().to_list() == [THREE[0], THREE[2]]
    assert draws == dict.fromkeys(THREE, 1)


@pytest.mark.slow
def test_a_day_that_was_taken_over_while_it_waited_is_not_judged(adaptive, monkeypatch, draws, judged):
    genuine, by_others = release.estimate.fn, []

    def slow(run, days):
        if run.owner == "slow" and days[0].day == THREE[1]:
            adaptive.later(minutes=20)  # past the first day's lease
            by_others.extend(outcomes_of(adaptive, THREE[0], owner="other"))
        return genuine(run, days)

    monkeypatch.setattr(release.estimate, "fn", slow)
    outcomes = outcomes_of(adaptive, *THREE, owner="slow")
    assert statuses(by_others) == [Status.PUBLISHED]
    assert statuses(outcomes) == [Status.FAILED, Status.PUBLISHED, Status.PUBLISHED]
    assert "was taken over by another run (other)" in outcomes[0].message
    assert judged == [[THREE[0]], [THREE[1]], [THREE[2]]]
    assert draws == dict.fromkeys(THREE, 1)


@pytest.mark.slow
def test_days_that_waited_are_held_on_while_they_are_judged(adaptive, monkeypatch, draws):
    genuine = {release.estimate: release.estimate.fn, estimate: estimate.judge}
    by_others = []

    def slow(run, days):
        if days[0].day == THREE[2]:
            adaptive.later(minutes=8)
        return genuine[release.estimate](run, days)

    def judge(run, days):
        if run.owner == "slow":
            adaptive.later(minutes=8)  # past the leases that the first two days were drawn with
            by_others.extend(outcomes_of(adaptive, *THREE, owner="other"))
        return genuine[estimate](run, days)

    monkeypatch.setattr(release.estimate, "fn", slow)
    monkeypatch.setattr(estimate, "judge", judge)
    outcomes = outcomes_of(adaptive, *THREE, owner="slow")
    assert statuses(by_others) == [Status.BUSY] * 3
    assert statuses(outcomes) == [Status.PUBLISHED] * 3
    assert draws == dict.fromkeys(THREE, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "step", "at", "expected"),
    [
        # the day of the draw stays with the run that was stopped
        (steps.draw, "draw", THREE[2], [Status.PUBLISHED, Status.PUBLISHED, Status.BUSY]),
        (estimate, "judge", None, [Status.PUBLISHED] * 3),
        # readers have the first day's file and catalogue
        (steps.publish, "record_published", THREE[1], [Status.UNCHANGED, Status.PUBLISHED, Status.PUBLISHED]),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_run_that_is_stopped_is_finished_by_the_next_one_at_once(
    adaptive, monkeypatch, place, step, at, expected
):
    """And nothing is drawn: there is no noise."""
    genuine = getattr(place, step)

    def stopped(run, of, *rest):
        if at is None or of.day == at:
            raise KeyboardInterrupt
        return genuine(run, of, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(place, step, stopped)
        with pytest.raises(KeyboardInterrupt):
            outcomes_of(adaptive, *THREE)
    measured = [adaptive.record(day).measurements_hash for day in THREE]
    assert statuses(outcomes_of(adaptive, *THREE, owner="next", noise=None)) == expected
    assert [adaptive.record(day).measurements_hash for day in THREE] == measured
    assert check_files("published") == []

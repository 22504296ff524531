"""Noise that became known while days were under way: nothing of them is drawn or shown any more."""

from datetime import date

from optstream.catalogue import find_catalogue, read_catalogue
from optstream.ledger import ReleaseState
from tasks.release import publish
from tasks.release.stages import Status
from tests.tasks.two_regions import STEPS

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]


def test_a_drawn_day_is_void_and_never_published(installation):
    """Whoever knows the noise would read the raw values off the published ones."""
    installation.release(DAYS[0], steps=STEPS[:-1])
    installation.compromise(DAYS[0])
    installation.later(hours=1)
    work = installation.release(DAYS[0])[DAYS[0]]
    assert work.outcome.status is Status.VOID, work.outcome
    record = installation.record(DAYS[0])
    assert (record.state, record.compromised) == (ReleaseState.VOID, "a stolen disk")
    assert record.spends
    assert find_catalogue(installation.folder / "published") is None
    assert installation.problems() == []


def test_a_run_that_is_about_to_publish_publishes_nothing(installation):
    run, works = installation.through(STEPS[:-1], DAYS[0])
    installation.compromise(DAYS[0])
    (late,) = STEPS[-1](run, works)
    assert late.outcome.status is Status.FAILED, late.outcome
    assert find_catalogue(installation.folder / "published") is None


def test_a_run_that_is_about_to_draw_draws_nothing(installation):
    installation.released(DAYS[0])
    run, works = installation.through(STEPS[:5], DAYS[1])
    assert installation.record(DAYS[1]).state is ReleaseState.RESERVED
    installation.compromise(DAYS[0])
    (refused,) = STEPS[5](run, works)
    assert refused.outcome.status is Status.REFUSED, refused.outcome
    # nor does the run that takes the day over, under the plan that was charged already
    installation.later(hours=1)
    work = installation.release(DAYS[1])[DAYS[1]]
    assert work.outcome.status is Status.REFUSED, work.outcome
    assert installation.record(DAYS[1]).state is ReleaseState.RESERVED
    assert installation.ledger.verify() == []


def test_one_that_is_listed_and_not_recorded_is_told_and_withdrawn(installation):
    run, works = installation.through(STEPS[:-1], DAYS[0])
    publish.publish(run, works)
    installation.compromise(DAYS[0])
    (line,) = installation.problems()
    assert f"optstream withdraw --date {DAYS[0]}" in line
    installation.later(hours=1)
    installation.withdraw(DAYS[0])
    assert read_catalogue(installation.folder / "published").entry(DAYS[0]).withdrawn
    assert installation.problems() == []

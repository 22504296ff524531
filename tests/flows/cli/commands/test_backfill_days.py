"""How long a backfill waits for days that are with other runs, and how it counts them."""

from datetime import UTC, date, datetime, timedelta

import pytest

from flows.cli.output import Terminal
from flows.cli.release import _counted, _n_over, _progress
from flows.orchestration.backfill import held_by_others
from tasks.release.stages import Requested, Status

NOW = datetime(2016, 7, 1, tzinfo=UTC)
DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(4)]
LONGEST = timedelta(minutes=15)


def busy(day, until):
    return Requested(day).ended(Status.BUSY, f"held until {until}", free_at=until)


def test_a_lease_of_a_clock_that_ran_ahead_is_not_waited_for():
    near, far = busy(DAYS[0], NOW + timedelta(minutes=2)), busy(DAYS[1], NOW + timedelta(days=3650))
    done = Requested(DAYS[2]).ended(Status.PUBLISHED, "out", "file")
    works, until = held_by_others([near, far, done], NOW, LONGEST)
    assert until == NOW + timedelta(minutes=2)
    assert (works[0], works[2]) == (near, done)
    assert works[1].outcome.status is Status.BUSY
    assert "optstream ledger release-lease 2016-06-02" in works[1].outcome.message
    assert held_by_others([far, done], NOW, LONGEST)[1] is None


def test_the_longest_lease_that_a_run_takes_is_waited_for():
    assert held_by_others([busy(DAYS[0], NOW + LONGEST)], NOW, LONGEST)[1] == NOW + LONGEST


def test_a_day_that_is_waited_for_is_counted_once(capsys):
    """It was with another run, and then it was done: 1 of 1 days, not 2."""
    with _progress(1, "day", Terminal()) as (watch, _):
        watch([busy(DAYS[0], NOW)])
        watch([Requested(DAYS[0]).ended(Status.PUBLISHED, "out", "file")])
    lines = capsys.readouterr().out.splitlines()
    assert "0 of 1 days" in lines[0]
    assert "1 published; 1 of 1 days" in lines[1]
    assert _n_over([busy(DAYS[0], NOW)]) == 0


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((None, None), "1 published, 2 failed"),
        (("file", None), "1 published, 2 failed (1 after it was published)"),
        (("file", "file"), "1 published, 2 failed (2 after they were published)"),
    ],
)
def test_what_failed_after_readers_had_it_is_said(files, said):
    works = [Requested(day).ended(Status.FAILED, "?", file) for day, file in zip(DAYS, files, strict=False)]
    assert _counted([*works, Requested(DAYS[3]).ended(Status.PUBLISHED, "out", "file")]) == said

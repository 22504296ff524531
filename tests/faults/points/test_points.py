"""SIGKILL, and a system that refuses, at named points: the remains are safe, a rerun completes them.

`make faults` tries every point, and those of other nights than a first one.
"""

import pytest

from tests.faults.histories import FIRST
from tests.faults.points.acts import REFUSALS
from tests.faults.points.attacks import kill_at_each, record, refusable, refuse_at_each


@pytest.fixture(scope="module")
def first_day(sqlite_bench):
    return record(sqlite_bench, FIRST)


def test_the_recording_finds_every_kind_of_write(first_day):
    said = " ".join(first_day.points)
    for primitive in ("write", "fsync", "posix_fallocate", "replace", "link", "unlink", "mkdir", "create"):
        assert f"before {primitive} in " in said
        assert f"after {primitive} in " in said
    for method in ("enrol", "reserve", "begin_draw", "record_drawn", "record_staged", "record_published"):
        assert f"before commit in Ledger.{method}, 1" in first_day.points
        assert f"after commit in Ledger.{method}, 1" in first_day.points
    assert len(set(first_day.points)) == len(first_day.points) > 150


def test_nothing_gets_its_name_before_its_bytes_are_synced(first_day):
    """A SIGKILL loses nothing that was not synced, a power cut does: the order of the calls is looked at."""
    unsynced = False
    named = []
    for point in first_day.points:
        moment, primitive = point.split()[:2]
        unsynced = (unsynced or primitive == "write") and not (moment == "after" and primitive == "fsync")
        if moment == "before" and primitive in ("replace", "link"):
            assert not unsynced, point
            named.append(point)
    assert len(named) > 5
    for place, point in enumerate(first_day.points):
        if point.startswith("after replace"):
            following = first_day.points[place + 1]
            assert following.startswith(("before fsync in sync_folder", "before fsync in replace ")), point
        if point.startswith("after link"):
            # the name that it had aside goes first
            unlinked, following = first_day.points[place + 2], first_day.points[place + 3]
            assert unlinked.startswith("after unlink"), point
            assert following.startswith("before fsync in write_new"), point


def test_death_after_every_commit_of_a_first_day(sqlite_bench, first_day):
    assert len(first_day.moments) > 60
    moments = {
        *first_day.moments[::120],
        *(one for one in first_day.moments if one.startswith("after commit")),
    }
    tally = kill_at_each(sqlite_bench, [one for one in first_day.moments if one in moments], FIRST)
    assert tally.broken == []
    assert tally.tried == len(moments) > 1
    assert tally.voids == 0


def test_refusals_over_a_first_day(sqlite_bench, first_day):
    """Full, read-only and broken by turns, for all are an OSError."""
    # one of them in the draw, whatever their distance
    every = refusable(first_day.points)
    drawn = next(number for number, point in enumerate(every) if "DrawingFile.fill" in point) + 1
    points = every[drawn % 40 :: 40]
    tally = refuse_at_each(sqlite_bench, points, list(REFUSALS), FIRST)
    assert tally.broken == []
    # between the first sample and DRAWN an exception may depend on the draw
    assert 0 < tally.voids < len(points) / 5

"""SIGKILL, and a system that refuses, at every named point: the remains are safe, a rerun completes them."""

import pytest

from tests.by_night import few
from tests.faults.points.acts import REFUSALS
from tests.faults.points.attacks import kill_at_each, refusable, refuse_at_each
from tests.faults.points.scenarios import ALL, FIRST, SHARPENED, record
from tests.faults.world import DAYS


@pytest.fixture(scope="module")
def first_day(sqlite_bench):
    """The points of a first day ever."""
    return sqlite_bench.record(sqlite_bench.world())


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


@pytest.mark.parametrize("each", few([60, 1], 1))
def test_death_at_every_moment_of_a_first_day(sqlite_bench, first_day, each):
    """After every commit and a few moments else; by night at every one."""
    moments = thinned(first_day.moments, each)
    assert len(first_day.moments) > 60
    tally = kill_at_each(sqlite_bench, moments, FIRST)
    assert tally.broken == []
    assert tally.tried == len(moments) > 60 / each
    assert tally.voids == 0


def thinned(moments, each):
    """Each n-th, and what follows a commit."""
    return [
        moment
        for number, moment in enumerate(moments)
        if number % each == 0 or moment.startswith("after commit")
    ]


@pytest.mark.nightly
def test_death_and_refusal_at_every_moment_of_a_new_estimate(sqlite_bench):
    """The old vintage or the new one is there, never none; a rerun completes it."""
    said = record(sqlite_bench, SHARPENED)
    began = said.moments.index("after commit in Ledger.revise, 1")
    moments = said.moments[began - 1 :]
    for method in ("record_vintage", "record_vintage_published"):
        assert f"after commit in Ledger.{method}, 1" in moments
    assert len(moments) > 15
    tally = kill_at_each(sqlite_bench, moments, SHARPENED)
    assert tally.broken == []
    points = said.points[said.points.index("before commit in Ledger.revise, 1") :]
    tally = refuse_at_each(sqlite_bench, refusable(points)[::3], list(REFUSALS), SHARPENED)
    assert tally.broken == []
    assert tally.voids == 0


@pytest.mark.parametrize("each", few([30, 4], 1))
def test_refusals_over_a_first_day(sqlite_bench, first_day, each):
    """Full, read-only and broken by turns, for all are an OSError; the campaign tries each at each point."""
    # one of them in the draw, whatever their distance
    every = refusable(first_day.points)
    drawn = next(number for number, point in enumerate(every) if "DrawingFile.fill" in point) + 1
    points = every[drawn % each :: each]
    tally = refuse_at_each(sqlite_bench, points, list(REFUSALS), FIRST)
    assert tally.broken == []
    # between the first sample and DRAWN an exception may depend on the draw
    assert 0 < tally.voids < len(points) / 5


@pytest.mark.nightly
def test_death_at_points_that_a_first_day_does_not_pass(sqlite_bench, first_day):
    """A redraw destroys orphans, a raising draw leaves word, a second day takes raw state: kill there too."""
    known = {place_of(point) for point in first_day.points}
    for scenario in ALL[1:]:
        said = record(sqlite_bench, scenario)
        new = [point for point in said.moments if place_of(point) not in known]
        assert new or scenario.days == DAYS[:2], scenario.name
        known |= {place_of(point) for point in said.points}
        assert kill_at_each(sqlite_bench, new, scenario).broken == []


def place_of(point):
    """The point without its number: a second day passes the same places once more."""
    return point.rpartition(", ")[0]

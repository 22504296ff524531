"""A few kills at random times, by night; `make faults` does hundreds on each database."""

import pytest

from tests.faults.campaign import random_kills, table
from tests.faults.points.attacks import kill_at_each
from tests.faults.points.scenarios import ALL, record
from tests.faults.world import DAYS

SEED = 20160601


@pytest.mark.nightly
def test_random_kills_lose_no_day(bench):
    tally = random_kills(bench, 6, SEED)
    print(table([("", f"seed {SEED}", tally)]))
    assert tally.broken == []
    assert tally.tried >= 6
    assert tally.releases_checked > 6


@pytest.mark.nightly
@pytest.mark.parametrize("each", [5, 1])
def test_death_at_points_that_a_first_day_does_not_pass(sqlite_bench, each):
    """A redraw destroys orphans, a raising draw leaves word, a second day takes raw state: kill there too."""
    known = {place_of(point) for point in record(sqlite_bench, ALL[0]).points}
    for scenario in ALL[1:]:
        said = record(sqlite_bench, scenario)
        new = [point for point in said.moments if place_of(point) not in known]
        assert new or scenario.days == DAYS[:2], scenario.name
        known |= {place_of(point) for point in said.points}
        assert kill_at_each(sqlite_bench, new[::each], scenario).broken == []


def place_of(point):
    """The point without its number: a second day passes the same places once more."""
    return point.rpartition(", ")[0]

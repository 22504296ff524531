"""A few kills at random times on each database; `make faults` does hundreds, some of the real flow."""

from tests.faults.attacks import kill_at_each
from tests.faults.campaign import random_kills, table
from tests.faults.scenarios import ALL, record

SEED = 20160601


def test_random_kills_lose_no_day(bench):
    tally = random_kills(bench, 6, SEED)
    print(table([("", f"seed {SEED}", tally)]))
    assert tally.broken == []
    assert tally.tried >= 6
    assert tally.releases_checked > 6


def test_death_at_points_that_a_first_day_does_not_pass(sqlite_bench):
    """A redraw destroys orphans, a raising draw leaves word, a second day takes raw state: kill there too."""
    known = set(record(sqlite_bench, ALL[0]).points)
    for scenario in ALL[1:]:
        said = record(sqlite_bench, scenario)
        new = [point for point in said.moments if point not in known and not point.endswith(", 2")]
        known |= set(said.points)
        tally = kill_at_each(sqlite_bench, new, scenario)
        assert tally.broken == []

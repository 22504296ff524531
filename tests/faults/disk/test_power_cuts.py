"""A power cut loses what was not synced: no day is drawn twice, lost or changed by one.

`make faults` cuts all histories, on both databases.
"""

import random

import pytest

from tests.faults.disk.cuts import DEAF, at_every_step, by_chance, open_cuts
from tests.faults.disk.model import Rules
from tests.faults.disk.mount import why_not
from tests.faults.life import UNSYNCED

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no file system of our own here: {why_not()}")

SEED = 20160601


@pytest.fixture(scope="module")
def cuts(sqlite_bench):
    with open_cuts(sqlite_bench) as opened:
        yield opened


@pytest.fixture(scope="module")
def recorded(cuts):
    """A first day, after a run that died in it."""
    return cuts.record(UNSYNCED)


def test_cuts_of_a_first_day(cuts, recorded):
    """At every eightieth durable step, where a dead run's folder is not synced, where the making of the
    ledger was cut off, so that its first page is zeros, and where some of what was not synced is left.
    """
    assert len(recorded.syncs) > 50
    gone = [operation.kind == "unname" and "-journal" in operation.name for operation in recorded.operations]
    places = [
        *list(at_every_step(recorded))[4::80],
        (recorded.sights[0][0], "all unsynced lost"),
        (gone.index(True) - 1, "names of zeros"),
        next(by_chance(recorded, random.Random(SEED))),
    ]
    broken = [
        line
        for number, (at, remains) in enumerate(places)
        for line in cuts.cut(recorded, at, remains, SEED + number).broken
    ]
    assert broken == []


def test_a_disk_that_forgets_the_ledger_is_caught(cuts, recorded):
    """The control: without these syncs the judge finds what was lost."""
    deaf = Rules(deaf=(DEAF["sqlite"][0],))
    result = cuts.cut(recorded, recorded.ends[-1], "all unsynced lost", SEED, deaf)
    assert result.has_lost

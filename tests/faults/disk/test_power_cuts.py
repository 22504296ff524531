"""A power cut loses what was not synced: no day is drawn twice, lost or changed by one.

`make faults` cuts all histories, on both databases.
"""

import random

import pytest

from tests.faults.disk.cuts import DEAF, at_every_step, by_chance, open_cuts
from tests.faults.disk.model import Rules
from tests.faults.disk.mount import why_not
from tests.faults.histories import UNSYNCED

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no file system of our own here: {why_not()}")

SEED = 20160601


@pytest.fixture(scope="module")
def sqlite_cuts(sqlite_bench):
    with open_cuts(sqlite_bench) as cuts:
        yield cuts


@pytest.fixture(scope="module")
def recorded(sqlite_cuts):
    """A first day, after a run that died in it."""
    return sqlite_cuts.record(UNSYNCED)


def broken_by(cuts, recorded, places):
    broken = []
    for number, (at, remains) in enumerate(places):
        broken += cuts.cut(recorded, at, remains, SEED + number).broken
    return broken


def test_cuts_of_a_first_day(sqlite_cuts, recorded):
    """At every eightieth durable step, and one where some of what was not synced is left."""
    assert len(recorded.syncs) > 50
    left = by_chance(recorded, random.Random(SEED))
    places = [*list(at_every_step(recorded))[4::80], next(left)]
    assert broken_by(sqlite_cuts, recorded, places) == []


def test_a_ledger_whose_making_was_cut_off(sqlite_cuts, recorded):
    """Its first page is zeros, and its journal takes that back: as if there were no ledger yet."""
    gone = [operation.kind == "unname" and "-journal" in operation.name for operation in recorded.operations]
    assert broken_by(sqlite_cuts, recorded, [(gone.index(True) - 1, "names of zeros")]) == []


def test_a_folder_that_a_dead_run_made_and_did_not_sync(sqlite_cuts, recorded):
    """The next run finds the folder, and puts measurements in it that must outlast the cut."""
    shown = recorded.sights[0][0]
    assert broken_by(sqlite_cuts, recorded, [(shown, "all unsynced lost")]) == []


def test_a_disk_that_forgets_the_ledger_is_caught(sqlite_cuts, recorded):
    """The control: without these syncs the judge finds what was lost."""
    deaf = Rules(deaf=(DEAF["sqlite"][0],))
    result = sqlite_cuts.cut(recorded, recorded.ends[-1], "all unsynced lost", SEED, deaf)
    assert result.has_lost

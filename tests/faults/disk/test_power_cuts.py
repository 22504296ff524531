"""A power cut loses what was not synced: no day is drawn twice, lost or changed by one."""

import random

import pytest

from tests.by_night import few
from tests.faults.disk.cuts import ANY_DATABASE, FIRST, at_every_step, by_chance, open_cuts
from tests.faults.disk.model import Rules
from tests.faults.disk.mount import why_not
from tests.temporary_postgresql import find_binaries

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no file system of our own here: {why_not()}")

SEED = 20160601
DEAF = {
    "the ledger's syncs": "/trusted/ledger.sqlite",
    "the measurements' syncs": "/trusted/measurements",
    "the published folder's syncs": "/published",
}


@pytest.fixture(scope="module")
def sqlite_cuts(sqlite_bench):
    with open_cuts(sqlite_bench) as cuts:
        yield cuts


@pytest.fixture(scope="module")
def first_day(sqlite_cuts):
    return sqlite_cuts.record(FIRST)


def broken_by(cuts, recorded, places):
    broken = []
    for number, (at, remains) in enumerate(places):
        broken += cuts.cut(recorded, at, remains, SEED + number).broken
    return broken


@pytest.mark.parametrize("each", [40, pytest.param(10, marks=pytest.mark.nightly)])
def test_cuts_of_a_first_day(sqlite_cuts, first_day, each):
    """At every fortieth durable step, and a few where some of what was not synced is left."""
    assert len(first_day.syncs) > 50
    chance = random.Random(SEED)
    left = by_chance(first_day, chance)
    places = [*list(at_every_step(first_day))[4::each], *(next(left) for _ in range(40 // each))]
    assert broken_by(sqlite_cuts, first_day, places) == []


@pytest.mark.nightly
def test_cuts_after_readers_were_shown_a_day(sqlite_cuts):
    """Around a new catalogue: what readers saw before the cut is what they see after it, or comes back."""
    recorded = sqlite_cuts.record(ANY_DATABASE[2])
    shown = [at for at, _ in recorded.sights]
    places = [
        (at + more, remains)
        for at in shown[2::3]
        for more, remains in ((1, "all unsynced lost"), (3, "some by chance"))
    ]
    assert len(places) >= 4
    assert broken_by(sqlite_cuts, recorded, places) == []


def test_a_ledger_whose_making_was_cut_off(sqlite_cuts, first_day):
    """Its first page is zeros, and its journal takes that back: as if there were no ledger yet."""
    gone = [operation.kind == "unname" and "-journal" in operation.name for operation in first_day.operations]
    assert broken_by(sqlite_cuts, first_day, [(gone.index(True) - 1, "names of zeros")]) == []


def test_a_folder_that_a_dead_run_made_and_did_not_sync(sqlite_cuts):
    """The next run finds the folder, and puts measurements in it that must outlast the cut."""
    (history,) = (one for one in ANY_DATABASE if "preallocate, 3" in one.name)
    recorded = sqlite_cuts.record(history)
    shown = recorded.sights[0][0]
    assert broken_by(sqlite_cuts, recorded, [(shown, "all unsynced lost")]) == []


@pytest.mark.parametrize("what", few(DEAF, 1))
def test_a_disk_that_forgets_what_it_must_keep_is_caught(sqlite_cuts, first_day, what):
    """The control: without these syncs the judge finds what was lost."""
    result = sqlite_cuts.cut(
        first_day, first_day.ends[-1], "all unsynced lost", SEED, Rules(deaf=(DEAF[what],))
    )
    assert result.broken
    assert result.double_spends or result.lost


@pytest.mark.skipif(find_binaries() is None, reason="no PostgreSQL server here")
@pytest.mark.nightly
def test_cuts_with_postgresql_on_the_same_disk(postgresql_bench):
    with open_cuts(postgresql_bench, find_binaries()) as cuts:
        recorded = cuts.record(FIRST)
        chance = random.Random(SEED)
        left = by_chance(recorded, chance)
        places = [(recorded.syncs[len(recorded.syncs) // 2], "all unsynced lost"), next(left)]
        assert broken_by(cuts, recorded, places) == []
        deaf = Rules(syncs_names="/server/", deaf=("/server/pg_wal",))
        result = cuts.cut(recorded, recorded.ends[-1], "all unsynced lost", SEED, deaf)
        assert result.double_spends

"""Disks that are full or read-only, ledgers that are locked or away, and polite stops."""

from contextlib import contextmanager, nullcontext

import pytest

from tests.by_night import few, on_both
from tests.faults.fork_server import Started
from tests.faults.judge import Judge
from tests.faults.systems import locked, mount, on_a_disk_of, read_only, why_no_mounts
from tests.faults.world import DAYS

NO_MOUNTS = pytest.mark.skipif(why_no_mounts() is not None, reason=f"no mounts here: {why_no_mounts()}")
BEFORE = [
    "before mkdir in make_private_folder < DrawingFile.preallocate, 1",
    "after commit in Ledger.begin_draw, 1",
    "after commit in Ledger.record_drawn, 1",
    "after commit in Ledger.record_staged, 1",
]


def stop_and_meet(bench, point, fault=nullcontext, *, polite=False):
    """Stop a night at a point, let it go on while the fault lasts, or after SIGTERM: what it said at its end.

    A run after it completes the day; nothing was given up or drawn twice.
    """
    world = bench.world()
    judge = Judge(world)
    night = Started(bench.night(world, act="stop", point=point, patience_seconds=0.2))
    assert night.wait() == "stopped"
    with fault(world):
        if polite:
            night.terminate()
        night.go_on()
        assert night.wait() == ("terminated" if polite else "ended")
    assert bench.rerun([judge]) == []
    assert judge.voids() == 0
    assert world.samplings() == [DAYS[0]]
    return night.last_words()


@pytest.mark.parametrize(("bench", "point"), on_both(BEFORE[1:] + BEFORE[:1], 1), indirect=["bench"])
def test_a_ledger_locked_for_longer_than_its_timeout(bench, point):
    """Locked after the draw began: what was drawn is whole, and is taken up."""
    assert not stop_and_meet(bench, point, locked).is_good


@pytest.mark.parametrize(
    ("point", "back_before_the_end"),
    [
        (BEFORE[2], True),
        *(pytest.param(point, False, marks=pytest.mark.nightly) for point in BEFORE),
        *(pytest.param(point, True, marks=pytest.mark.nightly) for point in BEFORE if point != BEFORE[2]),
    ],
)
def test_postgresql_stopped_and_started_in_the_middle(
    postgresql_bench, postgresql_cluster, point, back_before_the_end
):
    @contextmanager
    def away(_world):
        postgresql_cluster.stop()
        if back_before_the_end:
            postgresql_cluster.start()
        yield
        if not back_before_the_end:
            postgresql_cluster.start()

    assert stop_and_meet(postgresql_bench, point, away).is_good is back_before_the_end


@NO_MOUNTS
@pytest.mark.parametrize(
    ("bench", "case"),
    on_both(
        [(BEFORE[1], "trusted"), (BEFORE[2], "published"), (BEFORE[2], "trusted"), (BEFORE[1], "published")],
        1,
    ),
    indirect=["bench"],
)
def test_a_folder_that_becomes_read_only(bench, case):
    """Where the draw has begun, the witness cannot be written, and nothing is drawn."""
    point, place = case
    assert not stop_and_meet(bench, point, lambda world: read_only(world.folder / place)).is_good


@pytest.mark.parametrize("point", few(BEFORE[1:] + BEFORE[:1], 1))
def test_a_polite_stop(sqlite_bench, point):
    """SIGTERM: at once where nothing is drawn, after the draw where noise is sampled; never a VOID day."""
    stop_and_meet(sqlite_bench, point, polite=True)


@NO_MOUNTS
@pytest.mark.parametrize("size_kb", few([150, 300], 1))
def test_a_small_disk_that_is_full(sqlite_bench, size_kb):
    world = sqlite_bench.world()
    judge = Judge(world)
    with on_a_disk_of(size_kb, world.folder):
        sqlite_bench.run(world)
        mount("-o", "remount,size=64m", world.folder)
        assert sqlite_bench.rerun([judge]) == []
        assert judge.voids() == 0

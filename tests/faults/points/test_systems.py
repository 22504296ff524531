"""Disks that are full or read-only, ledgers that are locked or away, and polite stops."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.by_night import few, on_both
from tests.faults.judge import Judge
from tests.faults.world import DAYS


def mounted(*words):
    subprocess.run(["mount", *words], check=True, capture_output=True)


@cache
def why_not():
    """Why no mount can be made here; None if one can."""
    if os.geteuid() != 0:
        return "only root may mount"
    with tempfile.TemporaryDirectory() as folder:
        try:
            mounted("-t", "tmpfs", "tmpfs", folder)
        except (OSError, subprocess.CalledProcessError) as error:
            return f"mount is refused ({type(error).__name__})"
        subprocess.run(["umount", folder], check=True)
    return None


NO_MOUNTS = pytest.mark.skipif(why_not() is not None, reason=f"no mounts here: {why_not()}")
BEFORE = [
    "before mkdir in make_private_folder < DrawingFile.preallocate, 1",
    "after commit in Ledger.begin_draw, 1",
    "after commit in Ledger.record_drawn, 1",
    "after commit in Ledger.record_staged, 1",
]


def stop_and_do(bench, point, fault, repair):
    """Stop a night at a point, let the fault come, go on to the end, repair; what the judge says then."""
    world = bench.world()
    judge = Judge(world)
    night = bench.fork_server.start(bench.night(world, act="stop", point=point, patience_seconds=0.2))
    assert night.wait() == "stopped"
    fault(world)
    night.go_on()
    assert night.wait() == "ended"
    said = night.last_words()
    repair(world)
    return judge, said, bench.rerun([judge])


@pytest.mark.parametrize(("bench", "point"), on_both(BEFORE[1:] + BEFORE[:1], 1, 1), indirect=["bench"])
def test_a_ledger_locked_for_longer_than_its_timeout(bench, point):
    held = []

    def lock(world):
        url = world.settings.ledger_url
        is_file = url.get_backend_name() == "sqlite"
        url = url if is_file else url.set(drivername="postgresql+psycopg")
        connection = create_engine(url, poolclass=NullPool).connect()
        if is_file:
            connection.connection.dbapi_connection.isolation_level = None
            connection.exec_driver_sql("BEGIN EXCLUSIVE")
        else:
            # as another writer would: readers are not kept out
            connection.execute(text("LOCK TABLE streams, releases IN EXCLUSIVE MODE"))
        held.append(connection)

    def unlock(_world):
        held.pop().close()

    judge, said, broken = stop_and_do(bench, point, lock, unlock)
    assert broken == []
    assert not said.is_good
    # locked after the draw began: what was drawn is whole, and is taken up
    assert judge.voids() == 0
    assert judge.world.samplings() == [DAYS[0]]


@pytest.mark.parametrize(
    ("point", "back_before_the_end"),
    [
        (BEFORE[1], False),
        (BEFORE[2], True),
        *(pytest.param(point, False, marks=pytest.mark.nightly) for point in BEFORE if point != BEFORE[1]),
        *(pytest.param(point, True, marks=pytest.mark.nightly) for point in BEFORE if point != BEFORE[2]),
    ],
)
def test_postgresql_stopped_and_started_in_the_middle(
    postgresql_bench, postgresql_cluster, point, back_before_the_end
):
    def stop(_world):
        postgresql_cluster.stop()
        if back_before_the_end:
            postgresql_cluster.start()

    def start(_world):
        if not back_before_the_end:
            postgresql_cluster.start()

    judge, said, broken = stop_and_do(postgresql_bench, point, stop, start)
    assert broken == []
    assert said.is_good is back_before_the_end
    assert judge.voids() == 0
    assert judge.world.samplings() == [DAYS[0]]


@pytest.mark.parametrize("point", few(BEFORE[1:] + BEFORE[:1], 1))
def test_a_polite_stop(sqlite_bench, point):
    """SIGTERM: at once where nothing is drawn, after the draw where noise is sampled; never a VOID day."""
    world = sqlite_bench.world()
    judge = Judge(world)
    night = sqlite_bench.fork_server.start(sqlite_bench.night(world, act="stop", point=point))
    assert night.wait() == "stopped"
    night.terminate()
    night.go_on()
    assert night.wait() == "terminated"
    assert sqlite_bench.rerun([judge]) == []
    assert judge.voids() == 0
    assert world.samplings() == [DAYS[0]]


@NO_MOUNTS
@pytest.mark.parametrize(
    ("bench", "case"),
    on_both(
        [
            (BEFORE[1], "trusted"),
            (BEFORE[2], "published"),
            (BEFORE[2], "trusted"),
            (BEFORE[1], "published"),
        ],
        1,
    ),
    indirect=["bench"],
)
def test_a_folder_that_becomes_read_only(bench, case):
    """mount -o bind,ro: root too is refused."""
    point, place = case

    def protect(world):
        folder = world.folder / place
        folder.mkdir(exist_ok=True)
        mounted("--bind", folder, folder)
        mounted("-o", "remount,bind,ro", folder)

    def free(world):
        subprocess.run(["umount", world.folder / place], check=True)

    judge, said, broken = stop_and_do(bench, point, protect, free)
    assert broken == []
    assert not said.is_good
    # where the draw has begun, the witness cannot be written, and nothing is drawn
    assert judge.voids() == 0


@NO_MOUNTS
@pytest.mark.parametrize("size_kb", few([150, 300], 1))
def test_a_small_disk_that_is_full(sqlite_bench, size_kb):
    """The world lies on a tmpfs of this size; the rerun finds it larger."""
    world = sqlite_bench.world()
    judge = Judge(world)
    configuration = world.configuration.read_bytes()
    mounted("-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", world.folder)
    try:
        world.configuration.write_bytes(configuration)
        filled = Path(world.folder, "filler")
        sqlite_bench.run(world)
        mounted("-o", "remount,size=64m", world.folder)
        filled.unlink(missing_ok=True)
        assert sqlite_bench.rerun([judge]) == []
        assert judge.voids() == 0
    finally:
        os.sync()
        subprocess.run(["umount", world.folder], check=True)
        shutil.rmtree(world.folder)

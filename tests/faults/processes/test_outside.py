"""What judges from outside can fail: each of these must be caught, and a whole world must not."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from tests.faults.books import forge, read_books
from tests.faults.processes.machine import Machine, why_not
from tests.faults.processes.outside import (
    judge_outside,
    judge_voids,
    sightings,
)
from tests.faults.processes.reader import look
from tests.faults.world import DAYS

DAY = DAYS[0].isoformat()


@pytest.fixture(scope="module")
def two_worlds(sqlite_bench):
    """Each with the same day, published: two draws of the same readings."""
    worlds = [sqlite_bench.world() for _ in range(2)]
    for world in worlds:
        _, said = sqlite_bench.run(world)
        assert said.is_good
    return worlds


@pytest.fixture
def world(two_worlds, tmp_path):
    """A copy of one of them, which may be spoilt."""
    return two_worlds[0].copied(tmp_path / "world")


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "sightings"


def read(world, notes):
    """A look by a reader that remembers."""
    with notes.open("a") as file:
        look(str(world.settings.published_folder), lambda *seen: print(json.dumps(seen), file=file))


def verdict(world, notes, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    return " ".join(judge_outside(world, notes, temporary, set()))


def test_a_whole_world_passes(world, notes, tmp_path):
    read(world, notes)
    read(world, notes)
    kinds = {kind for kind, *_ in sightings(notes)}
    assert kinds == {"read_published", "bytes", "plain polars"}
    assert verdict(world, notes, tmp_path) == ""


def test_a_published_file_that_is_altered_between_two_reads(world, notes, tmp_path):
    read(world, notes)
    (path,) = world.settings.published_folder.glob("data/*/*.parquet")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    read(world, notes)
    said = verdict(world, notes, tmp_path)
    assert "READER: read_published" in said
    assert "had 2 contents" in said


def test_a_day_that_is_published_again_from_another_draw(two_worlds, world, notes, tmp_path):
    """Whole and consistent each time: only who remembers can tell."""
    read(world, notes)
    shutil.rmtree(world.settings.published_folder)
    shutil.copytree(two_worlds[1].settings.published_folder, world.settings.published_folder)
    read(world, notes)
    said = verdict(world, notes, tmp_path)
    for way in ("read_published", "bytes", "plain polars"):
        assert f"had 2 contents for readers ({way})" in said
    assert "in bytes that the ledger does not know" in said
    assert "READER" not in said


def test_a_day_that_readers_saw_and_the_ledger_gave_up(world, notes, tmp_path):
    read(world, notes)
    forge(
        world, "UPDATE releases SET state = 'VOID', reason = 'OperationalError after the first noise sample'"
    )
    said = verdict(world, notes, tmp_path)
    assert f"readers saw {DAY} revision 0 vintage 0, which is VOID" in said
    assert f"LOST: {DAY} revision 0 is VOID after 1 draws" in said


def test_only_three_deaths_or_a_withdrawal_make_a_day_void(world):
    forge(world, "UPDATE releases SET state = 'VOID', reason = 'its owner died 3 times while drawing'")
    assert "after 1 draws" in " ".join(judge_voids(read_books(world), set()))
    assert judge_voids(read_books(world), {DAY}) == []


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_the_clock_jumps_and_the_disk_is_slow_under_a_process_that_runs(tmp_path):
    """What it says after each line that it is given: the time, and how long a sync takes."""
    program = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
for _ in sys.stdin:
    begun = time.monotonic()
    os.fsync(file)
    print(time.time(), time.monotonic() - begun, flush=True)
    """
    machine = Machine(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "file")],
        env=os.environ | machine.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def ask():
            print(file=process.stdin, flush=True)
            return [float(word) for word in process.stdout.readline().split()]

        assert abs(ask()[0] - time.time()) < 600
        machine.set_clock(-86_400)
        assert abs(ask()[0] + 86_400 - time.time()) < 600
        machine.slow_disk(300)
        assert ask()[1] >= 0.3
        process.stdin.close()


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_who_sleeps_for_long_wakes_when_the_clock_is_there(tmp_path):
    machine = Machine(tmp_path)
    machine.let_time_pass()
    assert machine.ahead_seconds == 0
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(3600)"], env=os.environ | machine.environment
    ) as process:
        while machine.ahead_seconds == 0:
            machine.let_time_pass()
            time.sleep(0.01)
        assert process.wait(60) == 0
    assert 3600 - 60 <= machine.ahead_seconds <= 3660

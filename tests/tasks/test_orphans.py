"""The trusted zone: orphans go, files are private, nothing spills, and no process leaves a core dump."""

import errno
import os
import resource
import signal
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from tasks.trusted import files as private_files
from tasks.trusted.covariates import private_zones
from tasks.trusted.files import DrawingFile, destroy_raw, write_private
from tests.flows.served import gone, kill_all, until
from tests.tasks.conftest import DAY

BUSY = """
import sys
from multiprocessing.connection import Connection
from tasks.ingest.sandbox import end_with_peer
asker = Connection(int(sys.argv[1]))
end_with_peer(asker.fileno())
print("begun", flush=True)
while True:
    sum(range(100_000))
"""
POOL = """
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from tasks.ingest.sandbox import end_with_parent
busy = "import os; os.write(1, b'%d\\\\n' % os.getpid())\\nwhile True: sum(range(100_000))"
if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=end_with_parent)
    for _ in range(2):
        pool.submit(exec, busy)
    time.sleep(600)
"""
"""Each worker writes its id at once, so that there are two of them."""


def started(text, *words, **more):
    command, pipe = [sys.executable, "-c", text, *words], subprocess.PIPE
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=pipe, text=True, **more)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while it is busy", "before it began"])
def test_a_busy_process_ends_when_its_peer_is_closed(when):
    own, theirs = Pipe()
    if when == "before it began":
        own.close()
    process = started(BUSY, str(theirs.fileno()), pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        if not own.closed:
            assert process.stdout.readline() == "begun\n"
            own.send("nobody reads this: it is busy")
            assert not gone([process.pid])
            own.close()
        until("it ends", lambda: gone([process.pid]), 60)
    finally:
        process.kill()
        process.communicate()


def test_a_pool_s_workers_end_when_its_owner_is_killed():
    pool = started(POOL)
    workers = [int(pool.stdout.readline()) for _ in range(2)]
    try:
        assert not any(gone([one]) for one in workers)
        pool.kill()
        pool.wait()
        until("they end", lambda: gone(workers), 60)
    finally:
        pool.kill()
        kill_all(workers)
        pool.communicate()


def test_a_power_cut_brings_neither_destroyed_raw_state_nor_a_discarded_draw_back(tmp_path, monkeypatch):
    """What each synced folder held at that moment is what a power cut right after it leaves."""
    synced, genuine = [], private_files.sync_folder

    def note(folder):
        genuine(folder)
        synced.append(sorted(path.name for path in folder.iterdir()))

    monkeypatch.setattr(private_files, "sync_folder", note)
    file = DrawingFile(tmp_path / "day", 1)
    file.preallocate(100, 100)
    file.fill(b"measured", b"raw state")
    destroy_raw(tmp_path / "day")
    assert [name for name in synced[-1] if name.endswith(".raw")] == []
    file.discard()
    assert synced[-1] == ["1.intact"]


def test_a_file_that_a_full_disk_cut_short_gives_its_space_back(tmp_path):
    """A run after the other would leave its part, and the disk stay full."""
    write_private(tmp_path / "staged", b"before")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as raised:
            write_private(tmp_path / "staged", bytes(2**20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert raised.value.errno == errno.EFBIG
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"staged": b"before"}


@pytest.mark.parametrize("damaged", [None, "no population", "link to itself"])
def test_the_folders_of_a_stream_are_known_by_the_configuration_above_a_file(tmp_path, damaged):
    """Also where the stream's own folder is its input folder, and where another file is not usable."""
    gas, bad, zone = tmp_path / "gas", tmp_path / "bad.toml", "dumps" if damaged else "."
    gas.mkdir()
    (gas / "optstream.toml").write_text(f'[input]\nfolder = "{zone}"\n')
    if damaged == "no population":
        bad.write_text("streams = 1\n")
    elif damaged:
        bad.symlink_to(bad)
    load, population = tmp_path / "load", SimpleNamespace(population_file=damaged and str(bad))
    places = {"folder": load, "input_folder": load / "dumps", "trusted_folder": load / "trusted"}
    settings = SimpleNamespace(**places, privacy=population)
    found = private_zones(settings, gas / "weather.csv" if damaged else gas).values()
    assert gas / zone in {one.resolve() for one in found}


READ = """
import sys
from datetime import date
from pathlib import Path
from tasks.config import load_settings
from tasks.ingest import discover, ingest
if "spill" in sys.argv[3:]:
    from tasks.ingest import formats as files
    files.forbid_spilling = lambda: None
settings = load_settings(Path(sys.argv[1]))
(read,) = ingest(settings, list(discover(settings, [date.fromisoformat(sys.argv[2])]).values()))
print(read.metrics["rows"].sum())
"""
CUSTOMERS = 300
SHORT = {f"POLARS_OOC_{name}": "1" for name in ("MEMORY_BUDGET_MB", "DRIFT_THRESHOLD", "SPILL_MIN_BYTES")}
"""As if the memory were full, whatever this process has read before."""


def test_rows_are_spilled_by_polars_and_not_by_us(small, tmp_path):
    """Who repeats a row is read again by name, with all of the customer's rows."""
    stream = small(schema="metered")
    rows = stream.metered("84", 1.0)
    crowd = pl.concat(rows.with_columns(customer_id=pl.lit(f"c{number}")) for number in range(CUSTOMERS))
    stream.write("84", pl.concat([crowd, crowd]))
    stream.write("11", stream.metered("11", 1.0))
    spilled = {}
    for how in ("spill", ""):
        place = tmp_path / f"place {how}"
        command = [sys.executable, "-c", READ, str(stream.settings.file), str(DAY), how]
        env = os.environ | SHORT | {"POLARS_OOC_SPILL_DIR": str(place)}
        said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        assert int(said) > len(crowd)
        spilled[how] = place.exists()
    assert spilled == {"spill": True, "": False}


# A process that reads or draws leaves no core dump, however it ends: real processes, ended by abort().

PROGRAM = """
import os, resource, sys
from datetime import date
from pathlib import Path
from tests.failing import NoiseMeanwhile
from tests.tasks.two_regions import Installation
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
os.chdir(sys.argv[1])
if sys.argv[2] == "before it reads":
    os.abort()
Installation(Path(sys.argv[1])).release(date(2016, 6, 1), noise=NoiseMeanwhile(os.abort, at=1))
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_CORE)[1] == 0
    or Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"),
    reason="this machine writes no core file for anybody",
)
@pytest.mark.parametrize(
    ("end", "dumped"),
    [pytest.param("before it reads", True, marks=pytest.mark.nightly), ("at its first sample", False)],
)
def test_a_process_that_draws_leaves_no_core_dump(installation, end, dumped):
    """Control: the same process before it has read a dump leaves one."""
    command = [sys.executable, "-c", PROGRAM, str(installation.folder), end]
    ended = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status = os.waitpid(ended.pid, 0)
    ended.returncode = os.waitstatus_to_exitcode(status)
    for core in installation.folder.glob("core*"):
        core.unlink()
    assert os.WIFSIGNALED(status)
    assert os.WCOREDUMP(status) == dumped


@pytest.mark.slow
def test_it_is_not_dumpable_either_where_core_dumps_go_to_a_program():
    """The kernel does not ask the limit there; whether it is dumpable it always asks."""
    program = (
        "from tasks.trusted.files import forbid_core_dumps; import ctypes, resource; "
        "get = 3; before = ctypes.CDLL(None).prctl(get, 0, 0, 0, 0); forbid_core_dumps(); "
        "print(before, ctypes.CDLL(None).prctl(get, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "1 0 0\n"

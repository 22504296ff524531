"""A backfill that is killed or interrupted: no worker lives on with readings."""

import fcntl
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest

from flows.orchestration.backfill import MARK, _marked, begin_worker
from tasks.config import load_settings
from tests.faults.world import configured, deliver
from tests.flows.served import CHECKOUT, PROGRAM, kill_all, until

FIRST = date(2016, 5, 20)
DAYS = [FIRST + timedelta(days=number) for number in range(24)]
LONGEST_WAIT = 120.0

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "optstream.toml").write_text(configured())
    return load_settings(tmp_path / "optstream.toml")


def session_of(leader):
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                command = (stat.parent / "cmdline").read_text().replace("\0", " ")
                found[int(stat.parent.name)] = int(parent), command
    return found


def no_process_of(process):
    until("no process lives on", lambda: not session_of(process.pid), LONGEST_WAIT)


@contextmanager
def two_busy_workers(settings, request, server):
    """A backfill of two months whose workers both have a reader of dumps; nothing of it lives on."""
    deliver(settings, DAYS)
    variables = {"PREFECT_API_URL": request.getfixturevalue("prefect_api")} if server else {}
    words = ["backfill", "--from", str(DAYS[0]), "--to", str(DAYS[-1]), "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, *PROGRAM, *words, "--config", str(settings.file)],
        cwd=CHECKOUT,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests may run in the background
    )

    def readers():
        session = session_of(process.pid)
        of_readers = [parent for parent, command in session.values() if "tasks.ingest.sandbox" in command]
        return sum("spawn_main" in session.get(parent, (0, ""))[1] for parent in of_readers)

    try:
        until("both workers read", lambda: readers() == 2, LONGEST_WAIT)
        yield process
    finally:
        process.kill()
        process.wait()
        kill_all([*session_of(process.pid)])


@pytest.mark.parametrize(("server", "database"), [(False, ""), (True, ""), (False, "postgresql_url")])
@pytest.mark.nightly
def test_no_process_lives_on(settings, request, server, database):
    if database:
        text = settings.file.read_text()
        url = request.getfixturevalue(database)
        settings.file.write_text(text.replace("sqlite:///trusted/ledger.sqlite", url))
    with two_busy_workers(settings, request, server) as process:
        process.kill()
        process.wait()
        no_process_of(process)
        left = list(settings.trusted_folder.glob(f"{MARK}*"))
        with _marked(settings) as mark:
            assert list(settings.trusted_folder.glob(f"{MARK}*")) == [mark]
        hidden = {path.name for path in settings.trusted_folder.glob(".*")}
        assert (len(left), hidden - {".lock"}) == (1, set()), "a lock is there once a day was drawn"


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.nightly
def test_ctrl_c_ends_it(settings, request, server):
    """By a terminal: all of its processes get the signal, workers in the middle of a day, too."""
    with two_busy_workers(settings, request, server) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(LONGEST_WAIT) == 130
        no_process_of(process)
        assert not list(settings.trusted_folder.glob(f"{MARK}*"))


def test_the_mark_of_a_backfill_that_lives_stays(settings):
    settings.trusted_folder.mkdir(mode=0o700)
    live, dead = (settings.trusted_folder / f"{MARK}{name}" for name in ("live", "dead"))
    dead.touch()
    with live.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with _marked(settings) as mark:
            assert set(settings.trusted_folder.iterdir()) == {mark, live}
            assert oct(mark.stat().st_mode & 0o777) == "0o600"
            with _marked(settings) as other:
                assert set(settings.trusted_folder.iterdir()) == {mark, live, other}
    assert list(settings.trusted_folder.iterdir()) == [live]


def interrupted():
    import polars as pl  # it takes Ctrl-C over

    pl.DataFrame({"a": [1]}).lazy().collect()
    signal.raise_signal(signal.SIGINT)
    return os.getpid()


def test_an_interrupted_worker_breaks_its_pool():
    """Else KeyboardInterrupt comes back, and ends the thread of Prefect that passes results on."""
    with ProcessPoolExecutor(1, get_context("spawn"), begin_worker) as pool:
        assert type(pool.submit(interrupted).exception(LONGEST_WAIT)) is BrokenProcessPool

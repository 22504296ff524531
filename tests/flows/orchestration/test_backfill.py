"""Filling in a span by the real flow: months as subflows, in processes, on Dask; killed and interrupted."""

import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from distributed import LocalCluster
from prefect.client.orchestration import get_client
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.orchestration import release
from flows.orchestration.backfill import (
    MARK,
    POOL,
    _marked,
    backfill,
    begin_worker,
    release_month,
    run_backfill,
)
from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.errors import ConfigurationError, ParameterError
from optstream.ledger import ReleaseState, open_ledger
from tasks.ledger.verify import verify
from tasks.release.run import Status
from tests.faults.world import configure, configured, deliver
from tests.flows.command import invoke
from tests.flows.served import CHECKOUT, PROGRAM, kill_all, until
from tests.tasks.two_regions import DRAWN, Installation

FIRST, LAST = date(2016, 5, 30), date(2016, 6, 1)
DAYS = [FIRST, FIRST + timedelta(days=1), LAST]
ABSENT = LAST + timedelta(days=1)
SPAN = ("--from", str(FIRST), "--to", str(ABSENT))


@pytest.fixture
def settings(tmp_path):
    return configure(tmp_path, configured())


@pytest.fixture
def here(settings, tmp_path, monkeypatch):
    """Three days of two months, of which one is refused, and one more without dumps."""
    monkeypatch.chdir(tmp_path)
    deliver(settings, DAYS)
    broken = tmp_path / f"dumps/region=84/date={FIRST}/part-0.parquet"
    pl.read_parquet(broken).with_columns(load_mw=pl.lit(None, pl.Float64)).write_parquet(broken)
    return tmp_path


def published(here):
    return sorted(set(read_published(here / "published", verify=True)["date"]))


@pytest.fixture
def logged():
    """What runs log, as the server's pages show it."""
    lines, log = [], logging.getLogger("prefect.flow_runs")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    yield lines
    log.removeHandler(handler)


@pytest.mark.usefixtures("prefect_api")
def test_a_span_is_filled_in_once_and_what_is_left_is_listed(here, settings, logged):
    priced = invoke("backfill", *SPAN, "--dry-run")
    assert priced.exit_code == 0
    assert "3 days to release, 0 to finish, 1 without a dump" in priced.output
    assert "no reading was read, nothing drawn or charged" in priced.output
    assert not (here / "published").exists()

    first = invoke("backfill", *SPAN)
    assert first.exit_code == 1
    assert "2016-05-30 to 2016-05-31: 1 published, 1 refused; 2 of 3 days" in first.output
    assert "must not be null or NaN" in " ".join(first.output.split())
    assert f"without a dump (1): {ABSENT}" in first.output
    assert first.output.splitlines()[-1].startswith("2 days in ")
    assert published(here) == [FIRST + timedelta(days=number) for number in (1, 2)]
    assert check_files(here / "published") == []
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=3)
    assert [run.name for run in runs] == [
        "two-regions 2016-06-01",
        "two-regions 2016-05-30 to 2016-05-31",
        f"two-regions backfill {FIRST} to {ABSENT}",
    ]
    assert {f"{day} published" for day in published(here)} <= {said.partition(":")[0] for said in logged}
    assert any(said.startswith(f"{FIRST} refused: ") for said in logged)

    before = (here / "published/catalogue.json").read_bytes()
    ledger = open_ledger(settings.ledger_url)
    events = ledger.head("two-regions")
    again = invoke("backfill", "--from", "2016-05-31", "--to", str(LAST))
    assert again.exit_code == 0
    assert "0 days to release, 0 to finish, 0 without a dump, 2 published" in again.output
    assert "nothing to do; nothing changed, nothing spent" in again.output
    assert (here / "published/catalogue.json").read_bytes() == before
    assert ledger.head("two-regions") == events


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.nightly
def test_months_run_in_processes_and_an_interrupted_day_is_finished(here, server, request, monkeypatch):
    """One day was drawn by a run that let it go: it is published from what that run drew."""
    if server:
        request.getfixturevalue("prefect_api")
    else:
        monkeypatch.delenv("PREFECT_API_URL", raising=False)
    own = nullcontext() if server else temporary_settings({PREFECT_API_URL: None})
    gone = Installation(here, datetime.now(UTC) - timedelta(hours=1))
    gone.release(LAST, steps=DRAWN)
    drawn = gone.record(LAST).measurements_hash

    with own:
        result = invoke("backfill", *SPAN, "--workers", "2", "--json")
    document = json.loads(result.output)
    assert document["format"] == "optstream.backfill/1"
    assert document["without_dump"] == [str(ABSENT)]
    assert [day["status"] for day in document["days"]] == ["refused", "published", "published"]
    assert gone.record(LAST).measurements_hash == drawn
    assert published(here) == [FIRST + timedelta(days=number) for number in (1, 2)]


def test_a_cluster_needs_a_shared_ledger_and_a_server(here, monkeypatch):
    with pytest.raises(ConfigurationError, match="PostgreSQL"):
        invoke("backfill", *SPAN, "--dask", "tcp://127.0.0.1:1")
    assert not (here / "trusted").exists()
    configure(here, configured("postgresql://nobody@/none"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with pytest.raises(ConfigurationError, match="PREFECT_API_URL"):
        invoke("backfill", *SPAN, "--dask", "tcp://127.0.0.1:1")


def test_a_worker_of_another_trusted_folder_and_a_span_that_ends_first_release_nothing(here):
    mark = here / "trusted/.backfill-elsewhere"
    with pytest.raises(ConfigurationError, match="mount the same one"):
        release_month.fn(str(here / "optstream.toml"), "two-regions", [str(LAST)], 1.0, str(mark))
    # the flow is called by schedulers too: no exception of the command line
    with pytest.raises(ParameterError, match="the last day, 2016-06-01, comes before the first, 2016-06-02"):
        backfill.fn(str(here / "optstream.toml"), "2016-06-02", "2016-06-01")
    assert not (here / "trusted").exists()


class Broken:
    """A pool of processes of which one was killed."""

    def submit(self, *_asked):
        future = Future()
        future.set_exception(BrokenProcessPool())
        return future


def test_a_worker_that_is_killed_is_said_with_its_remedy(here):
    with temporary_settings({PREFECT_API_URL: None}), release.bound(POOL, Broken()):
        ended = backfill.fn(str(here / "optstream.toml"), str(FIRST), str(LAST), at_once=True)
    assert [day.day for day in ended] == DAYS
    assert all("run the same backfill again, with fewer --workers" in day.message for day in ended)
    assert not (here / "published").exists()


def vintages(here):
    return [entry.vintage for entry in read_catalogue(here / "published").entries]


def test_a_backfill_that_died_before_its_new_estimates_makes_them_the_next_time(tmp_path, monkeypatch):
    """Three days of two months, of which the last two are given new estimates."""
    monkeypatch.chdir(tmp_path)
    text = configured(mechanism="HistoryInformed") + "[release]\nrevise_days = 2\n"
    deliver(configure(tmp_path, text), DAYS)
    span = ("backfill", "--from", str(FIRST), "--to", str(LAST))
    with temporary_settings({PREFECT_API_URL: None}):
        with monkeypatch.context() as dying:
            dying.setattr(release, "revised", lambda run, asked: [])
            assert invoke(*span).exit_code == 0
        assert vintages(tmp_path) == [0, 0, 0]
        again = invoke(*span)
        assert again.exit_code == 0, again.output
        assert "nothing to do" not in again.output
        assert vintages(tmp_path) == [1, 1, 0]
        assert "nothing to do" in invoke(*span).output


# Backfills whose processes are killed or interrupted: no worker lives on with readings.

MANY_DAYS = [date(2016, 5, 20) + timedelta(days=number) for number in range(24)]
LONGEST_WAIT = 120.0


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
    deliver(settings, MANY_DAYS)
    variables = {"PREFECT_API_URL": request.getfixturevalue("prefect_api")} if server else {}
    words = ["backfill", "--from", str(MANY_DAYS[0]), "--to", str(MANY_DAYS[-1]), "--workers", "2"]
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
        settings = configure(settings.folder, configured(request.getfixturevalue(database)))
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_interrupted_worker_breaks_its_pool():
    """Else KeyboardInterrupt comes back, and ends the thread of Prefect that passes results on."""
    with ProcessPoolExecutor(1, get_context("spawn"), begin_worker) as pool:
        assert type(pool.submit(interrupted).exception(LONGEST_WAIT)) is BrokenProcessPool


@pytest.fixture
def cluster(prefect_api, monkeypatch):
    """Two workers, each a process of one thread, that know the server and never spill."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None) as cluster:
        yield cluster


class Killer(threading.Thread):
    """Kills the worker in the middle of the first month: some of its days are drawn, none is published."""

    def __init__(self, settings):
        super().__init__(daemon=True)
        self._ledger = open_ledger(settings.ledger_url)
        self.killed = None

    def run(self):
        deadline = time.monotonic() + 120
        while self.killed is None and time.monotonic() < deadline:
            known = [one for one in self._ledger.releases("two-regions") if one.period < "2016-06"]
            if sum(one.state is ReleaseState.DRAWN for one in known) >= 2:
                self.killed = int(known[0].owner.split(":")[1])
                os.kill(self.killed, signal.SIGKILL)
            time.sleep(0.01)


@pytest.mark.nightly
def test_a_worker_killed_in_the_middle_loses_nothing(settings, postgresql_url, cluster):
    """Twelve days of two months on a Dask cluster of two worker processes, the ledger in PostgreSQL."""
    settings, days = configure(settings.folder, configured(postgresql_url)), MANY_DAYS[2:14]
    deliver(settings, days)
    progress = SimpleNamespace(months=lambda days: None, step=lambda label: nullcontext())
    killer = Killer(settings)
    killer.start()
    dask = cluster.scheduler_address
    works = run_backfill(settings, days[0], days[-1], progress, dask=dask, lease_minutes=0.05)
    killer.join()
    assert killer.killed not in (None, os.getpid())
    assert {work.day: work.status for work in works} == dict.fromkeys(days, Status.PUBLISHED)
    assert sorted(set(read_published(settings.published_folder, verify=True)["date"])) == days
    assert check_files(settings.published_folder) == []
    ledger = open_ledger(settings.ledger_url)
    first_releases = settings.model.epsilon * (1 - settings.budget.restatement_share)
    assert 0 <= first_releases - ledger.worst("people").epsilon <= first_releases / 10**6
    assert list(verify(settings, ledger).problems) == []
    records = ledger.releases("two-regions")
    assert [record.state for record in records] == [ReleaseState.PUBLISHED] * len(days)
    assert sum(record.redraws for record in records) <= 1

"""Months on a Dask cluster of two worker processes, the ledger in PostgreSQL, one of the workers killed."""

import os
import signal
import threading
import time
from contextlib import nullcontext
from datetime import date, timedelta
from types import SimpleNamespace

import pytest
from distributed import LocalCluster

from flows.orchestration.backfill import run_backfill
from optstream.catalogue import check_files, read_published
from optstream.ledger import ReleaseState, open_ledger
from tasks.config import load_settings
from tasks.ledger.verify import verify
from tasks.release.run import Status
from tests.faults.world import configured, deliver

FIRST, LAST = date(2016, 5, 22), date(2016, 6, 2)
DAYS = [FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1)]


@pytest.fixture
def settings(tmp_path, postgresql_url):
    file = tmp_path / "optstream.toml"
    file.write_text(configured(postgresql_url))
    settings = load_settings(file)
    deliver(settings, DAYS)
    return settings


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
def test_a_worker_killed_in_the_middle_loses_nothing(settings, cluster):
    progress = SimpleNamespace(months=lambda days: None, step=lambda label: nullcontext())
    killer = Killer(settings)
    killer.start()
    dask = cluster.scheduler_address
    works = run_backfill(settings, FIRST, LAST, progress, dask=dask, lease_minutes=0.05)
    killer.join()
    assert killer.killed not in (None, os.getpid())
    assert {work.day: work.status for work in works} == dict.fromkeys(DAYS, Status.PUBLISHED)
    assert sorted(set(read_published(settings.published_folder, verify=True)["date"])) == DAYS
    assert check_files(settings.published_folder) == []
    ledger = open_ledger(settings.ledger_url)
    first_releases = settings.model.epsilon * (1 - settings.budget.restatement_share)
    assert 0 <= first_releases - ledger.worst("people").epsilon <= first_releases / 10**6
    assert list(verify(settings, ledger).problems) == []
    records = ledger.releases("two-regions")
    assert [record.state for record in records] == [ReleaseState.PUBLISHED] * len(DAYS)
    assert sum(record.redraws for record in records) <= 1

"""A night whose dumps the workers of a Dask cluster read, one of them killed: drawn once, charged once."""

from contextlib import contextmanager
from datetime import date
from functools import partial

import dask
import pytest
from distributed import LocalCluster

from flows.cli.output import Terminal
from flows.orchestration import calls, workers
from flows.orchestration.calls import in_one_run
from flows.orchestration.release import run_days
from optstream.ledger import ReleaseState, open_ledger
from tasks.config import load_settings
from tasks.ingest import days as summed
from tasks.ledger.verify import verify
from tasks.operate.simulate import simulate
from tasks.release.stages import Status
from tests.faults.world import configured
from tests.killed_once import killed_once

DAY = date(2016, 6, 1)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Of a day that counts as large."""
    monkeypatch.setattr(summed, "LEAST_CELLS", 0)
    monkeypatch.setattr(calls, "STEP_PAUSES", (0, 0))
    file = tmp_path / "optstream.toml"
    ledger = "sqlite:///trusted/ledger.sqlite"
    file.write_text(configured(ledger))
    settings = load_settings(file)
    leaves = settings.tree_of(DAY).leaves
    simulate(settings.input_folder, leaves=leaves, calendar=settings.calendar, days=[DAY], seed=1)
    return settings


def run_with(settings, address):
    with in_one_run():
        (ended,) = run_days(settings, [DAY], Terminal(as_json=True), dask=address)
    return ended.outcome


@contextmanager
def cluster(target=False, n_workers=2):
    """Workers, each a process of one thread, and those that take the place of one that is killed.

    target: of a worker's memory, from which on it writes to its disk, whatever `spill` says.
    """
    given = {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": target}
    with dask.config.set(given), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__SPILL", "False")
        patch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__TARGET", str(target))
        with LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as running:
            yield running


@pytest.mark.nightly
def test_a_reader_killed_in_the_middle_costs_nothing_twice(settings, tmp_path, monkeypatch):
    mark = tmp_path / "killed"
    monkeypatch.setattr(workers, "_read_here", partial(killed_once, workers._read_here, mark))
    with cluster() as running:
        outcome = run_with(settings, running.scheduler_address)
    assert (outcome.status, mark.exists()) == (Status.PUBLISHED, True)
    ledger = open_ledger(settings.ledger_url)
    (record,) = ledger.releases("two-regions")
    assert (record.state, record.redraws) == (ReleaseState.PUBLISHED, 0)
    assert ledger.worst("people").epsilon == settings.model.epsilon
    assert list(verify(settings, ledger).problems) == []


@pytest.mark.nightly
def test_workers_that_may_spill_are_refused_before_anything_is_charged(settings):
    with cluster(target=0.6) as running:
        outcome = run_with(settings, running.scheduler_address)
    assert "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False" in outcome.message
    assert open_ledger(settings.ledger_url).releases("two-regions") == ()


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_named(settings, monkeypatch):
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.2)
    outcome = run_with(settings, "tcp://127.0.0.1:1")
    assert outcome.status is Status.FAILED
    assert "no scheduler of a Dask cluster answers at tcp://127.0.0.1:1" in outcome.message

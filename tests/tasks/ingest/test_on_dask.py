"""Dumps read by the workers of a cluster: the same integers, alarms and refusals, whoever is killed."""

from contextlib import contextmanager
from datetime import date

import dask
import numpy as np
import polars as pl
import pytest
from distributed import Client, LocalCluster

from flows.orchestration import workers
from optstream.errors import ConfigurationError
from tasks.ingest import customers as people
from tasks.ingest import discover, ingest
from tasks.ingest.rows import without_ledger
from tests.failing import raising
from tests.tasks.conftest import DAY
from tests.tasks.ingest.read_spread import read


@pytest.fixture(scope="module")
def client():
    """Workers that write nothing to their disks: others are not given a part of the reading."""
    with (
        dask.config.set(
            {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}
        ),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__SPILL", "False")
        patch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__TARGET", "False")
        with _running() as client:
            yield client


@contextmanager
def _running():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def same(client, stream, mark=None):
    """Read here and there; what both found."""
    here = read(stream.settings.file, [DAY])
    there = client.submit(read, stream.settings.file, [DAY], mark, pure=False).result()
    assert here[2] == []
    assert there[:2] == here[:2]
    return there


@pytest.mark.nightly
def test_every_leaf_is_read_by_itself_and_nothing_else_changes(client, small):
    stream = small(schema="metered")
    mover = stream.metered("m", 5.0)
    stream.write("84", pl.concat([stream.metered("a", 0.0005), mover[40:]]), name="1.parquet")
    stream.write("84", stream.metered("a", 1.0), name="2.parquet")
    stream.write("11", pl.concat([stream.metered("b", float("inf")), mover[:41]]))
    periods, metrics, asked = same(client, stream)
    assert np.array_equal(periods[0][0], [1] * 41 + [5001] * 7)
    assert metrics[0][1]["two_leaves"] == 1
    assert asked == [2, 2]


@pytest.mark.slow
def test_a_broken_file_is_found_there_too(client, small):
    stream = small(schema="metered")
    stream.write("84", stream.metered("a", 1.0))
    path = stream.write("11", stream.metered("b", pl.Series(np.linspace(0, 1, 48))))
    spoiled = bytearray(path.read_bytes())
    spoiled[8:200] = bytes(192)
    path.write_bytes(spoiled)
    periods, metrics, _ = same(client, stream)
    assert periods == [None]
    assert metrics[0][1]["file_fault"] == "unreadable"


@pytest.mark.nightly
def test_workers_that_may_spill_are_given_nothing(small):
    stream = small(schema="metered")
    for region, name in (("84", "a"), ("11", "b")):
        stream.write(region, stream.metered(name, 1.0))
    with dask.config.set({"distributed.worker.memory.target": 0.6}), _running() as client:
        assert same(client, stream)[2] == []


def other_process(work, items):
    """What a worker does that hashes otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "_hash", lambda customer: customer.hash(seed=1) & people.HASH)
        return [work(item) for item in items]


def test_a_worker_that_hashes_otherwise_is_refused(small):
    """It would find nobody in two leaves, and one customer would count twice."""
    stream = small(schema="metered")
    stream.write("84", stream.metered("m", 1.0))
    stream.write("11", stream.metered("m", 2.0))
    dumps = list(discover(stream.settings, [DAY]).values())
    with pytest.raises(ConfigurationError, match="another version of polars"):
        ingest(stream.settings, dumps, other_process)


def test_what_a_worker_raises_stays_there():
    assert workers.quietly(lambda item: item, 3) == (3,)
    told = workers.quietly(raising(ValueError("12345.678")), 0)
    assert "12345" not in told
    assert "ValueError" in told
    with pytest.raises(ConfigurationError, match="a worker of the cluster failed"):
        workers._sound(told)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["aggregated", pytest.param("metered", marks=pytest.mark.nightly)])
def test_a_part_whose_worker_is_killed_is_read_by_another(client, small, tmp_path, kind):
    stream, mark = small(schema=kind), tmp_path / "killed"
    for number, region in enumerate(("84", "11")):
        rows = stream.metered(region, np.arange(48.0) + number)
        stream.write(region, rows if kind == "metered" else rows.drop("customer_id"))
    periods, _, asked = same(client, stream, mark)
    assert mark.exists()
    assert asked == ([2, 2] if kind == "metered" else [2])
    assert np.array_equal(periods[0], [np.arange(48) * 1000, np.arange(1, 49) * 1000])


@pytest.mark.slow
def test_what_travels_holds_no_ledger(small):
    stream = small(schema="metered")
    assert stream.settings.ledger_url != ""
    travelling = without_ledger(stream.settings)
    assert travelling.ledger.url.get_secret_value() == ""
    assert travelling.tree_of(date.min) == stream.settings.tree_of(date.min)

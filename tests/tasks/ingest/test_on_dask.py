"""Metered dumps read by the workers of a cluster, a leaf each: the same integers, alarms and refusals."""

import numpy as np
import polars as pl
import pytest
from distributed import Client, LocalCluster

from flows.workers import over_cluster
from optstream.stream.private_period import open_private_period
from tasks.ingest import discover, ingest
from tasks.ingest.spread import without_ledger
from tasks.settings import load_settings
from tests.tasks.conftest import DAY


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def read(file, days):
    """What a month's task does on a worker, as plain values; the number of processes that read."""
    settings, asked = load_settings(file), []
    spread = over_cluster(settings)

    def counted(work, items):
        asked.append(len(items))
        return spread(work, items)

    found = discover(settings, days)
    read = ingest(settings, [found[day] for day in days], spread and counted)
    periods = [None if day.period is None else open_private_period(day.period).tolist() for day in read]
    return periods, [day.metrics.to_dicts() for day in read], asked


def same(client, stream):
    """Read here and there; what both found."""
    here = read(stream.settings.file, [DAY])
    there = client.submit(read, stream.settings.file, [DAY], pure=False).result()
    assert here[2] == []
    assert there[:2] == here[:2]
    return there


def test_every_leaf_is_read_by_itself_and_nothing_else_changes(client, small):
    stream = small(schema="metered")
    mover = stream.metered("m", 5.0)
    stream.write("84", pl.concat([stream.metered("a", 0.0005), mover[40:]]), name="1.parquet")
    stream.write("84", stream.metered("a", 1.0), name="2.parquet")
    stream.write("11", pl.concat([stream.metered("b", float("inf")), mover[:41]]))
    periods, metrics, asked = same(client, stream)
    assert np.array_equal(periods[0][0], [1] * 40 + [5001] * 8)
    assert metrics[0][1]["two_leaves"] == 41
    assert asked == [2, 2]


def test_a_broken_file_is_found_there_too(client, small):
    stream = small(schema="metered")
    stream.write("84", stream.metered("a", 1.0))
    path = stream.write("11", stream.metered("b", pl.Series(np.linspace(0, 1, 48))))
    spoiled = bytearray(path.read_bytes())
    spoiled[8:200] = bytes(192)
    path.write_bytes(spoiled)
    periods, metrics, _ = same(client, stream)
    assert periods == [None]
    assert metrics[0][1]["unreadable"] == 1


def test_aggregated_dumps_stay_where_they_are(client, small):
    stream = small()
    for region in ("84", "11"):
        stream.write(region, stream.rows(1.0))
    assert same(client, stream)[2] == []


def test_what_travels_holds_no_ledger(small):
    stream = small(schema="metered")
    assert stream.settings.ledger_url != ""
    travelling = without_ledger(stream.settings)
    assert travelling.ledger.url.get_secret_value() == ""
    assert travelling.tree == stream.settings.tree

"""The benchmark of counts: the truth is the file's, every group has its row, peers stand beside."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from studies.benchmarks import small_counts
from studies.benchmarks.small_counts import main, read_trips

N_DAYS = 10
ZONES = {"harbour": ("North", 0.0), "mill": ("North", 0.2), "station": ("South", 8.0), "park": ("South", 0.3)}


@pytest.fixture
def folder(tmp_path):
    """Four zones of two boroughs, ten days; hours without trips have no row."""
    generator = np.random.default_rng(0)
    hours = range(N_DAYS * 24)
    rows = [
        (datetime(2024, 1, 1) + timedelta(hours=hour), zone, int(generator.poisson(rate)))
        for zone, (_, rate) in ZONES.items()
        for hour in hours
    ]
    trips = pl.DataFrame(rows, schema=["timestamp_local", "zone", "trips"], orient="row")
    trips.filter(pl.col("trips") > 0).write_parquet(tmp_path / "taxi_trips_nyc_hourly_2024.parquet")
    boroughs = [borough for borough, _ in ZONES.values()]
    zones = pl.DataFrame({"zone": list(ZONES), "borough": boroughs})
    zones.write_parquet(tmp_path / "taxi_zones_nyc.parquet")
    return tmp_path


def test_the_trips_are_those_of_the_file(folder):
    tree, values = read_trips(folder, 3)
    assert tree.n_levels == 3
    assert values.shape == (4, 72)
    trips = pl.read_parquet(folder / "taxi_trips_nyc_hourly_2024.parquet")
    first = trips.filter(pl.col("timestamp_local") < datetime(2024, 1, 4))
    assert values.sum() == first["trips"].sum()
    station = first.filter(pl.col("zone") == "station")["trips"].sum()
    assert values[tree.leaves.index("zone station")].sum() == station


@pytest.mark.parametrize("shares", [["1/3", "1/6", "1/2"], ["model"]])
def test_every_group_has_its_row_and_the_zones_a_peer(folder, capsys, monkeypatch, shares):
    monkeypatch.setattr(small_counts, "LEARNED_DAYS", 8)
    main(["--data", str(folder), "--days", str(N_DAYS), "--every", "1", "--shares", *shares])
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split("  ")[0]: line.split() for line in lines}
    assert {"city", "boroughs", "zones", "zones, busy", "zones, empty"} <= rows.keys()
    assert len(rows["zones"]) == len(rows["city"]) + 1
    assert rows["zones, busy"][2] == "1"
    assert "bias of the city" in lines[-1]

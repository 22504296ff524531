"""The benchmark of ingest at a tiny size: what it lays out, what it compares, what it prints."""

import numpy as np
import polars as pl
import pytest

from studies.benchmarks.ingest import LARGEST_PEAK_MB, MEASURED, TARGETS, compare, main, one, report
from studies.benchmarks.inputs.exact_meters import EXPECTED, ORDERS, Size, lay_out

SMALL = Size(regions=3, customers=50)


def read(folder):
    return pl.scan_parquet(folder / "dumps/**/*.parquet", hive_partitioning=True).collect()


@pytest.mark.parametrize("decimals", [3, 4])
@pytest.mark.parametrize("order", ORDERS)
def test_what_is_measured_agrees_on_the_sums(tmp_path, order, decimals):
    size = Size(regions=3, customers=50, decimals=decimals)
    config = lay_out(tmp_path / order, order, size, seed=3)
    found = {what: measured(config) for what, measured in MEASURED.items()}
    expected = np.load(config.parent / EXPECTED)
    assert np.array_equal(found["full"], expected)
    assert np.array_equal(found["hashed"], expected)
    assert (config.parent / "trusted" / "input.key").exists()
    # the others count what is there twice
    assert np.array_equal(found["sums"], expected) == (order != "repeated")
    # half a unit a reading is what rounding may change
    assert np.all(np.abs(found["bare"] * 1000 - found["sums"]) <= 0.5 * 53)
    if decimals == 3:
        assert np.allclose(found["bare"] * 1000, found["sums"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_a_seed_lays_out_the_same_rows(tmp_path, order):
    once, again, other = (
        lay_out(tmp_path / str(number), order, SMALL, seed) for number, seed in enumerate((1, 1, 2))
    )
    assert read(once.parent).equals(read(again.parent))
    assert not read(once.parent).equals(read(other.parent))


def test_orders_are_what_they_say(tmp_path):
    rows = {order: read(lay_out(tmp_path / order, order, SMALL, 1).parent) for order in ORDERS}
    first = {order: frame.filter(region="zone-1") for order, frame in rows.items()}
    for order, keys in {
        "customer": ["customer_id", "timestamp"],
        "step": ["timestamp", "customer_id"],
    }.items():
        assert first[order].equals(first[order].sort(keys))
        assert not first["shuffled"].equals(first["shuffled"].sort(keys))
    assert [frame.height for frame in rows.values()] == [SMALL.rows] * 3 + [SMALL.rows + 5 * 48]
    assert first["customer"]["customer_id"].str.len_bytes().unique().to_list() == [14]


def test_the_figures_stand_side_by_side(tmp_path, capsys):
    found = compare(tmp_path, ["step"], Size(regions=2, customers=10), repeats=1, seed=1)
    assert list(found) == ["step"]
    assert list(found["step"]) == list(MEASURED)
    for run in found["step"].values():
        assert run.exact
        assert run.cpu_seconds > 0
        assert 20 < run.peak_mb < LARGEST_PEAK_MB
    report(found)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:5]] == [["step", what] for what in MEASURED]
    ratio = found["step"]["full"].seconds / found["step"]["bare"].seconds
    assert f"full: at most {ratio:.2f} times the bare scan; target {TARGETS['full']:g}" in lines


def test_dumps_that_were_kept_are_measured_again(tmp_path, capsys):
    size = ["--regions", "2", "--customers", "10", "--repeats", "1", "--orders", "step"]
    lay_out(tmp_path / "step", "step", Size(regions=2, customers=10), 1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    main(["--into", str(tmp_path), *size])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == before
    assert "960 readings" in capsys.readouterr().out


def test_wrong_sums_are_told(tmp_path):
    config = lay_out(tmp_path / "day", "step", SMALL, 1)
    assert one("full", config).exact
    expected = np.load(config.parent / EXPECTED)
    np.save(config.parent / EXPECTED, expected + 1)
    assert not one("full", config).exact

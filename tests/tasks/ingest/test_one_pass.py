"""Rows are read once, whatever they hold: a reading changes the work of its own row alone."""

import polars as pl
import pytest

from tasks.ingest import clamping
from tasks.ingest import rows as cells

SOUND, TIE, NEAR_TIE = 1.25, 1.0005, 1.00050000000001


@pytest.fixture
def work(monkeypatch):
    """How many files were scanned for readings, and how many readings were decided exactly."""
    done = {"scans": 0, "exact": 0}
    scan, quantise = cells.scan, clamping.quantise

    def counted_scan(file):
        done["scans"] += 1
        return scan(file)

    def counted(raw, resolution):
        done["exact"] += len(raw)
        return quantise(raw, resolution)

    monkeypatch.setattr(cells, "scan", counted_scan)
    monkeypatch.setattr(clamping, "quantise", counted)
    return done


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
@pytest.mark.parametrize(("reading", "decided"), [(SOUND, 0), (TIE, 1), (NEAR_TIE, 1), (1e9, 0)])
def test_one_reading_is_no_reason_for_another_pass(small, work, schema, reading, decided):
    stream = small(schema=schema)
    values = pl.Series([SOUND] * 20 + [reading] + [SOUND] * 27, dtype=pl.Float64)
    for region in ("84", "11"):
        for number in range(5):
            rows = stream.metered(f"{region}{number}", values if number == 3 and region == "84" else SOUND)
            if schema == "aggregated":
                rows = rows.drop("customer_id")[number * 10 : number * 10 + 10]
                if number == 2 and region == "84":
                    rows = rows.with_columns(load=pl.Series([reading] + [SOUND] * 9))
            stream.write(region, rows, name=f"part-{number}.parquet")
    stream.ingest()
    assert work == {"scans": 2 * 5, "exact": decided}


def test_many_rows_of_large_units_are_read_once_too(small, work):
    """Their sum would not be exact as a float: integers are added, so that no count decides how they are."""
    stream = small(schema="metered", resolution="0.0000000001")
    for region in ("84", "11"):
        stream.write(region, pl.concat([stream.metered(f"{region}{name}", 0.5) for name in range(100)]))
    assert (stream.units() == 100 * 10**10 // 2).all()
    assert work == {"scans": 2, "exact": 0}

"""Columns as others write them: customers, stamps, readings, and regions in files of all leaves."""

from decimal import Decimal
from uuid import UUID

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.ingest.arrivals import EVERY
from tests.properties import footers
from tests.tasks.conftest import DAY

pytestmark = pytest.mark.slow
NO_LEAF = "column 'zone': must be a leaf of the hierarchy; add it, or remove rows of others"


@pytest.fixture
def stream(small):
    return small(schema="metered")


def test_sums_that_could_overflow_are_refused_by_the_size_of_files(small):
    stream = small(schema="metered", resolution="0.0000000000002")
    for region in ("84", "11"):
        stream.write(region, pl.concat([stream.metered(f"{region}{number}", 0.0) for number in range(200)]))
    judged = stream.verdict()
    assert judged.period is None
    assert "too many rows a day for exact sums" in str(judged.error)


@pytest.mark.parametrize("longest", ["0." + "3" * 45, "1" + "0" * 38])
def test_a_reading_of_more_than_38_digits_is_refused_by_column(stream, longest):
    """pyarrow gives such a column 256 bits, which polars has in a schema and cannot read."""
    for region in ("84", "11"):
        path = stream.write(region, stream.metered("anna" + region, 1.0))
    rows, readings = pq.read_table(path), [Decimal(longest), *[Decimal(1)] * 47]
    pq.write_table(rows.set_column(rows.column_names.index("load"), "load", pa.array(readings)), path)
    judged = stream.verdict()
    assert "part-0.parquet, column 'load': must be a column of numbers" in str(judged.error)
    assert longest[:4] not in str(judged.error)


@pytest.mark.parametrize("region", ["84", "11"])
def test_customers_that_are_no_text_make_a_file_unreadable(stream, region):
    """Found by fuzzing: no pass but the one over customers looks at what their column's pages hold."""
    for name in ("84", "11"):
        stream.write(name, stream.metered(f"anna{name}", 1.0))
    path = stream.folder(region) / "part-0.parquet"
    pl.read_parquet(path).write_parquet(path, compression="uncompressed", statistics=False)
    content = path.read_bytes()
    assert b"anna" in content
    path.write_bytes(content.replace(b"anna", b"\xff\xfe\xff\xfe"))
    (ingested,) = stream.ingest()
    faults = ["unreadable" if name == region else None for name in ("84", "11")]
    assert ingested.metrics["file_fault"].to_list() == faults
    judged = stream.verdict()
    assert judged.period is None
    assert f"region={region}/date=2025-01-15/part-0.parquet: must be a readable" in str(judged.error)


def test_statistics_of_a_file_are_not_trusted(stream):
    """Found by fuzzing: the pass over customers filters, and a filter looked at what the writer claims."""
    for name in ("84", "11"):
        path = stream.write(name, stream.metered(f"anna{name}", 1.0))
    body, footer = footers.split(path.read_bytes())
    for container, key, kind in footers.places(footer):
        if kind == footers.BINARY and isinstance(container, dict) and container[key][1] == b"anna11":
            footers.put(container, key, kind, b"\xff" * 4)
    path.write_bytes(footers.join(body, footer))
    assert np.array_equal(stream.units(), [[1000] * 48] * 2)


def test_customers_may_be_bytes_and_zones_any_fixed_distance(stream):
    """A UUID is 16 bytes, of no text; other bytes name the same customer as their text."""
    stamps = pa.array(stream.settings.calendar.utc_times(DAY), pa.timestamp("us", tz="GMT+1"))
    for names in ([UUID(int=2**127 + 1).bytes] * 48, [b"somebody"] * 48):
        table = pa.table({"timestamp": stamps, "customer_id": names, "load": [1.5] * 48, "odd": stamps})
        pq.write_table(table, stream.write("84", stream.rows(0.0), name=f"{len(names[0])}.parquet"))
    stream.write("84", stream.metered("somebody", 1.5), name="text.parquet")
    stream.write("11", stream.metered("other", 1.0))
    assert (stream.verdict().units == [[3000], [1000]]).all()


def test_stamps_by_int96(small):
    stream = small(marker="stamps_zone = 'UTC'")
    stamps = [one.replace(tzinfo=None) for one in stream.settings.calendar.utc_times(DAY)]
    table = pa.table({"timestamp": pa.array(stamps, pa.timestamp("ns")), "load": [1.5] * 48})
    for region in ("84", "11"):
        pq.write_table(table, stream.write(region, stream.rows(0.0)), use_deprecated_int96_timestamps=True)
    assert (stream.units() == 1500).all()


@pytest.fixture
def together(small):
    """The small stream, whose files have a column of regions."""
    return small(marker='region = "zone"')


def of(region, rows):
    return rows.with_columns(zone=pl.lit(region))


def both(stream, first=1.0, second=2.0):
    return pl.concat([of("84", stream.rows(first)), of("11", stream.rows(second))])


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["11", "84"]), pl.Int16])
def test_rows_go_to_the_leaf_that_they_name(together, kind):
    rows = both(together, np.arange(48.0), np.arange(48.0) / 4).sample(fraction=1, shuffle=True, seed=1)
    together.write(EVERY, rows.with_columns(pl.col("zone").cast(pl.String).cast(kind)))
    assert np.array_equal(together.verdict().units, [np.arange(48) * 1000, np.arange(48) * 250])


def test_a_leaf_without_rows_and_one_without_a_step_are_named(together):
    together.write(EVERY, of("84", together.rows(1.0))[1:])
    message = str(together.verdict().error)
    assert f"date={DAY}, region '84', column 'timestamp', step 0 (00:00) of 48: every step" in message
    assert f"date={DAY}, region '11'" in message


def with_one_more(name):
    return lambda rows: pl.concat([rows, of(name, rows[:1].drop("zone"))], how="vertical_relaxed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop("zone"), "columns 'timestamp', 'load' and 'zone': must hold these"),
        (lambda rows: rows.with_columns(zone=pl.lit(84.0)), "column 'zone': must be text or whole numbers"),
        (lambda rows: rows.drop("load"), "columns 'timestamp', 'load' and 'zone': must hold these"),
        *((with_one_more(name), NO_LEAF) for name in ("84 ", "085", None)),
    ],
)
def test_a_file_with_another_column_or_a_region_that_is_no_leaf_stops_the_day(together, change, message):
    together.write(EVERY, change(both(together)))
    found = str(together.verdict().error)
    assert found.startswith(f"{DAY}: date={DAY}/part-0.parquet, {message}")
    assert "at least one row" not in found  # of the leaves whose rows nobody read

"""Dumps of all leaves in one folder a day, whose files have a column of regions."""

import numpy as np
import polars as pl
import pytest

from tasks.ingest.arrivals import EVERY
from tests.tasks.conftest import DAY

pytestmark = pytest.mark.slow

REGION = 'region = "zone"'


@pytest.fixture
def stream(small):
    return small(marker=REGION)


def of(region, rows):
    return rows.with_columns(zone=pl.lit(region))


def both(stream, first=1.0, second=2.0):
    return pl.concat([of("84", stream.rows(first)), of("11", stream.rows(second))])


def stops(stream):
    (judged,) = stream.judge()
    return None if judged.error is None else str(judged.error)


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["11", "84"]), pl.Int16])
def test_rows_go_to_the_leaf_that_they_name(stream, kind):
    rows = both(stream, np.arange(48.0), np.arange(48.0) / 4).sample(fraction=1, shuffle=True, seed=1)
    stream.write(EVERY, rows.with_columns(pl.col("zone").cast(pl.String).cast(kind)))
    assert np.array_equal(stream.units(), [np.arange(48) * 1000, np.arange(48) * 250])
    assert stops(stream) is None


def test_a_leaf_without_rows_and_one_without_a_step_are_named(stream):
    stream.write(EVERY, of("84", stream.rows(1.0))[1:])
    message = stops(stream)
    assert f"date={DAY}, region '84', column 'timestamp', step 0 (00:00) of 48: every step" in message
    assert f"date={DAY}, region '11'" in message


def with_one_more(name):
    return lambda rows: pl.concat([rows, of(name, rows[:1].drop("zone"))], how="vertical_relaxed")


NO_LEAF = "column 'zone': must be a leaf of the hierarchy; add it, or remove rows of others"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop("zone"), "columns 'timestamp', 'load' and 'zone': must hold these"),
        (lambda rows: rows.with_columns(zone=pl.lit(84.0)), "column 'zone': must be text or whole numbers"),
        (lambda rows: rows.drop("load"), "columns 'timestamp', 'load' and 'zone': must hold these"),
        *((with_one_more(name), NO_LEAF) for name in ("84 ", "085", None)),
    ],
)
def test_a_file_with_another_column_or_a_region_that_is_no_leaf_stops_the_day(stream, change, message):
    stream.write(EVERY, change(both(stream)))
    found = stops(stream)
    assert found.startswith(f"{DAY}: date={DAY}/part-0.parquet, {message}")
    assert "at least one row" not in found  # of the leaves whose rows nobody read

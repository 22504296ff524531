"""Bands of counts: stated, stored and read back; files of streams without them are as they were."""

import polars as pl
import pytest

from optstream.catalogue import CountBands, band_columns, publish, read_published, read_staged, stage
from optstream.errors import PublicationError
from tests.optstream.catalogue.folders import DAY, NEXT


def with_bands(rows):
    low, high = band_columns("load_mw")
    return rows.with_columns(
        pl.when(pl.col("step") == 3).then(None).otherwise(0.0).alias(low),
        pl.when(pl.col("step") == 3).then(None).otherwise(7.0).alias(high),
    )


def put(folder, rows, stated):
    publish(folder, [(stage(rows, stated), stated)], lambda known: "head-0")


def test_a_staged_release_has_the_columns_that_it_states(rows, statement):
    stated = statement(DAY, bands=CountBands(known="some"))
    staged = stage(with_bands(rows(DAY)), stated)
    assert read_staged(staged.data) == (staged, stated)
    with pytest.raises(PublicationError, match="have the columns"):
        stage(rows(DAY), stated)
    with pytest.raises(PublicationError, match="have the columns"):
        stage(with_bands(rows(DAY)), statement(DAY))


def test_a_stream_that_became_one_of_counts_is_read_as_one_frame(tmp_path, rows, statement):
    """A day without bands, then one with: null where a release has none; each file keeps its own columns."""
    put(tmp_path, rows(DAY), statement(DAY))
    assert "load_mw_low" not in read_published(tmp_path).columns
    bands = statement(NEXT, bands=CountBands(known="some"))
    put(tmp_path, with_bands(rows(NEXT)), bands)
    read = read_published(tmp_path, verify=True)
    assert read.columns[6:11] == [
        "load_mw", "load_mw_noise_se", "load_mw_se", "load_mw_low", "load_mw_high",
    ]  # fmt: skip
    assert read.filter(pl.col("date") == DAY)["load_mw_low"].null_count() == 12
    assert read.filter(pl.col("date") == NEXT)["load_mw_high"].drop_nulls().to_list() == [7.0] * 9

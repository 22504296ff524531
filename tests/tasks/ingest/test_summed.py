"""Aggregated dumps read in parts, by other processes: the same sums, metrics and places as in one piece."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from optstream.errors import ConfigurationError
from tasks.ingest import discover
from tasks.ingest.arrivals import EVERY
from tasks.ingest.days import read_days
from tests.tasks.conftest import DAY


@pytest.fixture
def stream(small):
    return small(marker='region = "zone"')


def of(stream, region, values=1.0, day=DAY):
    return stream.rows(values, day, zone=pl.lit(region))


def both_ways(stream, *days):
    """Read in one piece, and in parts; how many parts were read, and how many leaves each told of."""
    found, answers = discover(stream.settings, days or [DAY]), []

    def spread(work, items):
        answers.extend(map(work, items))
        return answers

    whole, parts = (read_days(stream.settings, list(found.values()), way) for way in (None, spread))
    for one, other in zip(whole, parts, strict=True):
        assert np.array_equal(one.units, other.units) if one.units is not None else other.units is None
        assert one.metrics.equals(other.metrics)
        assert one.places == other.places
    return whole, [answer.metrics.height for answer in answers]


def test_files_of_different_leaves_are_parts_by_themselves(stream):
    stream.write(EVERY, of(stream, "84", np.arange(48.0)), name="1.parquet")
    stream.write(EVERY, of(stream, "11", 2.0), name="2.parquet")
    (read,), told = both_ways(stream)
    assert told == [1, 1]
    assert np.array_equal(read.units, [np.arange(48) * 1000, [2000] * 48])


def test_what_is_wrong_with_a_leaf_is_found_in_its_part(stream):
    rows = of(stream, "84", pl.Series([None, -1.0, 1e9, float("inf"), *range(44)], dtype=pl.Float64))
    stream.write(EVERY, pl.concat([rows, rows[7:8]]), name="1.parquet")
    stream.write(EVERY, of(stream, "11")[3:], name="2.parquet")
    (read,), told = both_ways(stream)
    assert told == [1, 1]
    assert {rule for _, rule in read.places} == {
        "absent", "out_of_bounds", "infinite", "duplicates", "steps_found"
    }  # fmt: skip


@pytest.mark.parametrize("other", ["84", "somewhere"])
def test_a_leaf_of_two_parts_and_one_that_is_unknown_are_read_in_one_piece(stream, other):
    stream.write(EVERY, pl.concat([of(stream, "84")[::2], of(stream, other)[:1]]), name="1.parquet")
    stream.write(EVERY, pl.concat([of(stream, "84")[1::2], of(stream, "11")]), name="2.parquet")
    assert both_ways(stream)[1] == [1, 2]


def test_a_damaged_file_is_found_out_by_its_part(stream):
    stream.write(EVERY, of(stream, "84"), name="1.parquet")
    path = stream.write(EVERY, of(stream, "11", np.linspace(0.0, 1.0, 48)), name="2.parquet")
    damaged = bytearray(path.read_bytes())
    damaged[8:200] = bytes(192)
    path.write_bytes(damaged)
    (read,), _ = both_ways(stream)
    assert read.metrics["file_fault"].to_list() == ["unreadable", None]


def one_step(units):
    return units[:, :1]


def as_floats(units):
    return units.astype(np.float64)


def one_leaf_more(units):
    return np.vstack([units, units])


@pytest.mark.parametrize("altered", [one_step, as_floats, one_leaf_more])
def test_an_answer_that_is_none_of_a_part_is_refused(stream, altered):
    """Another version's, perhaps: numpy would spread one step over the day, and cut floats."""
    for name, region in (("1.parquet", "84"), ("2.parquet", "11")):
        stream.write(EVERY, of(stream, region), name=name)

    def spread(work, items):
        return [replace(one, units={0: altered(one.units[0])}) for one in map(work, items)]

    with pytest.raises(ConfigurationError, match="same version"):
        read_days(stream.settings, list(discover(stream.settings, [DAY]).values()), spread)

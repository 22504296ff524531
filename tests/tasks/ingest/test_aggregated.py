from datetime import date

import numpy as np
import polars as pl
import pytest

SPRING, AUTUMN = date(2025, 3, 30), date(2025, 10, 26)


@pytest.mark.parametrize(("day", "n_steps"), [(date(2025, 1, 15), 48), (SPRING, 46), (AUTUMN, 50)])
def test_a_day_is_read_into_leaves_and_steps(small, day, n_steps):
    stream = small()
    stream.write("84", stream.rows(np.arange(n_steps) / 8, day), day)
    # a later leaf, its rows in reverse order and in two files
    rows = stream.rows(np.arange(n_steps) / 4, day).reverse()
    stream.write("11", rows[:10], day, "a.parquet")
    stream.write("11", rows[10:], day, "b.parquet")
    expected = [np.arange(n_steps) * 125, np.arange(n_steps) * 250]
    assert np.array_equal(stream.units(day), expected)
    (ingested,) = stream.ingest(day)
    assert ingested.period.first_step == stream.settings.calendar.first_step(day)
    assert ingested.metrics["steps_found"].to_list() == [n_steps, n_steps]


def test_many_days_read_as_each_alone(small, days):
    stream = small()
    for number, day in enumerate(days(3)):
        for region in ("84", "11"):
            stream.write(region, stream.rows(np.arange(48) + number + int(region) / 100, day), day)
    together = stream.ingest(*days(3))
    for day, ingested in zip(days(3), together, strict=True):
        (alone,) = stream.ingest(day)
        assert ingested.metrics.equals(alone.metrics)
        assert ingested.day == day
    assert len({stream.units(day).tobytes() for day in days(3)}) == 3


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "Asia/Kolkata", None])
def test_instants_and_wall_clock_say_the_same(small, unit, zone):
    stream = small()
    rows = stream.rows(np.arange(48.0))
    local = rows.with_columns(pl.col("timestamp").dt.convert_time_zone(zone or "Europe/Paris"))
    if zone is None:
        local = local.with_columns(pl.col("timestamp").dt.replace_time_zone(None))
    local = local.with_columns(pl.col("timestamp").dt.cast_time_unit(unit))
    stream.write("84", rows)
    stream.write("11", local)
    units = stream.units()
    assert np.array_equal(units[0], np.arange(48) * 1000)
    assert np.array_equal(units[0], units[1])


def test_neither_a_day_nor_its_repr_shows_a_reading(small):
    stream = small()
    for region in ("84", "11"):
        stream.write(region, stream.rows(77.125))
    (ingested,) = stream.ingest()
    assert "77125" not in repr(ingested)
    assert "77.125" not in repr(ingested) + str(ingested.metrics.to_dicts())

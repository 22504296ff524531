"""Bad dumps, from file to outcome: a clear error, nothing spent, nothing published, and no value shown."""

import shutil
from datetime import date, timedelta
from itertools import product

import polars as pl
import pytest

from optstream import read_published
from tasks.release.stages import Status

DAY = date(2016, 6, 1)
WEEK = [DAY + timedelta(days=number) for number in range(7)]
PLANTED = 71234.5


def place_of(day):
    return f"dumps/region=84/date={day}"


def rewrite(installation, change, day=DAY):
    path = installation.folder / f"{place_of(day)}/part-0.parquet"
    change(pl.read_parquet(path)).write_parquet(path)


def with_first(column, value):
    """Change one cell of the first row."""

    def change(rows):
        first = pl.int_range(pl.len()) == 0
        changed = rows.with_columns(pl.when(first).then(pl.lit(value)).otherwise(column).alias(column))
        return changed.select(rows.columns).cast(dict(rows.schema))

    return change


def set_first(value):
    """Put a value into the first reading."""
    return lambda installation, day=DAY: rewrite(installation, with_first("load_mw", value), day)


def remove_region(installation, day):
    shutil.rmtree(installation.folder / place_of(day))


def remove_marker(installation, day):
    (installation.folder / place_of(day) / "_SUCCESS").unlink()


def strange_region(installation, day):
    shutil.copytree(
        installation.folder / place_of(day), installation.folder / "dumps/region=FR-AURA" / f"date={day}"
    )


def climbing_region(installation, day):
    strange = installation.folder / "dumps" / "region=..%2Fx" / f"date={day}"
    shutil.copytree(installation.folder / place_of(day), strange)


def truncated(installation, day):
    path = installation.folder / place_of(day) / "part-0.parquet"
    path.write_bytes(path.read_bytes()[:-200])


def drop_last(n):
    return lambda installation, day: rewrite(installation, lambda rows: rows.head(rows.height - n), day)


REFUSED = {
    "missing step": (drop_last(1), "step 47"),
    "null": (set_first(None), "step 0"),
    "unknown region": (strange_region, "'region=FR-AURA' is not a leaf"),
    "a name that climbs": (climbing_region, "is not a leaf"),
    "truncated file": (truncated, "part-0.parquet"),
}


def test_a_broken_dump_is_refused_and_spends_nothing(installation):
    """Each on a day of its own: faults of what a dump holds and of what is there."""
    days = [DAY + timedelta(days=2 * number) for number in range(len(REFUSED))]
    installation.simulate(*days[1:])
    for day, (damage, _) in zip(days, REFUSED.values(), strict=True):
        set_first(PLANTED)(installation, day)
        damage(installation, day)
    works = installation.release(*days)
    for day, (fault, (_, place)) in zip(days, REFUSED.items(), strict=True):
        outcome = works[day].outcome
        assert outcome.status is Status.REFUSED, fault
        assert place in outcome.message, fault
        assert "region=" in outcome.message
        assert "71234" not in outcome.message
        assert installation.record(day) is None
    assert not (installation.folder / "published").exists()


@pytest.mark.parametrize("damage", [remove_region, remove_marker])
def test_a_dump_that_is_not_there_yet_waits(installation, damage):
    damage(installation, DAY)
    outcome = installation.release(DAY)[DAY].outcome
    assert outcome.status is Status.WAITING
    assert place_of(DAY).removeprefix("dumps/") in outcome.message
    assert installation.record(DAY) is None
    assert not (installation.folder / "published").exists()


def test_readings_beyond_the_public_bounds_are_clamped_and_stop_no_day(installation):
    """Each on a day of its own."""
    values = (float("inf"), float("-inf"), 1e300, -PLANTED, PLANTED)
    days = [DAY + timedelta(days=number) for number in range(len(values))]
    installation.simulate(*days[2:])
    for day, value in zip(days, values, strict=True):
        set_first(value)(installation, day)
    for day, work in installation.release(*days).items():
        assert work.outcome.status is Status.PUBLISHED, day
        assert "71234" not in str(installation.verdict(day))
    assert read_published(installation.folder / "published")["load_mw"].max() < 40_000


@pytest.fixture
def metered(installation):
    """A week of three customers in two leaves."""
    installation.configure(
        'schema = "aggregated"\nvalue = "load_mw"', 'schema = "metered"\nvalue = "energy_kwh"'
    )
    shutil.rmtree(installation.folder / "dumps")
    calendar = installation.settings.calendar
    for day, (leaf, customers) in product(WEEK, {"84": ["a", "b"], "11": ["c"]}.items()):
        stamps = pl.Series(calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))
        folder = installation.folder / f"dumps/region={leaf}/date={day}"
        folder.mkdir(parents=True)
        rows = pl.concat(
            pl.DataFrame({"customer_id": [name] * 48, "timestamp": stamps, "energy_kwh": [0.25] * 48})
            for name in customers
        )
        rows.write_parquet(folder / "part-0.parquet")
        (folder / "_SUCCESS").touch()
    return installation


METERED = {
    "null": with_first("energy_kwh", None),
    "NaN": with_first("energy_kwh", float("nan")),
    "infinite": with_first("energy_kwh", float("inf")),
    "huge": with_first("energy_kwh", 1e300),
    "below the bounds": with_first("energy_kwh", -PLANTED),
    "customer in two leaves": with_first("customer_id", "c"),
    "step seen twice": lambda rows: pl.concat([rows, rows.head(1)]),
}


def test_no_metered_reading_decides_whether_a_day_appears(metered):
    """Each fault on a day of its own."""
    for day, change in zip(WEEK, METERED.values(), strict=True):
        rewrite(metered, change, day)
    works = metered.release(*WEEK)
    for day, fault in zip(WEEK, METERED, strict=True):
        assert works[day].outcome.status is Status.PUBLISHED, fault
        verdict = metered.verdict(day)
        assert verdict["alarms"], fault
        assert "71234" not in str(verdict)

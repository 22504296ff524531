"""A chunk in which the layout changes: each day is read, judged and found by its own."""

from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream.errors import ContractError, DumpError
from optstream.measurement.sums import open_private_period
from tasks.ingest import LateDumpError, discover
from tests.tasks.ingest.test_by_hand import Row, ingest_by_hand

pytestmark = pytest.mark.slow

BEFORE = date(2025, 3, 28)
DAYS = [BEFORE + timedelta(days=number) for number in range(4)]
"""The third has 46 steps, and another layout than the second; the fourth another again."""
CHANGES = f"""
[[input.changes]]
valid_from = {DAYS[2]}
timestamp = "when"
value = "kilowatts"
customer = "meter"
factor = "0.001"
[[input.changes]]
valid_from = {DAYS[3]}
value = "load"
factor = "1"
file_list = "_FILES"
"""
NAMES = {
    DAYS[0]: {},
    DAYS[1]: {},
    DAYS[2]: {"timestamp": "when", "load": "kilowatts", "customer_id": "meter"},
    DAYS[3]: {"timestamp": "when", "customer_id": "meter"},
}
SCALE = {**dict.fromkeys(DAYS, 1.0), DAYS[2]: 1000.0}


def write(stream, region, rows, day):
    """As the supplier of that day did: its names, its unit, its last file."""
    rows = rows.with_columns(pl.col("load") * SCALE[day]).rename(NAMES[day], strict=False)
    path = stream.write(region, rows, day)
    if day == DAYS[3]:
        (path.parent / "_SUCCESS").unlink()
        (path.parent / "_FILES").write_text(f"{path.name}\n")
    return path


def units(ingested):
    assert ingested.period is not None, ingested.metrics.to_dicts()
    return open_private_period(ingested.period)


def test_aggregated_days_around_a_change_are_read_in_one_call(small):
    stream = small(marker=CHANGES)
    for number, day in enumerate(DAYS):
        for region, load in (("84", 1.25 + number), ("11", 50.0005)):
            write(stream, region, stream.rows(load, day), day)
    for number, ingested in enumerate(stream.ingest(*DAYS)):
        n_steps = 46 if number == 2 else 48
        assert np.array_equal(units(ingested), [[1250 + 1000 * number] * n_steps, [50_001] * n_steps])
    judged = stream.judge(*DAYS)
    assert [one.error for one in judged] == [None] * 4
    assert [one.alarms for one in judged] == [()] * 4


def test_metered_days_around_a_change_count_by_the_same_rules(small):
    """Ties, clamped and repeated rows, and a customer in two leaves, on each side of the change."""
    stream = small(schema="metered", marker=CHANGES)
    values = [0.0005, 0.0015, 99.9995, 100.5, -3.0, 2.675]
    seen = {"84": ["a", "b", "a"], "11": ["b", "c", "d"]}
    for day in DAYS:
        for region, customers in seen.items():
            rows = pl.concat([stream.metered(name, values, day) for name in customers])
            write(stream, region, rows, day)
    for day, ingested in zip(DAYS, stream.ingest(*DAYS), strict=True):
        n_steps = stream.settings.calendar.n_steps(day)
        exact = [Fraction(str(value)) for value in values]
        rows = [
            [[Row(name, step, exact[step % len(exact)]) for name in names for step in range(n_steps)]]
            for names in seen.values()
        ]
        expected, counts = ingest_by_hand(
            rows, n_steps, stream.settings.privacy.bounds, stream.settings.privacy.resolution
        )
        assert np.array_equal(units(ingested), expected), day
        for rule in ("duplicates", "two_leaves", "out_of_bounds"):
            assert ingested.metrics[rule].to_list() == [count[rule] for count in counts], (day, rule)


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
@pytest.mark.parametrize(
    ("late", "told"),
    [
        (False, f"region=84/date={DAYS[1]}/part-0.parquet, columns 'timestamp' and 'load': must hold these"),
        (True, f"region=84/date={DAYS[2]}/part-0.parquet, columns 'when' and 'kilowatts': must hold these"),
    ],
)
def test_a_dump_in_the_layout_of_another_day_is_refused_by_the_names_of_its_own(small, schema, late, told):
    stream = small(schema=schema, marker=CHANGES)
    for day in DAYS:
        for region in ("84", "11"):
            rows = stream.metered(region, 1.0, day) if stream.settings.metered else stream.rows(1.0, day)
            other = {DAYS[1]: DAYS[2], DAYS[2]: DAYS[1]}.get(day, day)
            if region == "84" and day == DAYS[1 + late]:
                stream.write(region, rows.rename(NAMES[other], strict=False), day)
            else:
                write(stream, region, rows, day)
    judged = stream.judge(*DAYS)
    assert [one.error is None for one in judged] == [True, late, not late, True]
    error = judged[1 + late].error
    assert isinstance(error, ContractError)
    assert told in str(error)


def test_each_day_waits_for_its_own_marker_or_list(small):
    stream = small(marker=CHANGES)
    for day in DAYS:
        for region in ("84", "11"):
            write(stream, region, stream.rows(1.0, day), day)
    assert not any(isinstance(found, DumpError) for found in discover(stream.settings, DAYS).values())
    (stream.folder("84", DAYS[3]) / "_FILES").rename(stream.folder("84", DAYS[3]) / "_SUCCESS")
    (stream.folder("11", DAYS[2]) / "_SUCCESS").rename(stream.folder("11", DAYS[2]) / "_FILES")
    found = discover(stream.settings, DAYS)
    assert [isinstance(found[day], LateDumpError) for day in DAYS] == [False, False, True, True]
    assert f"the marker _SUCCESS of region=11/date={DAYS[2]} is absent" in str(found[DAYS[2]])
    assert f"the file list _FILES of region=84/date={DAYS[3]} is absent" in str(found[DAYS[3]])

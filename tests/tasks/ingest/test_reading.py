"""Readings of any type count as by the public rule, and whole days as by the rule in plain Python."""

import shutil
from collections import Counter
from datetime import date, timedelta
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import floor, inf, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from optstream.measurement.sums import open_private_period
from tasks.config import Input
from tasks.ingest import rows as cells
from tasks.ingest import sums
from tasks.ingest.arrivals import EVERY
from tasks.ingest.clamping import KINDS, countable, reading

BOUNDS = (Fraction("-2.5"), Fraction("100.0005"))
SEVERAL_BOUNDS = [BOUNDS, (Fraction(-9), Fraction(-3)), (Fraction(5), Fraction(50))]
ANY_BOUNDS = pytest.mark.parametrize("bounds", SEVERAL_BOUNDS, ids=str)
AWKWARD = ["0", "0.0005", "-0.0005", "0.0015", "1.0005", "2.675", "0.1", "99.9995", "100.0005", "100.0006"]
AWKWARD += ["-2.5", "-7", "100", "12345"]
RESOLUTIONS = [Fraction(1, 1000), Fraction(1, 100), Fraction(1, 3), Fraction(7, 10), Fraction(40)]
WHOLE = [pl.Int8, pl.Int64, pl.UInt8, pl.UInt64, pl.Int128, pl.Decimal(10, 0)]
FACTORS = [Fraction(1), Fraction(1), Fraction(1, 1000), Fraction(1000), Fraction(1, 3), Fraction("0.0254")]
FINE = [*RESOLUTIONS, Fraction(1, 10**8)]
FLOAT_BOUNDS = [(Fraction(0), Fraction(6)), BOUNDS, (Fraction(5), Fraction(10**6))]
DAYS = [date(2025, 1, 15), date(2025, 3, 30), date(2025, 10, 26)]
LONG = "a customer with a name of many characters "
NAMES = ["1", "2", "01", "12345678901234", "-7"]
TEXTS = [*NAMES, "", " ", "é", LONG + "1", LONG + "2"]
TIES = ["0", "0.0005", "0.0015", "0.345", "1.0005", "2.675", "99.9995", "100", "100.0004", "-0.0004"]
TIES += ["-5", "1e9"]
ODD = [None, float("nan"), float("inf"), float("-inf")]
RULES = ["no_customer", "no_timestamp", "outside_day", "two_leaves", "duplicates", "absent"]
RULES += ["infinite", "out_of_bounds", "steps_found"]
near_ties = st.builds(
    lambda units, halves, ulps: float(np.float64(units * 0.001 + halves * 0.0005) * (1 + ulps * 2.0**-52)),
    st.integers(-10, 7000), st.integers(0, 1), st.integers(-2, 2),
)  # fmt: skip
decimals = st.decimals(-3, 120, allow_nan=False, places=4).map(float)


def defined(text, bounds, resolution, factor=1):
    """The units of what stands in a column times a factor, by the rule in words of Python."""
    number = Decimal(text)
    if number.is_nan():
        return 0
    exact = bounds[number > 0] if number.is_infinite() else Fraction(number) * factor
    return floor(min(max(exact, bounds[0]), bounds[1]) / resolution + Fraction(1, 2))


def read(series, bounds=BOUNDS, resolution=RESOLUTIONS[0]):
    found = reading("x", series.dtype, bounds, resolution)
    lazy = pl.DataFrame({"x": series}).lazy().select("x", units=found.units, kind=found.kind)
    kinds = ((pl.col("kind") == kind).alias(name) for kind, name in enumerate(KINDS))
    return lazy.collect(engine="streaming").with_columns(kinds)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
@ANY_BOUNDS
def test_integers_count_as_defined(dtype, bounds):
    series = pl.Series([0, 1, 20, 49, 50, 51, 100, 101, 127]).cast(dtype)
    outside = [not bounds[0] <= value <= bounds[1] for value in series.to_list()]
    for resolution in RESOLUTIONS:
        found = read(series, bounds, resolution)
        wanted = [defined(str(value), bounds, resolution) for value in series.to_list()]
        assert found["units"].to_list() == wanted, resolution
        assert found["out_of_bounds"].to_list() == outside


def laid_out(factor):
    return Input(schema="aggregated", value="x", factor=factor)


@pytest.mark.parametrize("scale", [12, 17, 18, 30, 38])
@ANY_BOUNDS
def test_the_scale_of_a_decimal_column_does_not_decide_whether_it_is_counted(scale, bounds):
    """A writer gives the column the scale of the longest reading, for which no day may stop."""
    bounds, resolution = laid_out(Fraction(6)).in_column_units(bounds, Fraction(1, 1000))
    texts = [text for text in AWKWARD if abs(Decimal(text)) < 10 ** (38 - scale)]
    near = [(Fraction(units) - Fraction(1, 2)) * resolution for units in (-499, -1, 0, 1, 999)]
    least = Decimal(1).scaleb(-scale)
    with localcontext(prec=60):
        ties = [(Decimal(tie.numerator) / tie.denominator).quantize(least, ROUND_FLOOR) for tie in near]
        texts += [str(tie + more) for tie in ties for more in (0, least)]
    column = pl.Series([None, *map(Decimal, texts)], dtype=pl.Decimal(38, scale))
    assert countable(column.dtype)
    found = read(column, bounds, resolution)
    assert found["units"].to_list() == [0, *(defined(text, bounds, resolution) for text in texts)]
    outside = [not bounds[0] <= Fraction(Decimal(text)) <= bounds[1] for text in texts]
    assert found["out_of_bounds"].to_list() == [False, *outside]


# Floats, also where floating point alone does not decide.


@settings(deadline=None)
@given(
    st.lists(near_ties | decimals | st.floats(allow_nan=True, allow_infinity=True), max_size=40),
    st.sampled_from(FLOAT_BOUNDS),
    st.sampled_from(FINE),
    st.sampled_from(FACTORS),
    st.sampled_from([np.float32, np.float64]),
)
@example([nan, inf, -inf], FLOAT_BOUNDS[2], FINE[0], FACTORS[0], np.float32)
@pytest.mark.slow
def test_any_float_counts_as_its_exact_product_with_the_factor(values, bounds, resolution, factor, number):
    """Lemma 2 is of the reading: what stands in the column, times the factor, exactly."""
    with np.errstate(over="ignore"):
        raw = (np.array(values, dtype=np.float64) / float(factor)).astype(number)
    expected = [defined(str(value), bounds, resolution, factor) for value in raw]
    own = laid_out(factor).in_column_units(bounds, resolution)
    assert read(pl.Series(raw), *own)["units"].to_list() == expected


def test_instants_and_wall_clock_say_the_same(small, days):
    stream, zones = small(), ("UTC", "Europe/Paris", "Asia/Kolkata", None)
    made = dict(zip(days(12), product(("ms", "us", "ns"), zones), strict=True))
    for day, (unit, zone) in made.items():
        rows = stream.rows(np.arange(48.0), day)
        local = rows.with_columns(pl.col("timestamp").dt.convert_time_zone(zone or "Europe/Paris"))
        if zone is None:
            local = local.with_columns(pl.col("timestamp").dt.replace_time_zone(None))
        stream.write("84", rows, day)
        stream.write("11", local.with_columns(pl.col("timestamp").dt.cast_time_unit(unit)), day)
    for judged in stream.judge(*made):
        assert np.array_equal(judged.units, [np.arange(48) * 1000] * 2), made[judged.day]


# Whole metered days, row by row.


def ingest_by_hand(leaves, n_steps, bounds, resolution):
    """The units (n_leaves, n_steps), and how many rows of each leaf each rule is about.

    leaves: files of rows (customer, step, reading as a decimal, infinite or NaN), each of which may be None.
    """
    units = [[0] * n_steps for _ in leaves]
    counts, steps = [Counter() for _ in leaves], [set() for _ in leaves]
    rows = [(leaf, *row) for leaf, files in enumerate(leaves) for file in files for row in file]
    homes = {(customer, step, leaf) for leaf, customer, step, _ in rows}
    n_homes = Counter((customer, step) for customer, step, _ in homes)
    seen = set()
    for leaf, customer, step, text in rows:
        counts[leaf]["no_customer"] += customer is None
        if step is None or not 0 <= step < n_steps:
            counts[leaf]["no_timestamp" if step is None else "outside_day"] += 1
            continue
        steps[leaf].add(step)
        number = Decimal(text or "nan")
        if number.is_nan() or number.is_infinite():
            kind = "absent" if number.is_nan() else "infinite"
        else:
            kind = "sound" if bounds[0] <= Fraction(number) <= bounds[1] else "out_of_bounds"
        counts[leaf][kind] += 1
        if customer is None:
            continue  # nobody's: not counted
        if n_homes[customer, step] > 1:
            counts[leaf]["two_leaves"] += 1
        elif (customer, step) in seen:
            counts[leaf]["duplicates"] += 1
        else:
            seen.add((customer, step))
            units[leaf][step] += defined(str(number), bounds, resolution)
    for own, found in zip(counts, steps, strict=True):
        own["steps_found"] = len(found)
    return units, counts


@st.composite
def files(draw):
    """One file: rows (customer, step, reading as text or odd float), and how it is written."""
    kind = draw(st.sampled_from(["text", "category", "integer"]))
    names = st.sampled_from([name for name in NAMES if name != "01"] if kind == "integer" else TEXTS)
    values = draw(st.sampled_from([pl.Float64, pl.Float32, pl.Decimal(20, 4)]))
    readings = st.sampled_from([None, *TIES] if values == pl.Decimal(20, 4) else [*ODD, *TIES])
    nobody, nowhere = draw(st.booleans()) and draw(st.booleans()), draw(st.booleans()) and draw(st.booleans())
    customers = st.none() | names if nobody else names
    steps = st.sampled_from([None, -1, 0, 1, 45, 46, 47, 48, 49, 50]) if nowhere else st.integers(0, 3)
    rows = draw(st.lists(st.tuples(customers, steps, readings), min_size=0, max_size=12))
    return kind, values, draw(st.integers(1, 5)), rows


def frame_of(stream, day, kind, values, rows):
    first = stream.settings.calendar.utc_times(day)[0]
    stamps = [None if step is None else first + timedelta(minutes=30) * step for _, step, _ in rows]
    types = {"text": pl.String, "category": pl.Categorical, "integer": pl.Int64}
    if values == pl.Decimal(20, 4):
        read = pl.Series([None if text is None else Decimal(text) for *_, text in rows], dtype=values)
    else:
        read = pl.Series([text if text is None else float(text) for *_, text in rows], dtype=pl.Float64)
    return pl.DataFrame(
        {
            "timestamp": pl.Series(stamps, dtype=pl.Datetime("us", "UTC")),
            "load": read.cast(values),
            "customer_id": pl.Series([name for name, *_ in rows], dtype=pl.String).cast(types[kind]),
        }
    )


def as_delivered(values, rows):
    """The rows as the rules see them: a float is its shortest decimal."""
    for name, step, text in rows:
        shortest = np.float32(text) if values == pl.Float32 and text is not None else text
        yield name, step, None if text is None else str(shortest)


def whole_day(n_steps, region):
    """A file that gives every step a row, so that the day has no structural fault of its own."""
    return "text", pl.Float64, 7, [(f"keeper of {region}", step, "0.25") for step in range(n_steps)]


def check(stream, day, leaves):
    shutil.rmtree(stream.settings.input_folder, ignore_errors=True)
    for region, delivered in zip(stream.settings.tree_of(date.min).leaves, leaves, strict=True):
        for number, (kind, values, row_group_size, rows) in enumerate(delivered):
            frame = frame_of(stream, day, kind, values, rows)
            folder, name = region, f"part-{number}.parquet"
            if stream.settings.input.region is not None:
                folder, name = EVERY, f"part-{number}-{region}.parquet"
                frame = frame.with_columns(zone=pl.lit(region))
            frame.write_parquet(stream.write(folder, frame, day, name), row_group_size=row_group_size)
    (ingested,) = stream.ingest(day)
    by_hand = [[list(as_delivered(values, rows)) for _, values, _, rows in delivered] for delivered in leaves]
    n_steps, privacy = stream.settings.calendar.n_steps(day), stream.settings.privacy
    units, counts = ingest_by_hand(by_hand, n_steps, privacy.bounds, privacy.resolution)
    for leaf, found in enumerate(ingested.metrics.iter_rows(named=True)):
        assert {rule: found[rule] for rule in RULES} == {rule: counts[leaf][rule] for rule in RULES}
    assert np.array_equal(open_private_period(ingested.period), units)


@pytest.fixture(params=["", 'region = "zone"'], ids=["a folder for each leaf", "one folder"])
def stream(small, request):
    return small(schema="metered", marker=request.param)


def tries(n_examples):
    fixtures = HealthCheck.function_scoped_fixture
    return settings(max_examples=n_examples, deadline=None, suppress_health_check=[fixtures])


@pytest.mark.parametrize("n_examples", [8, pytest.param(60, marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_any_dump_counts_as_by_hand(stream, n_examples):
    @tries(n_examples)
    @given(day=st.sampled_from(DAYS), data=st.data(), whole=st.sampled_from([True, True, True, False]))
    def any_dump(day, data, whole):
        n_steps = stream.settings.calendar.n_steps(day)
        leaves = [data.draw(st.lists(files(), min_size=1, max_size=3)) for _ in range(2)]
        if whole:
            leaves = [[*own, whole_day(n_steps, leaf)] for leaf, own in enumerate(leaves)]
        check(stream, day, leaves)

    any_dump()


@tries(20)
@given(data=st.data())
@pytest.mark.nightly
def test_who_is_suspected_for_another_is_not_dropped(stream, few_at_a_time, data):
    """With hashes of two bits everybody meets somebody; and suspects are judged a few at a time."""
    some = st.lists(files(), min_size=1, max_size=3)
    check(stream, DAYS[0], [[*data.draw(some), whole_day(48, leaf)] for leaf in range(2)])


@pytest.fixture
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(sums, "HASH", 3 << 62)
    monkeypatch.setattr(sums, "ROWS_AT_ONCE", 5)
    monkeypatch.setattr(cells, "BYTES_A_PLAN", 2000)


def test_a_dump_delivered_twice_counts_once(stream):
    once = [("text", pl.Float64, 50, [(name, step, "0.345") for name in TEXTS for step in range(48)])]
    check(stream, DAYS[0], [once + once, [whole_day(48, 1)]])
    check(stream, DAYS[0], [once, once])

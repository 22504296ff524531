"""Files are read in one pass, whatever their types, row by row or aggregated."""

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import floor, inf, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.config import Input
from tasks.ingest.clamping import KINDS, countable, reading

BOUNDS = (Fraction("-2.5"), Fraction("100.0005"))
ANY_BOUNDS = pytest.mark.parametrize(
    "bounds", [BOUNDS, (Fraction(-9), Fraction(-3)), (Fraction(5), Fraction(50))], ids=str
)
AWKWARD = ["0", "0.0005", "-0.0005", "0.0015", "1.0005", "2.675", "0.1", "99.9995", "100.0005", "100.0006"]
AWKWARD += ["-2.5", "-7", "100", "12345"]
RESOLUTIONS = [Fraction(1, 1000), Fraction(1, 100), Fraction(1, 3), Fraction(7, 10), Fraction(40)]


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
    return lazy.collect(engine="streaming").with_columns(
        (pl.col("kind") == kind).alias(name) for kind, name in enumerate(KINDS)
    )


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.Int64, pl.UInt8, pl.UInt64, pl.Int128, pl.Decimal(10, 0)], ids=str
)
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

FACTORS = [Fraction(1), Fraction(1), Fraction(1, 1000), Fraction(1000), Fraction(1, 3), Fraction("0.0254")]
FINE = [*RESOLUTIONS, Fraction(1, 10**8)]
FLOAT_BOUNDS = [
    (Fraction(0), Fraction(6)),
    (Fraction("-2.5"), Fraction("100.0005")),
    (Fraction(5), Fraction(10**6)),
]


near_ties = st.builds(
    lambda units, halves, ulps: float(np.float64(units * 0.001 + halves * 0.0005) * (1 + ulps * 2.0**-52)),
    st.integers(-10, 7000), st.integers(0, 1), st.integers(-2, 2),
)  # fmt: skip
decimals = st.decimals(-3, 120, allow_nan=False, places=4).map(float)


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

"""Floats against the definition, also where floating point alone does not decide."""

from decimal import Decimal
from fractions import Fraction
from math import floor

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.ingest.formats import reading

RESOLUTIONS = [Fraction(1, 1000), Fraction(1, 3), Fraction(7, 10), Fraction(40), Fraction(1, 10**8)]
BOUNDS = [
    (Fraction(0), Fraction(6)),
    (Fraction("-2.5"), Fraction("100.0005")),
    (Fraction(5), Fraction(10**6)),
]


def counted(values, bounds, resolution):
    column = pl.Series("x", values)
    units = reading("x", column.dtype, bounds, resolution).units
    return pl.DataFrame(column).select(units=units)["units"].to_list()


def defined(values, bounds, resolution):
    units = []
    for value in values:
        if np.isnan(value):
            units.append(0)
            continue
        low, high = bounds
        exact = Fraction(Decimal(str(value))) if np.isfinite(value) else (high if value > 0 else low)
        units.append(floor(min(max(exact, low), high) / resolution + Fraction(1, 2)))
    return units


near_ties = st.builds(
    lambda units, halves, ulps: float(np.float64(units * 0.001 + halves * 0.0005) * (1 + ulps * 2.0**-52)),
    st.integers(-10, 7000), st.integers(0, 1), st.integers(-2, 2),
)  # fmt: skip
decimals = st.decimals(-3, 120, allow_nan=False, places=4).map(float)


@given(
    st.lists(near_ties | decimals | st.floats(allow_nan=True, allow_infinity=True), max_size=40),
    st.sampled_from(BOUNDS),
    st.sampled_from(RESOLUTIONS),
    st.sampled_from([np.float32, np.float64]),
)
@pytest.mark.slow
def test_any_float_counts_as_defined(values, bounds, resolution, number):
    with np.errstate(over="ignore"):
        raw = np.array(values, dtype=np.float64).astype(number)
    assert counted(raw, bounds, resolution) == defined(raw, bounds, resolution)


def test_every_tie_of_a_day_counts_as_defined():
    raw = np.arange(60_001) / 10_000
    raw[::1000] = np.nan
    expected = [0 if np.isnan(raw[tenth]) else (tenth + 5) // 10 for tenth in range(60_001)]
    assert counted(raw, BOUNDS[0], Fraction(1, 1000)) == expected

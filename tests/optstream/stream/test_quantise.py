"""Rounding half up on exact decimals, and the lemma that it cannot add to a sensitivity."""

import math
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.stream import PrivatePeriod
from optstream.stream.private_period import open_customers, open_private_period, quantise

resolutions = st.sampled_from(
    [Fraction(1, 1000), Fraction(1), Fraction(1, 4), Fraction(3, 1000), Fraction(5)]
)


def half_up(value, resolution):
    """Straight from the definition, in exact arithmetic."""
    quotient = Fraction(Decimal(str(value))) / resolution + Fraction(1, 2)
    return math.floor(quotient)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.decimals(-10000, 10000, places=4), min_size=1, max_size=20), resolutions)
@pytest.mark.slow
def test_floats_are_rounded_as_the_decimals_that_they_show(decimals, resolution):
    for dtype in (np.float64, np.float32):
        values = np.array([float(value) for value in decimals], dtype=dtype)
        assert quantise(values, resolution).tolist() == [half_up(value, resolution) for value in values]


@settings(max_examples=200, deadline=None)
@given(st.integers(-(10**7), 10**7), st.decimals("0.0001", 50, places=4), st.integers(0, 10**6), resolutions)
def test_values_alpha_apart_give_integers_at_most_alpha_apart(ten_thousandths, alpha, share, resolution):
    low = Decimal(ten_thousandths) / 10000
    high = low + (alpha * share / 10**6).quantize(Decimal("0.0001"), rounding=ROUND_FLOOR)
    units = quantise(np.array([float(low), float(high)]), resolution)
    assert 0 <= units[1] - units[0] <= math.ceil(Fraction(alpha) / resolution)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("value", "units"), [(np.nan, 0), (np.inf, 2**50), (-np.inf, -(2**50)), (3e38, 2**50), (-3e38, -(2**50))]
)
def test_no_value_is_refused(value, units, dtype):
    assert quantise(np.array([1.5, value], dtype=dtype), Fraction(1, 1000)).tolist() == [1500, units]


@pytest.mark.parametrize("resolution", [Fraction(1, 1000), Fraction(1, 3), Fraction(7), Fraction(1)])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_around_2_to_the_50_units_values_are_clamped_exactly(resolution, dtype):
    middle = math.floor(2**50 * resolution)
    values = np.array([middle + step for step in range(-20, 21)], dtype=dtype)
    expected = [min(half_up(value, resolution), 2**50) for value in values]
    assert quantise(values, resolution).tolist() == expected
    if dtype != np.uint64:
        negative = [max(half_up(-value, resolution), -(2**50)) for value in values]
        assert quantise(-values, resolution).tolist() == negative


@pytest.mark.parametrize("value", [np.iinfo(np.int64).max, np.iinfo(np.int64).min])
def test_the_largest_integers_are_clamped_too(value):
    assert abs(quantise(np.array([value]), Fraction(1, 3)).item()) == 2**50


def test_a_private_period_shows_no_value():
    period = PrivatePeriod.from_values([[71234.5, 1], [2, 3]], resolution=Fraction(1), first_step=5)
    assert repr(period) == "PrivatePeriod(n_leaves=2, n_steps=2, first_step=5)"
    assert "71234" not in str(period)
    assert not [
        name for name in dir(period) if isinstance(getattr(period, name), np.ndarray) and "__" not in name
    ]
    with pytest.raises(AttributeError):
        period.first_step = 0


def test_a_private_period_is_a_copy_of_integers():
    units = np.ones((2, 3), dtype=np.int64)
    period = PrivatePeriod(units, resolution=Fraction(1), first_step=0)
    units[0, 0] = 5
    assert open_private_period(period).tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(ValueError, match="read-only"):
        open_private_period(period)[0, 0] = 2
    for customers in (None, np.ones(3, dtype=np.int64)):
        with pytest.raises(ParameterError, match="customers of this period were not counted"):
            open_customers(PrivatePeriod(units, resolution=Fraction(1), first_step=0, customers=customers))
    with pytest.raises(ParameterError, match="int64"):
        PrivatePeriod(units.astype(float), resolution=Fraction(1), first_step=0)
    with pytest.raises(ParameterError, match="at least one step"):
        PrivatePeriod(units[:, :0], resolution=Fraction(1), first_step=0)
    with pytest.raises(ParameterError, match=r"first_step of a period must be a whole number; got 4\.0"):
        PrivatePeriod(units, resolution=Fraction(1), first_step=4.0)


def test_sums_of_a_private_period_cannot_overflow_and_size_stops_no_day():
    extreme = np.full((2, 3), np.iinfo(np.int64).min)
    extreme[1] = np.iinfo(np.int64).max
    units = open_private_period(PrivatePeriod(extreme, resolution=Fraction(1), first_step=0))
    assert units.tolist() == [[-(2**49)] * 3, [2**49] * 3]

"""A supplier who rounds sums or adds in floats: what a customer then moves, and that the noise is for it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from optstream.stream.private_period import quantise

GRID = Fraction(1, 10)
"""Of the exact sums that are tried."""
SUMS = [GRID * number for number in range(-40, 41)]


SUPPLIERS = {
    "half even": lambda value, width: round(value / width) * width,
    "half up": lambda value, width: math.floor(value / width + Fraction(1, 2)) * width,
    "down": lambda value, width: math.floor(value / width) * width,
    "up": lambda value, width: math.ceil(value / width) * width,
    "any error": lambda value, width: value + (width / 2 if value > 0 else -width / 2),
}


def most(supplier, width, alpha, resolution):
    """By how many units one customer moves a delivered sum, over all pairs of exact sums: by enumeration."""
    half_up = SUPPLIERS["half up"]
    units = [int(half_up(supplier(value, width), resolution) / resolution) for value in SUMS]
    reach = int(alpha / GRID)
    return max(abs(a - b) for n, a in enumerate(units) for b in units[n : n + reach + 1])


@pytest.fixture
def stream(small, load_text):
    """stream("0.3", rounding="1"): alpha and what the supplier does."""

    def make(alpha, resolution="0.001", rounding=None):
        key = "" if rounding is None else f'supplier_rounding = "{rounding}"'
        text = small(resolution=resolution, marker=key).settings.file.read_text()
        return load_text(text, ('alpha = "10"', f'alpha = "{alpha}"'))

    return make


@pytest.mark.parametrize("resolution", ["0.1", "1", "0.7"])
@pytest.mark.parametrize("rounding", ["0.2", "1", "3"])
@pytest.mark.parametrize("alpha", ["0.3", "2"])
@pytest.mark.slow
def test_no_supplier_of_that_rounding_moves_more_than_is_priced(stream, resolution, rounding, alpha):
    priced = stream(alpha, resolution, rounding).model.alpha_units
    for name, supplier in SUPPLIERS.items():
        assert most(supplier, Fraction(rounding), Fraction(alpha), Fraction(resolution)) <= priced, name


def test_sums_in_floats_move_by_a_unit_more_and_a_small_rounding_covers_them(stream):
    """Of 185 customers of a tenth and one of 1, errors below 1e-13 decide two ties."""
    low, high = (float(np.cumsum([own, *[0.1] * 185])[-1]) for own in (0.0, 1.0))
    below, above = quantise(np.array([low, high]), Fraction(1))
    assert abs(low - 18.5) < 1e-13 > abs(high - 19.5)
    assert above - below == 2 > stream("1", "1").model.alpha_units
    assert above - below <= stream("1", "1", "0.000001").model.alpha_units


def test_it_is_part_of_the_guarantee_and_the_hash_but_not_of_what_is_covered(stream):
    settings = stream("10", rounding="1")
    assert settings.model.alpha == 11
    assert stream("10").model.alpha == 10
    assert settings.configuration_hash != stream("10").configuration_hash
    assert stream("10", rounding="0").configuration_hash == stream("10").configuration_hash


def test_exact_sums_and_whole_ones_of_a_smaller_alpha_are_one_model(stream):
    """So nothing is amended between them: alpha = 1.1 exactly, then whole MW at alpha = 0.1."""
    exact, whole = stream("1.1", "0.1"), stream("0.1", "0.1", "1")
    assert exact.model == whole.model
    assert whole.model.alpha_units == 11

"""The discrete Gaussian sampler: its law in fractions, and what floats decide; draws are in `test_noise`."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest

from optstream.errors import NoiseError
from optstream.noise import discrete_gaussian, gaussian, secure_noise
from optstream.noise.gaussian import exponent_of
from optstream.noise.laplace import leading_bytes

SIGMAS = [0.3, 1.0, 2.5, 31.4, 28_800.125]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_what_is_kept_of_the_proposals_has_the_weights_of_the_law_exactly(sigma):
    """Logarithms of both weights, in fractions, differ by a constant."""
    variance, scale = Fraction(sigma) ** 2, math.floor(sigma) + 1
    constants = {
        -Fraction(k, scale) - exponent_of(sigma, k) + k**2 / (2 * variance) for k in (0, 1, 2, 7, 10**6)
    }
    assert len(constants) == 1


@pytest.mark.parametrize("sigma", SIGMAS)
def test_floats_are_as_near_to_the_chances_as_the_lemma_says(sigma):
    getcontext().prec = 50
    reach = int(12 * sigma) + 3
    distances = np.unique(np.linspace(0, reach, 400).astype(np.int64))
    found = gaussian._chance(sigma, distances)
    for distance, chance in zip(distances.tolist(), found.tolist(), strict=True):
        exponent = exponent_of(sigma, distance)
        exact = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        assert abs(exact - Decimal(chance)) < Decimal(2) ** -38
    assert gaussian.UNSURE > 2.0**-36


@pytest.mark.parametrize(("sigma", "distance"), [(2.5, 4), (31.4, 50)])
def test_near_a_tie_floats_do_not_decide_and_in_one_the_digits_that_follow_do(sigma, distance):
    """One of 2^56 off the chance floats cannot decide; where they can, no further digits are drawn."""
    exact = leading_bytes(exponent_of(sigma, distance), 0, 14)
    first, second = (int.from_bytes(part, "big") for part in (exact[:7], exact[7:]))
    for digits, kept in (
        ([first, second - 1], True), ([first, second + 1], False), ([first - 1], True), ([first + 1], False),
        ([0], True), ([2**56 - 1], False),
    ):  # fmt: skip
        draw = Mock(side_effect=[np.array([digit]) for digit in digits])
        assert gaussian._kept(Mock(uniform_below=draw), sigma, np.array([distance])).tolist() == [kept]
        assert [call.args[0].tolist() for call in draw.call_args_list] == [[256**7]] * len(digits)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan, 2.0**-11, 2.0**45, 1])
def test_a_sigma_outside_its_range_is_refused(sigma):
    with pytest.raises(NoiseError):
        discrete_gaussian(secure_noise(), sigma, (2,))

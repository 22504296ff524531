"""Customers who are left out by chance."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.noise import secure_noise
from studies.personalised.customer_sample import noisy_counts, noisy_distance, sampled
from studies.personalised.personal_epsilon import CHANCE_UNITS, chance_units
from tests.optstream.mechanisms.silent_noise import SilentNoise


def counts(*rows):
    return np.array(rows, dtype=np.int64)


def test_each_customer_of_a_shy_class_takes_part_by_a_draw_of_its_own():
    """Secure randomness; six standard deviations of a binomial count: a false alarm in 10^8 runs."""
    offers = [Fraction(1, 4), Fraction(2)]
    found = sampled(counts([40_000, 0, 10_000], [7, 5, 0]), offers, Fraction(1), secure_noise())
    chance = chance_units(offers[0], Fraction(1)) / CHANCE_UNITS
    assert found[1] == 5
    for count, expected in ((found[0] - 7, 40_000), (found[2], 10_000)):
        assert abs(count - expected * chance) < 6 * np.sqrt(expected * chance * (1 - chance))
        # control: nobody left out, or a plain share of the epsilons
        assert abs(count - expected * 0.25) > 6 * np.sqrt(expected * 0.25 * 0.75)


def test_what_is_answered_is_of_the_sample_with_noise_of_the_threshold():
    noise, certain = SilentNoise(), [Fraction(1, 3), Fraction(1)]
    given = counts([3, 1], [10, 0])
    assert noisy_counts(given, certain, Fraction(1, 3), noise).tolist() == [13, 1]
    assert noisy_distance(given, np.array([10, 5]), certain, Fraction(1, 3), noise) == 3 + 4
    assert all(scale >= 3 and scale == pytest.approx(3) for scale, _ in noise.asked)

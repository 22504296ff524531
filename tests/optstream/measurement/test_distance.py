"""Publishing by distance: exact comparisons, the order of draws, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement.distance import is_far, measure_by_distance
from optstream.privacy import CappedSpend, StepSpend
from optstream.stream import PrivatePeriod


class CountedNoise:
    """1, 2, 3, … in the order in which they are asked for."""

    simulated = False

    def __init__(self, first=1):
        self.next = first
        self.asked = []

    def discrete_laplace(self, scale, size):
        self.asked.append((scale, size))
        drawn = np.arange(self.next, self.next + np.prod(size)).reshape(size)
        self.next += drawn.size
        return drawn


class FixedRule:
    """These grains of 8 at these steps, whatever is published; a record of it."""

    n_grains = 8

    def __init__(self, *offers):
        self.offers = offers
        self.published = []

    def offer(self, step):
        return self.offers[step]

    def publish(self, step, grains):
        self.published.append((step, grains))


def plans(n_steps, first_step=5):
    return (
        StepSpend(0, "distance", first_step, (1,) * n_steps, Fraction(100), 1),
        CappedSpend(0, "publications", first_step, n_steps, 1, (), Fraction(3), 1),
    )


def period(values):
    return PrivatePeriod(np.array(values, dtype=np.int64), resolution=Fraction(1), first_step=5)


def test_by_hand_what_is_drawn_and_what_is_paid():
    """Scales 3 * 8 / grains: 24, 12 and 6 for each of two series; noise 1, 2, 3, … makes the rest."""
    rule, noise = FixedRule(1, 0, 2, 4), CountedNoise()
    values = period([[40, 99, 41, 0], [9, 99, 12, 0]])
    measured = measure_by_distance(values, [0, 0], *plans(4), rule, noise)
    # 49 + 1 > 2 * 24: published with 2 and 3; then |41 - 42| + |12 - 12| + 4 < 2 * 12; then 54 + 5 > 2 * 6
    assert measured.positions == (0, 3)
    assert measured.points.tolist() == [[42, 6], [12, 7]]
    assert noise.asked == [(100.0, (1,)), (24.0, (2,)), (100.0, (1,)), (100.0, (1,)), (6.0, (2,))]
    assert rule.published == [(0, 1), (3, 4)]
    assert measured.point_variances.tolist() == [[2 * 24**2, 2 * 6**2]] * 2
    distance, publications = measured.spends
    assert (distance.weights, distance.scale) == ((1, 0, 1, 1), 100)
    assert (publications.weights, publications.scale) == ((Fraction(1, 8), 0, 0, Fraction(1, 2)), 3)
    assert not measured.simulated


@pytest.mark.parametrize("n_series", [1, 3])
def test_the_comparison_is_strict_and_exact_where_floats_are_not(n_series):
    """2^57 and one: as floats they are the same."""
    at = 2**57 * n_series
    last = np.zeros(n_series, dtype=np.int64)
    exact = np.full(n_series, 2**57)
    for on_distance, expected in ((-1, False), (0, False), (1, True)):
        assert is_far(exact, last, 2.0**57, 1.0, CountedNoise(on_distance)) == expected
    assert float(at + 1) == float(at)


def test_what_does_not_fit_is_refused_before_anything_is_drawn():
    noise = CountedNoise()
    with pytest.raises(ParameterError, match="a last release of 2 series, and this period has 1"):
        measure_by_distance(period([[7, 7]]), [0, 0], *plans(2), FixedRule(1, 1), noise)
    for wrong in (plans(3), plans(2, 6)):
        with pytest.raises(ParameterError, match="does not price the steps"):
            measure_by_distance(period([[7, 7]]), [0], *wrong, FixedRule(1, 1), noise)
    assert noise.asked == []

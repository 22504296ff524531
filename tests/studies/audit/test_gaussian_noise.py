"""Gaussian noise in the audit: events at a delta, enumeration, and twins that are broken on purpose.

Seeded: the same counts every time. Each audit is wrong with probability 1e-9 at most.
"""

import math

import numpy as np
import pytest

from studies.audit.enumeration import enumerated_window
from studies.audit.statistics import epsilon_bound


def test_a_window_loses_no_more_than_is_claimed_by_exact_probabilities():
    found = enumerated_window().enumerate()
    assert 0.8 < found.lower_bound <= found.claimed == 1.0
    assert found.delta == 1e-3
    assert not found.exceeds


def test_the_enumeration_agrees_with_the_gaussian_law_where_sigma_is_large():
    """The hockey-stick divergence of two Gaussians, in closed form (Balle and Wang 2018, Theorem 8)."""
    subject, epsilon = enumerated_window(), 0.7
    ratio = math.sqrt(subject.n_answers) * subject.move / subject.sigma
    below = [
        0.5 * math.erfc(-x / math.sqrt(2))
        for x in (ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio)
    ]
    assert subject.delta(epsilon) == pytest.approx(below[0] - math.exp(epsilon) * below[1], rel=2e-3)


def test_an_event_as_rare_as_delta_says_nothing():
    """Seen 0.1 % of the time on one side and never on the other: nothing at delta 1e-3, much at 0."""
    pure, told = (epsilon_bound([1000], [0], 10**6, 1e-9, delta)[0] for delta in (0.0, 1.2e-3))
    assert pure > 3
    assert told == -np.inf
    assert epsilon_bound([500_000], [100_000], 10**6, 1e-9, 1e-3)[0] < np.log(5)

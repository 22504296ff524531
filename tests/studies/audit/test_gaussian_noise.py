"""Gaussian noise in the audit: events at a delta, enumeration, and twins that are broken on purpose.

Seeded: the same counts every time. Each audit is wrong with probability 1e-9 at most.
"""

import math

import numpy as np
import pytest

from optstream.noise import simulated_noise
from studies.audit.attack import audit
from studies.audit.controls import sum_of_steps
from studies.audit.enumeration import enumerated_window, small_sigma
from studies.audit.statistics import epsilon_bound


def test_a_window_loses_no_more_than_is_claimed_by_exact_probabilities():
    found = enumerated_window().enumerate()
    assert 0.8 < found.lower_bound <= found.claimed == 1.0
    assert found.delta == 1e-3
    assert not found.exceeds


def test_a_sigma_that_is_a_fifth_too_small_is_found_by_exact_probabilities():
    found = small_sigma().enumerate()
    assert found.exceeds
    assert found.lower_bound == pytest.approx(1.13, abs=0.01)


def test_the_enumeration_agrees_with_the_gaussian_law_where_sigma_is_large():
    """The hockey-stick divergence of two Gaussians, in closed form (Balle and Wang 2018, Theorem 8)."""
    subject, epsilon = enumerated_window(), 0.7
    ratio = math.sqrt(subject.n_answers) * subject.move / subject.sigma
    below = [
        0.5 * math.erfc(-x / math.sqrt(2))
        for x in (ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio)
    ]
    assert subject.delta(epsilon) == pytest.approx(below[0] - math.exp(epsilon) * below[1], rel=2e-3)


@pytest.mark.parametrize("squared", [True, False])
def test_a_sum_that_is_charged_step_by_step_is_found_from_runs(squared):
    subject = sum_of_steps(squared=squared)
    found = audit(subject, n_runs=100_000, noise=simulated_noise(20160201))
    assert found.delta == subject.delta == 1e-3
    assert found.exceeds is not squared


def test_an_event_as_rare_as_delta_says_nothing():
    """Seen 0.1 % of the time on one side and never on the other: nothing at delta 1e-3, much at 0."""
    pure, told = (epsilon_bound([1000], [0], 10**6, 1e-9, delta)[0] for delta in (0.0, 1.2e-3))
    assert pure > 3
    assert told == -np.inf
    assert epsilon_bound([500_000], [100_000], 10**6, 1e-9, 1e-3)[0] < np.log(5)

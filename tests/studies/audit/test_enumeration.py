"""Exact probabilities: they add up, agree with sampling, and with the project's own sampler."""

import math

import numpy as np
import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import control_cases, enumerated_samplers
from studies.audit.controls import SparseVector
from studies.audit.enumeration import enumerated_window, first_above
from studies.audit.statistics import epsilon_bound

RUNS = 40_000
SAMPLERS = enumerated_samplers()


def close(frequencies, probabilities, runs):
    """Within 5.5 standard deviations: a false alarm in 2e7 frequencies."""
    deviation = np.sqrt(probabilities * (1 - probabilities) / runs)
    return np.all(np.abs(frequencies - probabilities) <= 5.5 * deviation + 1e-9)


@pytest.mark.parametrize("shared", [False, True])
def test_probabilities_agree_with_sampling(shared):
    vector = SparseVector("small", shared=shared, n_queries=6, sensitivity=3)
    for side in (0, 1):
        exact = first_above(vector.sides[side].tolist(), vector.threshold, *vector.scales, shared=shared)
        assert exact.sum() == pytest.approx(1.0, abs=1e-12)
        drawn = vector.sample(side, RUNS, simulated_noise(side)).answers[:, 0]
        assert close(np.bincount(drawn, minlength=7) / RUNS, exact, RUNS)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.slow
def test_the_enumerated_sampler_is_the_one_that_is_released(sampler):
    """The mechanism's own choices, drawn, are as likely as this package computes them to be."""
    runs, noise = 1000, simulated_noise(11)
    values = np.array([sampler.base])
    drawn = [sampler.mechanism.measure(values, noise=noise).positions for _ in range(runs)]
    asked = [positions[1] if positions[1:] and positions[1] < 5 else 5 for positions in drawn]
    exact = sampler.probabilities(sampler.base)
    assert close(np.bincount(asked, minlength=6)[1:] / runs, exact, runs)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.slow
def test_no_change_of_a_period_costs_the_sampler_more_than_it_is_charged(sampler):
    result = sampler.enumerate()
    assert 0 < result.lower_bound <= sampler.claimed
    assert result.method == "enumeration"


CASES = control_cases()


@pytest.mark.slow
def test_the_papers_feature_scale_measures_well_above_epsilon():
    case = CASES[0]
    result = case.run(n_runs=1000, noise=simulated_noise(9))
    assert 2.5 < result.lower_bound < case.accountant
    assert case.accountant == pytest.approx(24.5, rel=1e-12)


def test_the_honest_sparse_vector_meets_its_epsilon_exactly_and_half_the_noise_costs_half_as_much_again():
    assert SparseVector("right").enumerate().lower_bound == pytest.approx(1.0, abs=1e-6)
    assert SparseVector("half", query_factor=2.0).enumerate().lower_bound == pytest.approx(1.5, abs=1e-3)


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
    pure, with_delta = (epsilon_bound([1000], [0], 10**6, 1e-9, delta)[0] for delta in (0.0, 1.2e-3))
    assert pure > 3
    assert with_delta == -np.inf
    assert epsilon_bound([500_000], [100_000], 10**6, 1e-9, 1e-3)[0] < np.log(5)

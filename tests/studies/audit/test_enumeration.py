"""Exact probabilities: they add up, agree with sampling, and with the project's own sampler."""

import numpy as np
import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import enumerated_samplers
from studies.audit.controls import SparseVector
from studies.audit.enumeration import first_above

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

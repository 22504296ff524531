"""Exact probabilities: they add up, agree with sampling, and with the project's own sampler."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from studies.audit.controls import SparseVector
from studies.audit.enumeration import exact_bound, first_above
from studies.audit.sampler import EnumeratedSampler, l1_score
from studies.audit.subjects.plans import enumerated_samplers

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


def test_shared_noise_over_queries_that_rise_and_fall():
    """Once a query was below, a lower one is too: the noise is the same."""
    queries, scales = [3, 0, 5, 2], (2.0, 4.0)
    exact = first_above(queries, 4, *scales, shared=True)
    noise = simulated_noise(6)
    above = np.array(queries) + noise.discrete_laplace(4.0, (RUNS, 1)) >= 4 + noise.discrete_laplace(
        2.0, (RUNS, 1)
    )
    drawn = np.where(above.any(axis=1), above.argmax(axis=1), 4)
    assert close(np.bincount(drawn, minlength=5) / RUNS, exact, RUNS)
    assert exact[1] == exact[3] == 0


@pytest.mark.slow
def test_one_query_against_a_sum_by_hand():
    values = np.arange(-400, 401)
    first, second = (np.exp(-np.abs(values) / scale) * np.tanh(0.5 / scale) for scale in (2.0, 4.0))
    by_hand = sum(
        p * q for x, p in zip(values, first, strict=True) for y, q in zip(values, second, strict=True)
        if 3 + y >= 5 + x
    )  # fmt: skip
    assert first_above([3], 5, 2.0, 4.0)[0] == pytest.approx(by_hand, rel=1e-9)
    assert first_above([3], 5, 2.0, 4.0, shared=True)[0] == pytest.approx(by_hand, rel=1e-9)


def test_the_bound_is_below_the_true_ratio_and_finite_where_an_outcome_is_impossible():
    bound, outcome = exact_bound(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
    assert outcome == 0
    assert np.log(2) - 1e-6 < bound < np.log(2)
    impossible, outcome = exact_bound(np.array([0.1, 0.9]), np.array([0.0, 1.0]))
    assert outcome == 0
    assert 50 < impossible < 60


def test_the_l1_score_by_hand():
    assert l1_score((0, 5, 0)) == 5
    assert l1_score((0, 0, 3)) == 1.5
    assert l1_score((0, 1, 2, 3)) == 0
    assert l1_score((4,)) == 0


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


def test_other_mechanisms_are_not_enumerated():
    spaced = OptStream(
        SAMPLERS[0].mechanism.model, SAMPLERS[0].mechanism.tree, sampling=EquallySpaced(2), features=[],
        level_shares=["1"],
    )  # fmt: skip
    with pytest.raises(ParameterError, match="only an L1 sampler"):
        EnumeratedSampler("spaced", spaced, (0,) * 6)

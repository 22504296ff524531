"""The filter against the whole Gaussian computed at once, with matrices; the line against its formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.estimation.fast import ConstantState, StraightLine

DIFFUSE = 1e9


def conditional(steps, noisy, at, process_variance, noise_variance):
    """Mean and variance of x[at] given z at `steps` <= at: a random walk's joint covariance, conditioned.

    The start has a variance so large that it says nothing, which costs some digits.
    """
    times = np.array([*steps, at]) - steps[0]
    covariance = DIFFUSE + process_variance * np.minimum.outer(times, times)
    observed = covariance[:-1, :-1] + noise_variance * np.eye(len(steps))
    gain = np.linalg.solve(observed, covariance[:-1, -1])
    return gain @ np.array(noisy), covariance[-1, -1] - gain @ covariance[:-1, -1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(-50, 50)), min_size=1, max_size=8),
    st.integers(1, 12),
    st.sampled_from([0.01, 1.0, 7.5]),
    st.sampled_from([0.3, 2.0, 20.0]),
)
@pytest.mark.slow
def test_prediction_and_correction_are_the_conditional_distribution(gaps, ahead, process, noise):
    steps = [int(step) for step in np.cumsum([gap for gap, _ in gaps])]
    noisy = [value for _, value in gaps]
    filtered = ConstantState(process, noise, {})
    assert filtered.prior(steps[0]) is None
    for count, (step, value) in enumerate(zip(steps, noisy, strict=True), start=1):
        posterior = filtered.correct(step, np.array([float(value)]))
        mean, variance = conditional(steps[:count], noisy[:count], step, process, noise)
        assert posterior.mean[0] == pytest.approx(mean, rel=1e-4, abs=1e-4)
        assert posterior.variance == pytest.approx(variance, rel=1e-4, abs=1e-4)
    prior = filtered.prior(steps[-1] + ahead)
    mean, variance = conditional(steps, noisy, steps[-1] + ahead, process, noise)
    assert prior.mean[0] == pytest.approx(mean, rel=1e-4, abs=1e-4)
    assert prior.variance == pytest.approx(variance, rel=1e-4, abs=1e-4)


def test_a_line_through_the_last_two_and_its_noise():
    line = StraightLine(2.0, {})
    assert line.prior(0) is None
    line.correct(0, np.array([10.0]))
    assert (line.prior(7).mean[0], line.prior(7).variance) == (10.0, 2.0)
    line.correct(4, np.array([18.0]))
    line.correct(6, np.array([17.0]))
    for step, beyond in ((7, 0.5), (8, 1.0), (9, 1.0), (100, 1.0)):
        prior = line.prior(step)
        assert prior.mean[0] == pytest.approx(17.0 + beyond * (17.0 - 18.0))
        weights = np.array([-beyond, 1 + beyond])
        assert prior.variance == pytest.approx(2.0 * weights @ weights)

"""FAST's filter against the whole Gaussian computed at once; its interval law and controller by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.mechanisms.fast import ConstantState, Fast, SamplingController, StraightLine
from optstream.privacy import PrivacyModel

DIFFUSE = 1e9
MODEL = PrivacyModel("1", 100, "2", resolution=1)
ADAPTIVE = Fast(MODEL, proportional=0.7, integral=0.2, derivative=0.1, integration_time=2)


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
    found = []
    for count, (step, value) in enumerate(zip(steps, noisy, strict=True), start=1):
        found.append((filtered.correct(step, np.array([float(value)])), count, step))
    found.append((filtered.prior(steps[-1] + ahead), len(steps), steps[-1] + ahead))
    for state, count, step in found:
        mean, variance = conditional(steps[:count], noisy[:count], step, process, noise)
        assert state.mean[0] == pytest.approx(mean, rel=1e-4, abs=1e-4)
        assert state.variance == pytest.approx(variance, rel=1e-4, abs=1e-4)


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
        assert prior.variance == pytest.approx(2.0 * (beyond**2 + (1 + beyond) ** 2))


def test_feedback_by_hand():
    errors = [(0, 0.9), (10, 0.4), (14, 0.2)]
    expected = 0.7 * 0.2 + 0.2 * (0.4 + 0.2) / 2 + 0.1 * (0.2 - 0.4) / 4
    assert ADAPTIVE.feedback(errors) == pytest.approx(expected)
    assert ADAPTIVE.next_interval(12.0, errors) == pytest.approx(
        12.0 + 5 * (1 - math.exp((expected - 0.1) / 0.1))
    )


def controller(mechanism):
    return SamplingController(mechanism, ConstantState(1.0, 3.0, {}), {})


def test_the_next_sample_is_k_plus_the_interval_not_a_multiple_of_it():
    steered = controller(Fast(MODEL, n_samples=20, sampling="fixed"))
    assert steered.due(7)
    for measured, expected in ((7, 12), (13, 18)):
        steered.saw(measured, np.array([4]))
        assert next(step for step in range(measured + 1, 30) if steered.due(step)) == expected


def test_the_error_is_the_mean_over_series_of_the_relative_correction():
    """Signed errors would cancel here: one series is corrected up, the other down by as much."""
    steered = controller(ADAPTIVE)
    steered.saw(0, np.array([100, 100]))
    steered.saw(1, np.array([170, 30]))
    moved = 4 / 7 * 70
    expected = (moved / (100 + moved) + moved / (100 - moved)) / 2
    assert steered.memory()["errors"] == [[1, pytest.approx(expected)]]

"""The interval law and the controller: by hand, and against what they are for."""

import math

import numpy as np
import pytest

from optstream.estimation.fast import AdaptiveInterval, ConstantState, FixedInterval, SamplingController


def law(**changes):
    given = {
        "proportional": 0.7,
        "integral": 0.2,
        "derivative": 0.1,
        "integration_time": 2,
        "step": 5.0,
        "set_point": 0.1,
        "shortest": 1,
        "longest": 100,
    }
    return AdaptiveInterval(**(given | changes))


def test_feedback_by_hand():
    errors = [(0, 0.9), (10, 0.4), (14, 0.2)]
    expected = 0.7 * 0.2 + 0.2 * (0.4 + 0.2) / 2 + 0.1 * (0.2 - 0.4) / 4
    assert law().feedback(errors) == pytest.approx(expected)
    assert law().after(12.0, errors) == pytest.approx(12.0 + 5 * (1 - math.exp((expected - 0.1) / 0.1)))


def controller(memory=None, own_law=None, process=1.0, noise=3.0):
    memory = memory or {}
    return SamplingController(ConstantState(process, noise, memory), own_law or law(), 2.0, memory)


def test_the_next_sample_is_k_plus_the_interval_not_a_multiple_of_it():
    steered = controller(own_law=FixedInterval(5))
    assert steered.due(7)
    steered.saw(7, np.array([4]))
    assert next(step for step in range(8, 20) if steered.due(step)) == 12
    steered.saw(13, np.array([4]))
    assert next(step for step in range(14, 30) if steered.due(step)) == 18


def test_the_error_is_the_mean_over_series_of_the_relative_correction():
    """Signed errors would cancel here: one series is corrected up, the other down by as much."""
    steered = controller(process=1.0, noise=3.0)
    steered.saw(0, np.array([100, 100]))
    steered.saw(1, np.array([170, 30]))
    gain = 4 / 7
    up, down = 100 + gain * 70, 100 - gain * 70
    expected = (gain * 70 / up + gain * 70 / down) / 2
    assert steered.memory()["errors"] == [[1, pytest.approx(expected)]]

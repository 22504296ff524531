"""Sliding windows and events against loops."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation.queries import drops, jumps, low_signal, window_sums

SERIES = np.random.default_rng(4).integers(0, 20, (3, 2, 15)).astype(float)


@pytest.mark.parametrize("length", [1, 4, 15])
def test_windows_are_complete_and_end_at_each_step(length):
    sums, low = window_sums(SERIES, length), low_signal(SERIES, length, 9.0 * length)
    assert sums.shape == low.shape == (3, 2, 16 - length)
    for end in range(length, 16):
        expected = SERIES[..., end - length : end].sum(axis=-1)
        assert np.allclose(sums[..., end - length], expected)
        assert np.array_equal(low[..., end - length], expected <= 9.0 * length)


def test_a_window_at_the_limit_is_low():
    assert low_signal([1, 2, 3], 2, 3).tolist() == [True, False]


def test_jumps_and_drops_by_hand():
    series = [5, 5, 9, 8, 2]
    assert jumps(series, 1, 4).tolist() == [False, True, False, False]
    assert drops(series, 1, 4).tolist() == [False, False, False, True]
    assert jumps(series, 2, 3).tolist() == [True, True, False]
    assert drops(series, 2, 3).tolist() == [False, False, True]


@pytest.mark.parametrize("lag", [1, 3, 14])
def test_a_drop_is_a_jump_of_the_mirrored_series(lag):
    assert jumps(SERIES, lag, 5).shape == (3, 2, 15 - lag)
    assert np.array_equal(drops(SERIES, lag, 5), jumps(-SERIES, lag, 5))
    for step in range(lag, 15):
        risen = SERIES[..., step] - SERIES[..., step - lag] >= 5
        assert np.array_equal(jumps(SERIES, lag, 5)[..., step - lag], risen)


@pytest.mark.parametrize("length", [0, 4, 1.0, True])
def test_a_length_outside_the_series_is_named(length):
    with pytest.raises(ParameterError, match=r"length must be an integer in \[1, 3\]; got"):
        window_sums([1, 2, 3], length)


@pytest.mark.parametrize("lag", [0, 3])
def test_a_lag_outside_the_series_is_named(lag):
    with pytest.raises(ParameterError, match=r"lag must be an integer in \[1, 2\]; got"):
        jumps([1, 2, 3], lag, 1)


def test_limits_must_be_numbers():
    with pytest.raises(ParameterError, match="by must be a finite number; got nan"):
        drops([1, 2], 1, float("nan"))
    with pytest.raises(ParameterError, match="at_most must be a finite number; got '3'"):
        low_signal([1, 2], 1, "3")
    with pytest.raises(ParameterError, match="values must have shape"):
        window_sums(3.0, 1)

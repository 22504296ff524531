"""Questions to released counts, step by step from their definitions."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation.pegasus.event_queries import jumps, low_signal, window_sums

COUNTS = np.random.default_rng(0).integers(0, 9, (3, 20)).astype(float)


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_each_window_is_answered_as_its_definition_says(length):
    sums, low, up = (
        window_sums(COUNTS, length),
        low_signal(window_sums(COUNTS, length), 12),
        jumps(COUNTS, length, 3),
    )
    down = jumps(-COUNTS, length, 3)
    assert sums.shape == low.shape == up.shape == down.shape == (3, 21 - length)
    for series, counts in enumerate(COUNTS):
        for end in range(length - 1, 20):
            window, place = counts[end - length + 1 : end + 1], (series, end - length + 1)
            assert sums[place] == sum(window)
            assert low[place] == (sum(window) <= 12)
            assert up[place] == (window[-1] - window[0] >= 3)
            assert down[place] == (window[0] - window[-1] >= 3)


def test_low_signal_and_jumps_include_their_border():
    assert low_signal(np.array([[3.0, 3.1]]), 3).tolist() == [[True, False]]
    assert jumps(np.array([[1.0, 3.0, 4.9]]), 2, 2).tolist() == [[True, False]]


@pytest.mark.parametrize("length", [0, 21, 2.0, True])
def test_a_window_outside_the_series_is_refused(length):
    with pytest.raises(ParameterError, match=r"length must be an integer in \[1, 20\]"):
        window_sums(COUNTS, length)
    with pytest.raises(ParameterError, match="length must be"):
        jumps(COUNTS, length, 1)


def test_a_jump_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="least must be greater than 0"):
        jumps(COUNTS, 2, 0)

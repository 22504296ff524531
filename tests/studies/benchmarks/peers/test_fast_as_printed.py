"""FAST's algorithms as its report prints them, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.noise import simulated_noise
from studies.benchmarks.peers.fast_as_printed import AsPrinted, adaptive, fixed_rate, next_steps

SERIES = np.array([10.0, 10, 20, 20, 20, 20])
BY_HAND = AsPrinted(process_variance=0.0, first_variance=10.0, integration_time=1)


class Silent:
    simulated = True

    def discrete_laplace(self, scale, size):
        self.asked = (scale, size)
        return np.zeros(size, dtype=np.int64)


def test_predictors_say_the_next_step_from_the_ones_before():
    noisy = np.array([3.0, 5.0, 4.0, 9.0, 2.0])
    assert next_steps(noisy, "linear", AsPrinted()).tolist() == [7.0, 3.0, 14.0]
    assert next_steps(noisy, "noisy", AsPrinted()).tolist() == [4.0, 9.0, 2.0]
    mean, variance, expected = 3.0, 10.0, []
    for value in noisy[1:]:
        gain = (variance + 0.001) / (variance + 0.001 + 10)
        mean, variance = mean + gain * (value - mean), gain * 10
        expected.append(mean)
    assert next_steps(noisy, "kalman", AsPrinted()) == pytest.approx(expected[:-1])


def test_algorithm_3_by_hand_with_the_printed_sign_samples_where_nothing_happens():
    """Errors 0, 1/4 and 1/9 lie below the set point: the interval stays 1 until four samples are taken."""
    noise = Silent()
    released, taken = adaptive(SERIES, 0.5, 4, BY_HAND, noise)
    assert noise.asked == (8.0, (4,))
    assert taken == 4
    assert released == pytest.approx([10, 10, 40 / 3, 15, 15, 15])


def test_algorithm_3_by_hand_with_the_sign_turned_waits():
    """An error of 0 makes the interval 1 + 5 (1 - 1/e) = 4.16: step 4 is next; 1/4 makes it 5.7: step 5."""
    released, taken = adaptive(SERIES, 0.5, 4, replace(BY_HAND, printed_sign=False), Silent())
    assert taken == 4
    assert released == pytest.approx([10, 10, 10, 10, 40 / 3, 15])


def test_the_sign_decides_what_a_large_error_does():
    large = 3.0
    assert AsPrinted().interval_after(4.0, large) > 4 > AsPrinted().interval_after(4.0, 0.0)
    turned = AsPrinted(printed_sign=False)
    assert turned.interval_after(4.0, large) == 1.0
    assert turned.interval_after(4.0, 0.0) > 4


def test_feedback_by_hand_and_errors_without_their_sign():
    constants = AsPrinted(proportional=0.5, integral=0.25, derivative=0.25, integration_time=2)
    assert constants.feedback([(1, 9.0), (4, 1.0), (6, 3.0)]) == pytest.approx(1.5 + 0.25 * 2 + 0.25 * 1)
    falling = np.array([100.0, 0, 0, 0, 0, 0, 0, 0])
    signed, by_size = (
        adaptive(falling, 1, 8, replace(BY_HAND, printed_sign=False, signed=signed), Silent())[1]
        for signed in (True, False)
    )
    assert signed < by_size  # a fall is a negative error, which the set point takes for calm


@pytest.mark.parametrize("law", [AsPrinted(), AsPrinted(printed_sign=False), AsPrinted(signed=False)])
def test_no_more_than_m_steps_are_measured_and_the_others_repeat_the_one_before(law):
    series = np.random.default_rng(0).integers(0, 500, 120).astype(float)
    released, taken = adaptive(series, 1.0, 30, law, simulated_noise(1))
    moves = 1 + np.count_nonzero(np.diff(released))
    assert moves <= taken <= 30
    every, all_taken = adaptive(series, 1.0, 120, replace(law, interval_step=1e-9), simulated_noise(1))
    assert all_taken == 120
    assert np.count_nonzero(np.diff(every)) == 119


def test_a_fixed_rate_takes_m_steps_at_equal_distances():
    series = np.arange(12, dtype=float)
    noise = Silent()
    released = fixed_rate(series, 0.5, 4, AsPrinted(noise_variance=1e-12), noise)
    assert noise.asked == (8.0, (4,))
    assert released == pytest.approx([0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9], abs=1e-6)
    assert fixed_rate(series, 0.5, 12, AsPrinted(noise_variance=1e-12), noise) == pytest.approx(
        series, abs=1e-6
    )

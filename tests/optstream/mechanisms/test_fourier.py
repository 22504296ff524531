"""Fourier: what it costs over any periods, what it publishes, and what it refuses."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from optstream.mechanisms.fourier import Fourier
from optstream.privacy import PrivacyModel
from optstream.stream import PrivatePeriod
from tests.optstream.mechanisms.silent_noise import SilentNoise

DAY = PrivacyModel("1", 48, 10)
ONE_DEVICE = PrivacyModel("1", 48, 1, unit="roaming")


def days(n_series, n_steps, seed=0):
    """Smooth days with some noise of their own."""
    generator, hours = np.random.default_rng(seed), np.linspace(0, 2 * np.pi, n_steps, endpoint=False)
    return 500 + 300 * np.sin(hours + generator.random((n_series, 1))) + generator.random((n_series, n_steps))


def lost_by_a_roaming_device(scale, n_coefficients):
    """What a device in another leaf at each step loses: the L1 change of the coordinates over the scale."""
    flat = PrivatePeriod.from_values(np.zeros((48, 48)), resolution=ONE_DEVICE.resolution, first_step=0)
    moved = PrivatePeriod.from_values(np.eye(48), resolution=ONE_DEVICE.resolution, first_step=0)
    mechanism = Fourier(ONE_DEVICE, n_coefficients)
    one, other = (mechanism.measure(side, noise=SilentNoise()).answers.values[0] for side in (flat, moved))
    return np.abs(one - other).sum() / scale


@pytest.mark.parametrize(("n_coefficients", "in_one_leaf"), [(1, 1.0), (10, 2.75), (24, 4.27)])
def test_a_device_in_another_leaf_at_each_step_loses_no_more_than_epsilon(n_coefficients, in_one_leaf):
    """Control: noise for a device in one leaf a period, which nothing in the guarantee holds it to."""
    mechanism = Fourier(ONE_DEVICE, n_coefficients)
    assert 0.5 < lost_by_a_roaming_device(mechanism.scale, n_coefficients) <= 1
    staying = replace(mechanism.change, leaves_per_period=1).worst()
    assert lost_by_a_roaming_device(staying, n_coefficients) == pytest.approx(in_one_leaf, abs=0.02)


@pytest.mark.parametrize("n_steps", [1, 2, 5, 8, 47, 48, 50])
@pytest.mark.parametrize("n_coefficients", [1, 3, 24, 25, 60])
def test_without_noise_it_publishes_the_low_frequencies_of_numpys_transform(n_steps, n_coefficients):
    values = days(3, n_steps) - 400
    mechanism = Fourier(DAY, n_coefficients, shortest_period=1)
    released = mechanism.release(values, noise=SilentNoise()).values
    transform = np.fft.rfft(values)
    if 2 * n_coefficients - 1 < n_steps:
        transform[:, n_coefficients:] = 0
    # a coordinate is rounded to 0.001, a reading too
    np.testing.assert_allclose(released, np.fft.irfft(transform, n_steps), atol=0.001 * (1 + sqrt(n_steps)))

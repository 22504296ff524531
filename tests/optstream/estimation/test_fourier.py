"""Back from coordinates: the inverse of numpy's transform, and the noise's variance at every step."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optstream.estimation.estimate import invert_coordinates
from optstream.stream import FourierCoordinates, Measured

SHAPES = [(1, 1), (2, 1), (2, 2), (7, 5), (7, 7), (8, 7), (8, 8), (48, 19)]


def measured_of(coordinates, n_steps, variance=8.0, resolution="0.5"):
    """Coordinates in units, as if measured."""
    public = Measured.from_public(np.zeros((len(coordinates), n_steps)), [])
    answers = FourierCoordinates((coordinates,), (np.full((len(coordinates), 1), variance),))
    return replace(public, resolution=Fraction(resolution), answers=answers)


@pytest.mark.parametrize(("n_steps", "kept"), SHAPES)
def test_it_is_numpys_inverse_of_the_coefficients_with_zeros_behind(n_steps, kept):
    coordinates = np.random.default_rng(kept).integers(-100, 100, (2, kept))
    transform = np.zeros((2, n_steps // 2 + 1), dtype=complex)
    transform[:, 0] = coordinates[:, 0]
    for at in range(1, kept):
        alone = 2 * ((at + 1) // 2) == n_steps
        part = 1 if alone else (1 if at % 2 else 1j) / np.sqrt(2)
        transform[:, (at + 1) // 2] += part * coordinates[:, at]
    expected = np.fft.irfft(transform, n_steps, norm="ortho") * 0.5
    found = invert_coordinates(measured_of(coordinates, n_steps)).values
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(("n_steps", "kept"), [(1, 1), (6, 3), (6, 6), (48, 19)])
def test_variances_are_those_of_noisy_coordinates_transformed_back(n_steps, kept):
    """False alarm below 1e-9: a variance of 40,000 normal draws is off by 0.7 %, six times that is 4.3 %."""
    noise = np.random.default_rng(3).normal(0, np.sqrt(8.0), (40_000, kept))
    estimate = invert_coordinates(measured_of(noise, n_steps))
    np.testing.assert_allclose(estimate.variances, 8.0 / 4 * kept / n_steps)
    np.testing.assert_allclose(estimate.values.var(axis=0), estimate.variances[0], rtol=0.05)

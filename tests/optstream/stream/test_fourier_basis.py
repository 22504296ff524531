"""The Fourier basis: against numpy's transform, orthonormal, and its integers as near as they say."""

import numpy as np
import pytest

from optstream.privacy.coordinates import BASIS_BITS
from optstream.stream.features import fourier_basis, integer_basis, integer_bits

LENGTHS = [1, 2, 3, 4, 5, 8, 46, 47, 48, 50, 337]


def from_numpy(series):
    """All coordinates by numpy's own transform."""
    transform = np.fft.rfft(series, norm="ortho")
    found = [transform[0].real]
    for coefficient in transform[1:]:
        found += [np.sqrt(2) * coefficient.real, np.sqrt(2) * coefficient.imag]
    if len(series) % 2 == 0:
        found = [*found[:-2], transform[-1].real]
    return np.array(found)


@pytest.mark.parametrize("n_steps", LENGTHS)
def test_coordinates_are_those_of_numpys_orthonormal_transform(n_steps):
    series = np.random.default_rng(n_steps).normal(size=n_steps)
    for n_coefficients in (1, 2, 10, 24, 25, 30):
        basis = fourier_basis(n_steps, 2 * n_coefficients - 1)
        assert basis.shape == (min(2 * n_coefficients - 1, n_steps), n_steps)
        np.testing.assert_allclose(basis @ series, from_numpy(series)[: len(basis)], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", LENGTHS)
def test_the_basis_is_orthonormal_and_its_columns_are_equally_long(n_steps):
    whole = fourier_basis(n_steps, n_steps)
    np.testing.assert_allclose(whole @ whole.T, np.eye(n_steps), atol=1e-12)
    for n_coordinates in range(1, n_steps + 1, 2):
        part = fourier_basis(n_steps, n_coordinates)
        # Lemma 8 needs this of every step: its squares add up to d / p
        np.testing.assert_allclose((part**2).sum(axis=0), n_coordinates / n_steps, atol=1e-12)


@pytest.mark.parametrize("n_steps", [*LENGTHS, 1000])
def test_the_integers_differ_from_the_basis_by_less_than_they_say(n_steps):
    exact = np.ldexp(fourier_basis(n_steps, n_steps), integer_bits(n_steps))
    error = np.ldexp(integer_basis(n_steps, n_steps) - exact, -integer_bits(n_steps))
    assert np.linalg.norm(error) < 2.0**-BASIS_BITS
    assert np.abs(error).max() < 2.0 ** -integer_bits(n_steps)

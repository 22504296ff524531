"""Laplace measurements of the first Fourier coordinates of plain series."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.measurement.answers import measured_of
from optstream.noise import NoiseSource
from optstream.privacy.coordinates import LARGEST_INT64, CoordinatesChange
from optstream.stream import FourierCoordinates, Measured, PrivatePeriod
from optstream.stream.fourier_basis import integer_basis, integer_bits
from optstream.stream.private_period import open_private_period

COORDINATES = FourierCoordinates.stage


def measure_coordinates(
    period: PrivatePeriod, change: CoordinatesChange, scale: Fraction, noise: NoiseSource
) -> Measured:
    """Measure the first `change.n_coordinates` coordinates of every series, (n_series, n_coordinates), with
    noise of this scale.

    Privacy: Lemma 8 (Fourier coordinates): what `change` says that n steps move, over the scale. The spend is
    made of the same change and scale as the draw, so what is priced is what is drawn.

    scale: exactly a float, in units of the resolution, which is the coordinates' grid too. Raises
    ParameterError for a period that is too long; then nothing was drawn.
    """
    coordinates = exact_coordinates(open_private_period(period), change.n_coordinates)
    spend = change.spend(COORDINATES, period.n_steps, period.first_step, scale)
    noisy = coordinates + noise.discrete_laplace(float(scale), coordinates.shape)
    variances = np.full((len(noisy), 1), 2.0 * float(scale) ** 2)
    return measured_of(period, noise, (spend,), answers=FourierCoordinates((noisy,), (variances,)))


def exact_coordinates(exact: NDArray[np.int64], n_coordinates: int) -> NDArray[np.int64]:
    """Return the coordinates, (n_series, n_coordinates), of series (n_series, n_steps), rounded half up to
    whole units.

    Integers from end to end, in int64 where no sum can overflow, so what is rounded is a linear map of the
    readings, whose size Lemma 8 knows.

    Privacy: Lemma 8 bounds how far they move; they leave this file with noise only.
    """
    bits = integer_bits(exact.shape[1])
    basis = integer_basis(exact.shape[1], n_coordinates)
    largest = int(np.abs(basis).sum(axis=1).max()) * int(np.abs(exact).max())
    kind = np.int64 if largest + 2**bits < LARGEST_INT64 else object
    sums = exact.astype(kind) @ basis.T.astype(kind)
    rounded: NDArray[np.int64] = ((sums + 2 ** (bits - 1)) >> bits).astype(np.int64)
    return rounded

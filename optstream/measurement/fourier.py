"""Laplace measurements of the first Fourier coordinates of plain series."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.measurement.sums import measured_of
from optstream.noise import NoiseSource
from optstream.privacy.coordinates import CoordinatesChange
from optstream.stream import FourierCoordinates, Measured, PrivatePeriod
from optstream.stream.features import integer_basis, integer_bits
from optstream.stream.private_period import LONGEST_IN_INT64, open_private_period

COORDINATES = FourierCoordinates.stage


def measure_coordinates(
    period: PrivatePeriod, change: CoordinatesChange, scale: Fraction, noise: NoiseSource
) -> Measured:
    """Measure the first `change.n_coordinates` coordinates of every series, (n_series, n_coordinates).
    Privacy: Lemma 8 (Fourier coordinates): the move of n steps by `change`, over the scale of both spend and
    draw."""
    coordinates = exact_coordinates(open_private_period(period), change.n_coordinates)
    spend = change.spend(COORDINATES, period.n_steps, period.first_step, scale)
    noisy = coordinates + noise.discrete_laplace(float(scale), coordinates.shape)
    variances = np.full((len(noisy), 1), 2.0 * float(scale) ** 2)
    return measured_of(period, noise, (spend,), answers=FourierCoordinates((noisy,), (variances,)))


def exact_coordinates(exact: NDArray[np.int64], n_coordinates: int) -> NDArray[np.int64]:
    """Return the coordinates, (n_series, n_coordinates), of series (n_series, n_steps), in whole units. The
    readings are taken in three parts, low bits first, so that no reading decides whether a sum overflows.
    Privacy: Lemma 8 bounds how far they move; they leave this file with noise only."""
    kind = np.int64 if exact.shape[1] <= LONGEST_IN_INT64 else object
    columns, rest = integer_basis(exact.shape[1], n_coordinates).T.astype(kind), exact.astype(kind)
    bits = integer_bits(exact.shape[1])
    part, sums = bits // 2, 2 ** (bits - 1)
    for _ in range(2):
        # floor((a + 2^part b) / 2^bits) is floor((floor(a / 2^part) + b) / 2^(bits - part))
        sums = (sums + (rest & (2**part - 1)) @ columns) >> part
        rest = rest >> part
    rounded: NDArray[np.int64] = ((sums + rest @ columns) >> (bits - 2 * part)).astype(np.int64)
    return rounded

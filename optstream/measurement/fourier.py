"""The first Fourier coordinates of plain series: how far one customer moves them, and their measurement."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor, isqrt

import numpy as np
from numpy.typing import NDArray

from optstream.measurement.sums import measured_of
from optstream.noise import NoiseSource
from optstream.privacy import PeriodSpend
from optstream.stream import FourierCoordinates, Measured, PrivatePeriod
from optstream.stream.features import BASIS_BITS, integer_basis, integer_bits
from optstream.stream.private_period import LONGEST_IN_INT64, open_private_period

STRETCH = (1 + Fraction(1, 2**BASIS_BITS)) ** 2
"""The greatest lengthening of a series by the integer basis, squared."""

LARGEST_INT64 = 2**62


@dataclass(frozen=True)
class CoordinatesChange:
    """The L1 change of the first coordinates of all series together, in units of the grid (Lemma 8).
    leaves_per_period: of a customer's readings of one period; None for any number."""

    n_coordinates: int
    alpha_units: int
    leaves_per_step: int
    leaves_per_period: int | None
    window_length: int
    shortest_period: int

    def within(self, n_steps: int, n_changed: int) -> int:
        """Return a bound on their move when n_changed steps of a period of n_steps change (Lemma 8), rounded
        down to an integer: the lesser of sqrt(d m R n) alpha, for readings in at most R leaves, and m n alpha
        d / sqrt(p), and for rounding less than one more for each coordinate of each touched leaf.
        Privacy: none; the bound of Lemma 8."""
        kept, n_readings = min(self.n_coordinates, n_steps), self.leaves_per_step * n_changed
        most = self.leaves_per_period
        touched = n_readings if most is None else min(most, n_readings)
        square = Fraction((n_readings * kept) ** 2, n_steps)
        if most is not None:
            square = min(square, Fraction(kept * n_readings * most))
        return isqrt(floor(STRETCH * self.alpha_units**2 * square)) + kept * touched

    def partly(self, n_changed: int) -> int:
        """Return the same bound for a period of any allowed length with that many steps.
        Privacy: none; it bounds Lemma 8."""
        return self.within(max(self.shortest_period, self.n_coordinates, n_changed), n_changed)

    def worst(self) -> int:
        """Return the most that a window charges: the end of one period, whole ones, the start of another.
        Privacy: none; it bounds Lemma 8."""
        return _worst(self)

    def spend(self, stage: str, n_steps: int, first_step: int, scale: Fraction) -> PeriodSpend:
        """Return the cost of all of one period, at level 0, with discrete Laplace noise of this scale.
        Privacy: none; the price of Lemma 8."""
        changes = [self.within(n_steps, n) for n in range(n_steps + 1)]
        return PeriodSpend(0, stage, first_step, tuple(change / scale for change in changes))


@lru_cache(maxsize=256)
def _worst(change: CoordinatesChange) -> int:
    """Return `CoordinatesChange.worst`. Privacy: none; it bounds Lemma 8."""
    window, shortest = change.window_length, change.shortest_period
    edges = [change.partly(n) for n in range(window + 1)]
    fits = (2 * window + 2) * edges[-1] < LARGEST_INT64
    edge = np.array(edges, dtype=np.int64 if fits else object)
    whole = np.array([change.within(n, n) for n in range(1, window + 1)], dtype=edge.dtype)[shortest - 1 :]
    # inner[n]: the most of whole periods that together have at most n steps
    inner = np.zeros_like(edge)
    for n in range(shortest, window + 1):
        added = whole[: n - shortest + 1] + inner[n - shortest :: -1]
        inner[n] = max(inner[n - 1], added.max())
    # ends[n]: the most of two parts with n steps
    ends = [(edge[: n + 1] + edge[n::-1]).max() for n in range(window + 1)]
    return max(int(ends[n] + inner[window - n]) for n in range(window + 1))


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

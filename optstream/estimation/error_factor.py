"""Errors as sums of independent parts: from them follows the error of any sum of values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.holding import UNKNOWN
from optstream.stream import Measured

Floats = NDArray[np.float64]

BAND = 1.96
"""Standard errors on each side of a value in a band of 95 %."""
MOST_ENTRIES = 2**24
"""Of a factor: 128 MiB. One of more, of many leaves, is not made."""
SAME = 1e-6
"""Relative: variances that differ by less are one."""
PUSH = 2.0**20
"""Units of the resolution by which a number is moved: large beside its rounding, small beside 2^53."""


@dataclass(frozen=True)
class SumOfValues:
    """A sum of released values, and how sure it is.

    Attributes:
        value: The sum of the values as they are released, in their unit.
        standard_error: Of the estimate's whole error, as far as the mechanism knows it; None where it does
            not.
        noise_standard_error: What the noise alone did to the estimate; None where that is not known.
        estimate: The sum before the lower bound, and of published values before rounding, which lift sums of
            values near the bound: what the errors are of.
    """

    value: float
    standard_error: float | None
    noise_standard_error: float | None
    estimate: float

    @property
    def band(self) -> tuple[float, float] | None:
        """A band of 95 % around the estimate; None where the whole error is not known."""
        if self.standard_error is None:
            return None
        return self.estimate - BAND * self.standard_error, self.estimate + BAND * self.standard_error


@dataclass(frozen=True, eq=False)
class ErrorFactor:
    """The errors of some series at some steps, as sums of independent parts.

    The covariance of two values' errors is the scalar product of their rows.

    Attributes:
        parts: (n_series, n_steps, n_parts), in the unit of the readings: how an error moves with each of
            n_parts independent variables of mean 0 and variance 1.
    """

    parts: Floats
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = False

    def between(self, leaves: Floats, times: Floats) -> Floats:
        """Return the covariance of weighted sums, (p, q, p, q), in the squared unit of the readings
        (`CovarianceOfSums`), by weights of series, (p, n_series), and of steps, (q, n_steps).
        """
        sums = self._sums(leaves, times)
        return np.asarray(np.tensordot(sums, sums, axes=(2, 2)))

    def variances(self, leaves: Floats, times: Floats) -> Floats:
        """Return the variances of the same sums alone, (p, q)."""
        return np.asarray((self._sums(leaves, times) ** 2).sum(axis=2))

    def _sums(self, leaves: Floats, times: Floats) -> Floats:
        return np.asarray(np.einsum("il,ts,lsk->itk", leaves, times, self.parts, optimize=True))


def noise_factor(
    estimate: Callable[[Measured], Floats], measured: Measured, variances: Floats
) -> ErrorFactor | None:
    """Return what the measurements' noise did to a linear estimate: each number moved alone; free.

    Every number that was drawn is one part: independent of the others, or, in a group of joint noise, not
    correlated with them. estimate: from measurements to values (n_series, n_steps). variances: of the values,
    as they are known otherwise, to which the factor's squares add up. None where they do not, for then noise
    of earlier periods is in the values, or they are not linear (medians); and for more than `MOST_ENTRIES`.
    """
    if not fits_factor(measured, len(variances)) or not np.isfinite(variances).all():
        return None
    n_parts, rest = _n_drawn(measured), estimate(measured)
    parts = np.zeros((*variances.shape, n_parts))
    for number, (moved, deviation) in enumerate(_moved(measured)):
        parts[..., number] = (estimate(moved) - rest) * (deviation / PUSH)
    squares = (parts**2).sum(axis=-1)
    exact = np.allclose(squares, variances, rtol=SAME, atol=SAME * variances.max(initial=0.0))
    return ErrorFactor(parts) if exact else None


def fits_factor(measured: Measured, n_series: int) -> bool:
    """Return whether a factor of so many series would have at most `MOST_ENTRIES`, which is quickly seen."""
    return n_series * measured.n_steps * _n_drawn(measured) <= MOST_ENTRIES


def _moved(measured: Measured) -> Iterator[tuple[Measured, float]]:
    """Yield for each number that was drawn the measurements with it moved, and its standard deviation."""
    for place, part in enumerate(measured.parts):
        for one, deviation in _moved(part):
            parts = (*measured.parts[:place], one, *measured.parts[place + 1 :])
            yield replace(measured, parts=parts), deviation
    arrays = [np.asarray(entry, dtype=np.float64) for entry in (measured.points, *measured.answers.values)]
    for number, variances in enumerate(_variances(measured)):
        for at in np.argwhere(_was_drawn(variances)):
            moved = list(arrays)
            moved[number] = arrays[number].copy()
            moved[number][tuple(at)] += PUSH
            answers = replace(measured.answers, values=tuple(moved[1:]))
            yield replace(measured, points=moved[0], answers=answers), float(np.sqrt(variances[tuple(at)]))


def _n_drawn(measured: Measured) -> int:
    own = sum(int(_was_drawn(variances).sum()) for variances in _variances(measured))
    return own + sum(_n_drawn(part) for part in measured.parts)


def _was_drawn(variances: Floats) -> NDArray[np.bool_]:
    return (variances > 0) & (variances < UNKNOWN)


def _variances(measured: Measured) -> tuple[Floats, ...]:
    """Return the variance of each point and of each answer; nothing where they are unknown."""
    known = measured.point_variances, measured.answers.variances
    if known[0] is None or known[1] is None:
        return ()
    arrays = (measured.points, *measured.answers.values)
    return tuple(np.broadcast_to(v, a.shape) for v, a in zip((known[0], *known[1]), arrays, strict=True))

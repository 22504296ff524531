"""A series with its variances."""

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.stream import FourierCoordinates, Measured
from optstream.stream.features import fourier_basis

# How far a bounded estimate may be from the optimum of its program.


@dataclass(frozen=True)
class Optimality:
    """The certificate of a quadratic program that was solved numerically. gap: primal less dual objective, at
    least 0, in the unit of sum(weights * misfit^2) / 2. residual: the largest term of the gap, in standard
    deviations of a measurement. rounds: Newton steps. converged: whether `distance` is below the
    tolerance."""

    gap: float
    residual: float
    rounds: int
    converged: bool

    @property
    def distance(self) -> float:
        """Bound on any linear function's distance from the optimum, in its standard errors without bound: the
        objective is strongly convex in its Hessian H, so |c'(z - z*)| <= sqrt(c' H^-1 c) sqrt(2 gap)."""
        return math.sqrt(2.0 * self.gap)


def worst(found: Iterable[Optimality]) -> Optimality | None:
    """Return the largest of each figure of several programs, converged if all are; None without one."""
    every = [astuple(one) for one in found]
    if not every:
        return None
    gaps, residuals, rounds, converged = zip(*every, strict=True)
    return Optimality(max(gaps), max(residuals), max(rounds), all(converged))


BAND = 1.96  # standard errors on each side of a value in a band of 95 %


@dataclass(frozen=True)
class SumOfValues:
    """A sum of released values, and its standard errors.

    Attributes:
        value: The sum of the values as they are released, in their unit.
        standard_error: Of the estimate's whole error; None where the mechanism does not know it.
        noise_standard_error: Of the noise's part alone; None where that is not known.
        estimate: The sum before the lower bound and before rounding, which lift sums of values near the
            bound: the errors are of this sum.
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
class Estimate:
    """A series, (n_series, n_steps) in the unit of the readings, with its variances, squared. variances: the
    known noise in each value. noise_variances: the exact effect of all measurements' noise, given which were
    made; nan where it is not known; None if it never is. optimality, bands, for_sums: as in `Release`.
    unbounded: the values before their lower bound; None where that changed nothing."""

    values: NDArray[np.float64]
    variances: NDArray[np.float64]
    noise_variances: NDArray[np.float64] | None = None
    optimality: Optimality | None = None
    bands: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    unbounded: NDArray[np.float64] | None = None
    for_sums: NDArray[np.float64] | None = None


# From measured steps to every step by holding the last value.

UNKNOWN = 2.0**100
"""Variance, in units squared, of a value that nothing is known of: finite, so that sums with it are."""


def hold(measured: Measured) -> Estimate:
    """Return the series that keeps each measured value until the next one; it begins with `before["held"]`,
    of variance `before["held_variance"]`, else with its own first value, else with 0."""
    assert measured.point_variances is not None
    before, shape, starts = measured.before or {}, measured.points.shape, list(measured.positions)
    values, variances = measured.points, np.broadcast_to(measured.point_variances, shape)
    first = (*shape[:-1], 1)
    if before.get("held") is not None:
        held = np.broadcast_to(np.array(before["held"], dtype=np.float64)[:, None], first)
        values = np.concatenate([held, values], axis=-1)
        variances = np.concatenate([np.full(first, float(before["held_variance"])), variances], axis=-1)
        starts = [0, *starts]
    elif not starts:
        values, variances, starts = np.zeros(first), np.full(first, UNKNOWN), [0]
    which = np.maximum(np.searchsorted(starts, np.arange(measured.n_steps), side="right") - 1, 0)
    unit, known = float(measured.resolution), variances[..., which]
    variance = known * unit**2
    # what nothing is known of is a constant: no noise is in it
    noise = np.where(known < UNKNOWN, variance, 0.0)
    return Estimate(values[..., which] * unit, variance, noise)


# From noisy Fourier coordinates to every step.


def invert_coordinates(measured: Measured) -> Estimate:
    """Return the series C B of noisy coordinates C and orthonormal rows B; variances of the noise alone."""
    answers = measured.answers_of(FourierCoordinates)
    assert answers.variances is not None
    (coordinates,), (variances,) = answers.values, answers.variances
    basis = fourier_basis(measured.n_steps, coordinates.shape[-1])
    unit = float(measured.resolution)
    of_steps = np.broadcast_to(variances, coordinates.shape) @ basis**2 * unit**2
    return Estimate(coordinates @ basis * unit, of_steps, of_steps)

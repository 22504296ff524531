"""Errors as sums of independent parts: from them follows the error of any sum of values."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_products import ErrorProducts

Floats = NDArray[np.float64]
BAND = 1.96
"""Standard errors on each side of a value in a band of 95 %."""
NOTHING = 1e-15
"""Relative: of the largest variance of a sum of times, where rounding alone is left."""


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

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of sums adds up from, by weights of series, (p, n_series), and of steps,
        (q, n_steps).
        """
        sums = np.tensordot(times, self.parts, axes=(1, 1))
        flat = sums.reshape(len(times), -1)
        # few numbers in time are drawn of each leaf: sums of times lie in as few directions
        squares, basis = np.linalg.eigh(flat @ flat.T)
        basis = basis[:, ~(squares < NOTHING * squares[-1])]  # also of what floats cannot hold
        parts = leaves @ np.tensordot(basis.T, sums, axes=1)
        first, second = np.triu_indices(len(parts))
        once = np.where(first == second, 0.25, 0.5)[:, None, None]
        of_nodes = np.concatenate([np.tensordot(parts[at:], one, (2, 1)) for at, one in enumerate(parts)])
        of_times = basis.T[first][:, :, None] * basis.T[second][:, None, :]
        nodes, of_both = (one + one.transpose(0, 2, 1) for one in (of_nodes, of_times))
        no_columns = np.zeros((len(leaves), 0)), np.zeros((0, len(times), 0, len(times)))
        return ErrorProducts(once * nodes, of_both, *no_columns)


@dataclass(frozen=True, eq=False)
class SeparableFactor:
    """The same where one independent part of the series goes with one of the steps, each with each.

    The covariance is then one product of a matrix of series and one of steps.

    Attributes:
        series: (n_series, m), in the unit of the readings.
        steps: (n_steps, k): there are m times k parts.
    """

    series: Floats
    steps: Floats
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = False

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of sums adds up from, by weights of series, (p, n_series), and of steps,
        (q, n_steps).
        """
        series, steps, n_times = leaves @ self.series, times @ self.steps, len(times)
        no_columns = np.zeros((len(leaves), 0)), np.zeros((0, n_times, 0, n_times))
        return ErrorProducts((series @ series.T)[None], (steps @ steps.T)[None], *no_columns)

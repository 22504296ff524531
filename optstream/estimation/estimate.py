"""A series with what the noise leaves of doubt."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.optimality import Optimality


@dataclass(frozen=True, eq=False)
class Estimate:
    """A series with what the noise leaves of doubt.

    Attributes:
        values: (n_series, n_steps) in the unit of the readings.
        variances: The same shape, squared: what is known of the noise in each value. How far a held or
            smoothed value misses the truth is not in it, unless a mechanism says so.
        noise_variances: The same shape: what the noise of all measurements did to the value, exactly, given
            which were made; 0 where none enters it, nan where it is not known; None if it never is.
        optimality: How near the values are to the optimum of the bounded program; None where none was solved.
        bands: The lowest and the highest count of a band of 95 %, of the values' shape each, nan where
            nothing is known; None but for counts.
        unbounded: The values before their lower bound; None where that changed nothing.
    """

    values: NDArray[np.float64]
    variances: NDArray[np.float64]
    noise_variances: NDArray[np.float64] | None = None
    optimality: Optimality | None = None
    bands: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    unbounded: NDArray[np.float64] | None = None

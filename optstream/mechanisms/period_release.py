"""What a mechanism returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.optimality import Optimality
from optstream.privacy.spends import Spend
from optstream.stream import Measured
from optstream.stream.covariate import Covariate


@dataclass(frozen=True, eq=False)
class Release:
    """The estimate of one period for every node, with what it cost.

    Attributes:
        values: (n_nodes, n_steps), tree.nodes order, in the unit of the readings.
        measured: What it was computed from.
        spends: What drawing it cost.
        epsilon: What the plan, repeated without end, costs any window.
        epsilon_alone: What these spends alone cost their worst window.
        state: Public, for the next period.
        simulated: Drawn with seeded noise, never publishable.
        standard_errors: Of the values, their shape and unit, where the mechanism knows how far they may be
            from the truth and not only how noisy they are; else None.
        optimality: How near the values are to the optimum of the bounded program; None where none was solved.
        bands: The lowest and the highest count of a band of 95 % around each value, of the values' shape
            each, both in the band, nan where nothing is known; None but for counts.
        covariates: Public series, with the values that the estimate went by.
        noise_of: Computes `noise_standard_errors`.
    """

    values: NDArray[np.float64]
    measured: Measured
    spends: tuple[Spend, ...]
    epsilon: Fraction
    epsilon_alone: Fraction
    state: Mapping[str, Any] | None
    simulated: bool
    standard_errors: NDArray[np.float64] | None = None
    optimality: Optimality | None = None
    bands: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    covariates: tuple[Covariate, ...] = ()
    noise_of: Callable[[], NDArray[np.float64] | None] | None = field(default=None, repr=False)

    @cached_property
    def noise_standard_errors(self) -> NDArray[np.float64] | None:
        """The standard deviation of what the noise did to each value before the bound, in the values' unit.

        Of the values' shape, from noise scales and positions alone, through the linear estimate, given which
        points, blocks or groups were chosen. What the estimate gets wrong between measurements is not in it,
        so these are no error bands. nan where it is not known or no noise enters, None if that is so
        everywhere: where the estimate is not linear (medians, learned parameters). Free; computed when asked
        for.
        """
        return self.noise_of() if self.noise_of else None

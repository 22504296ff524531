"""The plain alternative to a filter: measured values as they are, a straight line after the last two."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.fast.kalman import StateEstimate


class StraightLine:
    """Measured values are believed as they are; later steps lie on the line through the last two.

    The line is followed for as many steps as lie between the two, then its end is held: two neighbouring
    samples say little of what comes a hundred steps later. One measured value alone is held. Variances are
    what the noise leaves of measured values of variance R: at t times the distance of the last two beyond
    the second R (t² + (1 + t)²), at most 5 R; how far the process leaves the line is not in them. Parameters
    as `estimation.kalman.ConstantState`. Costs no privacy: it is told noisy numbers only.
    Source: FAST's technical report, section 6.1, a line through two points; there every step is measured and
    the line says the next one. To hold it is ours.
    """

    def __init__(self, noise_variance: float, memory: Mapping[str, Any]) -> None:
        self._noise_variance = noise_variance
        self._measured = [(step, np.array(values, np.float64)) for step, values in memory.get("measured", ())]

    def prior(self, step: int) -> StateEstimate | None:
        """Return what the line says of a step after the last measured one; None where nothing is known."""
        if len(self._measured) < 2:
            known = self._noise_variance
            return next((StateEstimate(step, held, known, known) for _, held in self._measured), None)
        (first, start), (second, end) = self._measured
        beyond = min((step - second) / (second - first), 1.0)
        variance = self._noise_variance * (beyond**2 + (1 + beyond) ** 2)
        return StateEstimate(step, end + beyond * (end - start), variance, variance)

    def correct(self, step: int, noisy: NDArray[np.float64]) -> StateEstimate:
        """Take in the measured values of a later step, (n_series,): they are believed."""
        self._measured = [*self._measured[-1:], (step, noisy)]
        return StateEstimate(step, noisy, self._noise_variance, self._noise_variance)

    def before_first(self, steps: int, noisy: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the first measured values, held backwards."""
        return noisy, self._noise_variance

    def memory(self) -> dict[str, Any]:
        """Return the state as a JSON-ready document: what the next predictor needs."""
        return {"measured": [[step, values.tolist()] for step, values in self._measured]}

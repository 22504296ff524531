"""A Kalman filter of a constant state: what was measured at some steps, and what it says of the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class StateEstimate:
    """What is known of all series at one step: mean (n_series,) in units, variance in units squared.

    One variance serves all series: they are measured at the same steps with the same noise. noise: the part
    of the mean's variance that the measurements' noise is; nan where an earlier version did not keep it.
    """

    step: int
    mean: NDArray[np.float64]
    variance: float
    noise: float


class ConstantState:
    """The process x[k] = x[k-1] + N(0, Q), seen at some steps as z[k] = x[k] + N(0, R).

    Predict: the mean stays, the variance grows by Q a step. Correct: the mean moves towards the measured
    value by the gain variance / (variance + R), of which the variance keeps 1 - gain. Nothing is known before
    the first measurement, which is then taken as it is. This is the conditional mean and variance where both
    noises are Gaussian; Laplace noise enters with its variance.

    process_variance: Q, in units squared a step. noise_variance: R, in units squared. memory: what another
    filter of this kind left, or nothing. Costs no privacy: it is told noisy numbers only.
    Source: Fan and Xiong, FAST, the algorithms of prediction and correction; R known instead of tuned.
    """

    def __init__(self, process_variance: float, noise_variance: float, memory: Mapping[str, Any]) -> None:
        self._process_variance, self._noise_variance = process_variance, noise_variance
        self._posterior: StateEstimate | None = None
        if memory.get("belief") is not None:
            step, mean, variance = memory["belief"]
            noise = memory.get("belief_noise")
            self._posterior = StateEstimate(
                step, np.array(mean, dtype=np.float64), variance, np.nan if noise is None else noise
            )

    def prior(self, step: int) -> StateEstimate | None:
        """Return what is believed of a step at or after the last measured one; None where nothing is
        known.
        """
        last = self._posterior
        if last is None:
            return None
        variance = last.variance + (step - last.step) * self._process_variance
        return StateEstimate(step, last.mean, variance, last.noise)

    def correct(self, step: int, noisy: NDArray[np.float64]) -> StateEstimate:
        """Take in the measured values of a later step, (n_series,), and return what is believed of it now."""
        prior = self.prior(step)
        if prior is None:
            self._posterior = StateEstimate(step, noisy, self._noise_variance, self._noise_variance)
        else:
            gain = prior.variance / (prior.variance + self._noise_variance)
            mean = prior.mean + gain * (noisy - prior.mean)
            noise = (1.0 - gain) ** 2 * prior.noise + gain**2 * self._noise_variance
            self._posterior = StateEstimate(step, mean, gain * self._noise_variance, noise)
        return self._posterior

    def before_first(self, steps: int, noisy: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return what the first measured values say of a step that many steps earlier: mean and variance."""
        return noisy, self._noise_variance + steps * self._process_variance

    def memory(self) -> dict[str, Any]:
        """Return the state as a JSON-ready document: what the next filter needs."""
        last = self._posterior
        if last is None:
            return {"belief": None}
        noise = None if np.isnan(last.noise) else last.noise
        return {"belief": [last.step, last.mean.tolist(), last.variance], "belief_noise": noise}

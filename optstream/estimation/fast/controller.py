"""When to measure next, decided from what was measured: a predictor, its errors, and an interval law."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import Estimate
from optstream.estimation.fast.kalman import ConstantState, StateEstimate
from optstream.estimation.fast.linear import StraightLine
from optstream.estimation.fast.sampling_interval import AdaptiveInterval, FixedInterval
from optstream.estimation.holding import UNKNOWN
from optstream.stream import Measured

Predictor = ConstantState | StraightLine
IntervalLaw = AdaptiveInterval | FixedInterval


class SamplingController:
    """Says whether a step is due, and is told the noisy values of each step that was measured.

    The first step it is asked about is due, and after a measured step k with interval I the step k + I,
    rounded down. A due step that could not be measured stays due: the next one that can is. The error that
    steers it is the mean over the series of |posterior - prior| / max(|posterior|, error_floor): one decision
    for all of them.

    error_floor: in units. memory: what another controller left, or nothing. Costs no privacy: what it knows
    is noisy, so whatever it decides is a function of recorded outputs (Lemma 1).
    """

    def __init__(
        self, predictor: Predictor, law: IntervalLaw, error_floor: float, memory: Mapping[str, Any]
    ) -> None:
        self.predictor, self._law, self._error_floor = predictor, law, error_floor
        self._interval = float(memory.get("interval", 1.0))
        self._next_step: int | None = memory.get("next_step")
        self._last_sample: int | None = memory.get("last_sample")
        self._n_series: int | None = memory.get("n_series")
        self._errors = [(int(step), float(error)) for step, error in memory.get("errors", ())]

    def due(self, step: int) -> bool:
        """Return whether this step should be measured. step: running index."""
        return self._next_step is None or step >= self._next_step

    def saw(self, step: int, noisy: NDArray[np.int64]) -> StateEstimate:
        """Take in the noisy values of a measured step, (n_series,), and return what is believed of it."""
        prior = self.predictor.prior(step)
        posterior = self.predictor.correct(step, noisy.astype(np.float64))
        if prior is not None and self._law.n_errors:
            size = np.maximum(np.abs(posterior.mean), self._error_floor)
            error = float(np.mean(np.abs(posterior.mean - prior.mean) / size))
            self._errors = [*self._errors, (step, error)][-self._law.n_errors :]
        self._interval = self._law.after(self._interval, self._errors)
        self._last_sample, self._next_step = step, step + int(self._interval)
        self._n_series = len(noisy)
        return posterior

    def memory(self) -> dict[str, Any]:
        """Return the state as a JSON-ready document: what the next controller needs to go on as if it were
        this one.
        """
        return {
            "interval": self._interval,
            "next_step": self._next_step,
            "last_sample": self._last_sample,
            "n_series": self._n_series,
            "errors": [list(entry) for entry in self._errors],
            **self.predictor.memory(),
        }


def follow(controller: SamplingController, measured: Measured) -> Estimate:
    """Return what the controller believed of every step: posterior where measured, prior in between.

    controller: as it was before the period. Steps before the first measured value of all get that value,
    with the variance that the predictor gives it there; in a period without any, 0 and `UNKNOWN`. Costs no
    privacy: it reads noisy numbers only.
    """
    places = {step: place for place, step in enumerate(measured.positions)}
    n_series = measured.points.shape[-2]
    values = np.zeros((n_series, measured.n_steps))
    variances, noise = np.full(values.shape, UNKNOWN), np.zeros(values.shape)
    for step in range(measured.n_steps):
        running = measured.first_step + step
        if step in places:
            noisy = measured.points[:, places[step]]
            is_first = controller.predictor.prior(running) is None
            belief: StateEstimate | None = controller.saw(running, noisy)
            if belief is not None and is_first:
                for earlier in range(step):
                    mean, variance = controller.predictor.before_first(step - earlier, noisy)
                    values[:, earlier], variances[:, earlier] = mean, variance
                    noise[:, earlier] = belief.noise
        else:
            belief = controller.predictor.prior(running)
        if belief is not None:
            values[:, step], variances[:, step], noise[:, step] = belief.mean, belief.variance, belief.noise
    unit = float(measured.resolution)
    return Estimate(values * unit, np.minimum(variances, UNKNOWN) * unit**2, noise * unit**2)

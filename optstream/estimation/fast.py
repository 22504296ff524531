"""The time of the next measurement, by earlier ones: a predictor, its errors, and an interval law."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import UNKNOWN, Estimate
from optstream.stream import Measured

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StateEstimate:
    """The estimate of all series at one step: mean (n_series,) in units, one variance in units squared.
    noise: the measurements' part of it; nan where an earlier version did not keep it."""

    step: int
    mean: Floats
    variance: float
    noise: float


class ConstantState:
    """The process x[k] = x[k-1] + N(0, Q), seen at some steps as z[k] = x[k] + N(0, R); the first measurement
    is taken as it is. Source: Fan and Xiong, FAST; R is known here, not tuned."""

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
        """Return the prediction at or after the last measured step; None before the first measurement."""
        last = self._posterior
        if last is None:
            return None
        variance = last.variance + (step - last.step) * self._process_variance
        return StateEstimate(step, last.mean, variance, last.noise)

    def correct(self, step: int, noisy: Floats) -> StateEstimate:
        """Take in the measured values of a later step, (n_series,), and return its posterior."""
        prior, noise = self.prior(step), self._noise_variance
        if prior is None:
            self._posterior = StateEstimate(step, noisy, noise, noise)
        else:
            gain = prior.variance / (prior.variance + noise)
            mean = prior.mean + gain * (noisy - prior.mean)
            of_noise = (1.0 - gain) ** 2 * prior.noise + gain**2 * noise
            self._posterior = StateEstimate(step, mean, gain * noise, of_noise)
        return self._posterior

    def before_first(self, steps: int) -> float:
        """Return the variance of the first measured value as an estimate of so many steps earlier."""
        return self._noise_variance + steps * self._process_variance

    def memory(self) -> dict[str, Any]:
        """Return the state, JSON-ready, for the next filter."""
        last = self._posterior
        if last is None:
            return {"belief": None}
        noise = None if np.isnan(last.noise) else last.noise
        return {"belief": [last.step, last.mean.tolist(), last.variance], "belief_noise": noise}


class StraightLine:
    """Measured values stand; later steps lie on the line through the last two, for as many steps as lie
    between these, then its end is held. Variances are of the noise alone: R (t² + (1 + t)²), t times the
    distance of the last two beyond the second. Source: FAST's technical report, section 6.1; to hold the end
    is ours."""

    def __init__(self, noise_variance: float, memory: Mapping[str, Any]) -> None:
        self._noise_variance = noise_variance
        self._measured = [(step, np.array(values, np.float64)) for step, values in memory.get("measured", ())]

    def prior(self, step: int) -> StateEstimate | None:
        """Return the line's value at a step after the last measured one; None without measurements."""
        if len(self._measured) < 2:
            known = self._noise_variance
            return next((StateEstimate(step, held, known, known) for _, held in self._measured), None)
        (first, start), (second, end) = self._measured
        beyond = min((step - second) / (second - first), 1.0)
        variance = self._noise_variance * (beyond**2 + (1 + beyond) ** 2)
        return StateEstimate(step, end + beyond * (end - start), variance, variance)

    def correct(self, step: int, noisy: Floats) -> StateEstimate:
        """Take in the measured values of a later step, (n_series,): they are believed."""
        self._measured = [*self._measured[-1:], (step, noisy)]
        return StateEstimate(step, noisy, self._noise_variance, self._noise_variance)

    def before_first(self, steps: int) -> float:
        return self._noise_variance

    def memory(self) -> dict[str, Any]:
        return {"measured": [[step, values.tolist()] for step, values in self._measured]}


LARGEST_EXPONENT = 100.0
"""Of the law: far beyond the exponent of the shortest interval, and far from overflow."""


@dataclass(frozen=True)
class AdaptiveInterval:
    """A small feedback lengthens the interval, one above the set point shortens it.

    Feedback of the relative errors E at the last measured steps k:

        D = proportional E[n] + integral / T (E[n] + … + E[n-T+1])
            + derivative (E[n] - E[n-1]) / (k[n] - k[n-1])

    and the interval that follows I is max(I + step (1 - e^((D - set_point) / set_point)), shortest). The
    technical report prints the exponent with a minus, with which a large error would lengthen the interval.

    The gains add up to 1; T is `integration_time`, a number of samples, before which the interval is the
    shortest. Source: Fan and Xiong, FAST, section on adaptive sampling; the cut exponent and `longest` are
    ours.
    """

    proportional: float
    integral: float
    derivative: float
    integration_time: int
    step: float
    set_point: float
    shortest: int
    longest: int

    @property
    def n_errors(self) -> int:
        return max(self.integration_time, 2)

    def feedback(self, errors: Sequence[tuple[int, float]]) -> float:
        """Return D of the (step, relative error) of past samples, rising, at least one."""
        at, error = errors[-1]
        recent = [past for _, past in errors[-self.integration_time :]]
        slope = (error - errors[-2][1]) / (at - errors[-2][0]) if len(errors) > 1 else 0.0
        mean = sum(recent) / self.integration_time
        return self.proportional * error + self.integral * mean + self.derivative * slope

    def after(self, interval: float, errors: Sequence[tuple[int, float]]) -> float:
        """Return the interval that follows `interval`."""
        if len(errors) < self.integration_time:
            return float(self.shortest)
        exponent = (self.feedback(errors) - self.set_point) / self.set_point
        change = self.step * (1 - math.exp(min(exponent, LARGEST_EXPONENT)))
        return min(max(interval + change, float(self.shortest)), float(self.longest))


@dataclass(frozen=True)
class FixedInterval:
    """The same number of steps after every sample."""

    steps: int
    n_errors: int = 0

    def after(self, interval: float, errors: Sequence[tuple[int, float]]) -> float:
        return float(self.steps)


Predictor = ConstantState | StraightLine
IntervalLaw = AdaptiveInterval | FixedInterval


class SamplingController:
    """Decides whether a step is due, from the noisy values of each measured step. Due are the first step, and
    after a measured step k with interval I the step k + I, rounded down; a due step that could not be
    measured stays due. One error steers all series: the mean of |posterior - prior| / max(|posterior|,
    error_floor)."""

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
        """Take in the noisy values of a measured step, (n_series,), and return its posterior."""
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
        return {
            "interval": self._interval,
            "next_step": self._next_step,
            "last_sample": self._last_sample,
            "n_series": self._n_series,
            "errors": [list(entry) for entry in self._errors],
            **self.predictor.memory(),
        }


def follow(controller: SamplingController, measured: Measured) -> Estimate:
    """Return the controller's posterior where measured, its prior in between; before the first value that
    value with the predictor's variance; without any, 0 and `UNKNOWN`."""
    places = {step: place for place, step in enumerate(measured.positions)}
    values = np.zeros((measured.points.shape[-2], measured.n_steps))
    variances, noise = np.full(values.shape, UNKNOWN), np.zeros(values.shape)
    for step in range(measured.n_steps):
        running = measured.first_step + step
        belief = controller.predictor.prior(running)
        if step in places:
            is_first = belief is None
            belief = controller.saw(running, measured.points[:, places[step]])
            if is_first:
                values[:, :step], noise[:, :step] = belief.mean[:, None], belief.noise
                variances[:, :step] = [controller.predictor.before_first(step - at) for at in range(step)]
        if belief is not None:
            values[:, step], variances[:, step], noise[:, step] = belief.mean, belief.variance, belief.noise
    unit = float(measured.resolution)
    return Estimate(values * unit, np.minimum(variances, UNKNOWN) * unit**2, noise * unit**2)

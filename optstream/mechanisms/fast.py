"""FAST: samples taken when the series moves, a Kalman filter for the steps in between."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.estimate import UNKNOWN, Estimate
from optstream.measurement.sums import SAMPLES, measure_in_turn
from optstream.mechanisms.base import (
    SeriesMechanism,
    check_positive,
    measured_steps,
    memory_of,
    own_state,
    points_after,
)
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend, PrivacyModel, Spend
from optstream.privacy.exact import make_plain, one_of, whole
from optstream.stream import Measured, PrivatePeriod, State
from optstream.stream.private_period import public_part

Floats = NDArray[np.float64]
NAME = "Fast"
ERRORS_LOOKED_AT = 5
SHARE_SAMPLED = Fraction(15, 100)
LARGEST_EXPONENT = 100.0  # far beyond that of the shortest interval, and far from overflow
ROUNDING = 1e-9  # by how much gains that were meant to add up to 1 may miss it


@dataclass(frozen=True)
class Fast(SeriesMechanism):
    """FAST: at most M steps of any window are measured, sooner when the prediction failed, and filtered.

    A measured step has Laplace noise of scale M * alpha / epsilon (Lemma 10). Between two of them the
    filter's prediction is published, at one the corrected value. The size of the correction sets the interval
    to the next (`next_interval`), once for all series. A step that is due waits until no
    window holds more than M samples.

    Source: Fan and Xiong, FAST (technical report 2011; 2012, 2014); defaults of a re-implementation. Raises
    ParameterError for a parameter outside its range, or noise that would outgrow the integers.

    Args:
        model: The privacy guarantee.
        n_samples: M, in [1, w]; None for 15 % of the window, rounded down, at least 1.
        sampling: "adaptive", or "fixed": every ceil(w / M) steps.
        predictor: "kalman", or "linear": measured values as they are, then the line through the last two.
        proportional: Gain of the feedback's last error, in [0, 1]; the three gains add up to 1.
        integral: Gain of the errors' mean over `integration_time`, in [0, 1].
        derivative: Gain of the errors' change a step, in [0, 1].
        integration_time: Samples of the integral, in [1, M]; None for 5, or M if that is less. Until so many
            errors are known the interval is the shortest.
        interval_step: theta > 0, in steps.
        set_point: xi > 0, the relative error at which the interval stays.
        min_interval: In steps, in [1, w].
        process_deviation: The assumed motion of a series in a step, > 0, in the unit of the readings, from
            public knowledge: the square root of the paper's Q. None for 316 alpha (for counts Q = 100,000).
        error_floor: Relative errors are taken of no smaller value than this, > 0, in the unit of the
            readings; None for alpha.
    """

    model: PrivacyModel
    n_samples: int | None = None
    sampling: Literal["adaptive", "fixed"] = "adaptive"
    predictor: Literal["kalman", "linear"] = "kalman"
    proportional: float = 0.9
    integral: float = 0.1
    derivative: float = 0.0
    integration_time: int | None = None
    interval_step: float = 5.0
    set_point: float = 0.1
    min_interval: int = 1
    process_deviation: float | None = None
    error_floor: float | None = None
    adaptive: ClassVar[bool] = True
    days_independent: ClassVar[bool] = False
    noise_is_known: ClassVar[bool] = False

    def __post_init__(self) -> None:
        make_plain(self)
        window = self.model.window_length
        if self.n_samples is not None:
            whole(self.n_samples, "n_samples of Fast", 1, window)
        one_of(self.sampling, "sampling of Fast", ("adaptive", "fixed"))
        one_of(self.predictor, "predictor of Fast", ("kalman", "linear"))
        if self.integration_time is not None:
            whole(self.integration_time, "integration_time of Fast", 1, self.samples_in_window)
        whole(self.min_interval, "min_interval of Fast", 1, window)
        gains = {name: getattr(self, name) for name in ("proportional", "integral", "derivative")}
        for name, gain in gains.items():
            if isinstance(gain, bool) or not isinstance(gain, Real) or not 0 <= float(gain) <= 1:
                raise ParameterError(f"{name} of Fast must be a number in [0, 1]; got {gain!r}")
        if abs(sum(gains.values()) - 1) > ROUNDING:
            raise ParameterError(
                "proportional, integral and derivative of Fast must add up to 1; "
                f"got {tuple(gains.values())}, which add up to {sum(gains.values())}"
            )
        for name in ("interval_step", "set_point", "process_deviation", "error_floor"):
            if getattr(self, name) is not None or name in ("interval_step", "set_point"):
                check_positive(getattr(self, name), f"{name} of Fast")
        _ = self.epsilon  # refuses noise that would outgrow the integers

    @property
    def samples_in_window(self) -> int:
        """The number M of samples in a window: the most steps of any window that are measured."""
        return self.n_samples or max(1, int(SHARE_SAMPLED * self.model.window_length))

    @property
    def epsilon(self) -> Fraction:
        """What any window costs: M steps of it, each alpha / scale."""
        return self.samples_in_window * self.plan(1)[0].unit_charge

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[CappedSpend]:
        """Return one spend: any steps, but no more than M in a window."""
        model, most = self.model, self.samples_in_window
        points = own_state(state, NAME).get("points", ())
        spend = CappedSpend(
            0, SAMPLES, first_step, n_steps, most, tuple(points),
            self._scale(model.pure_epsilon / most), model.alpha_units, model.leaves_per_step,
        )  # fmt: skip
        return (spend,)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the measured steps of all other periods; of one whose choice is not known, every step."""
        known = list(spends)
        reserved = [spend for spend in known if isinstance(spend, CappedSpend) and spend.stage == SAMPLES]
        unknown = [s.first_step + step for s in reserved for step in range(s.n_steps)]
        points = sorted([*measured_steps(known, SAMPLES), *unknown])
        return {**memory_of(before, NAME), "mechanism": NAME, "points": points}

    def fitted(self, measured: Measured) -> Estimate:
        """Return the filter's values, corrected where measured, predicted in between, and its variances; the
        first value before itself, with the predictor's variance; without any, 0 and `UNKNOWN`."""
        controller = self._controller(measured.before, measured.first_step, len(measured.points))
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
                values[:, step], variances[:, step] = belief.mean, belief.variance
                noise[:, step] = belief.noise
        unit = float(measured.resolution)
        return Estimate(values * unit, np.minimum(variances, UNKNOWN) * unit**2, noise * unit**2)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        (plan,) = self.plan(period.n_steps, period.first_step, state)
        controller = self._controller(state, period.first_step, period.n_leaves)
        window, due, saw = self.model.window_length, controller.due, controller.saw
        measured = measure_in_turn(period, plan, window, due, saw, noise)
        points = [*plan.taken, *(period.first_step + position for position in measured.positions)]
        seen = points_after(points, period.first_step + period.n_steps, window)
        memory = {"mechanism": NAME, "points": seen, **controller.memory()}
        return replace(measured, before=public_part(state), state=memory)

    def _controller(self, state: State | None, first_step: int, n_series: int) -> "SamplingController":
        """Return the controller after the period before, or at a stream's start; never of a later one."""
        memory: Mapping[str, Any] = own_state(state, NAME)
        last = memory.get("last_sample")
        if last is not None and last >= first_step:
            memory = {}
        remembered = memory.get("n_series")
        if remembered not in (None, n_series):
            raise ParameterError(f"state of {NAME} is of {remembered} series; the period has {n_series}")
        noise_variance = 2.0 * float(self.plan(1)[0].scale) ** 2
        if self.predictor == "linear":
            return SamplingController(self, StraightLine(noise_variance, memory), memory)
        unit, usual = float(self.model.resolution), 100_000**0.5 * float(self.model.alpha)
        deviation = usual if self.process_deviation is None else self.process_deviation
        return SamplingController(
            self, ConstantState((deviation / unit) ** 2, noise_variance, memory), memory
        )

    @property
    def samples_of_integral(self) -> int:
        return self.integration_time or min(ERRORS_LOOKED_AT, self.samples_in_window)

    def feedback(self, errors: Sequence[tuple[int, float]]) -> float:
        """Return the feedback of past samples' (step, relative error), rising: with errors E at steps k

        proportional E[n] + integral / T (E[n] + … + E[n-T+1]) + derivative (E[n] - E[n-1]) / (k[n] - k[n-1]).
        """
        at, error = errors[-1]
        recent = [past for _, past in errors[-self.samples_of_integral :]]
        slope = (error - errors[-2][1]) / (at - errors[-2][0]) if len(errors) > 1 else 0.0
        mean = sum(recent) / self.samples_of_integral
        return self.proportional * error + self.integral * mean + self.derivative * slope

    def next_interval(self, interval: float, errors: Sequence[tuple[int, float]]) -> float:
        """Return the interval that follows one, max(interval + step (1 - e^((D - set_point) / set_point)),
        shortest), D the feedback; the shortest before `integration_time` errors.

        A small feedback lengthens it. The technical report prints the exponent with a minus, with which a
        large error would lengthen it; the cut exponent and the longest interval, a window, are ours.
        """
        window, shortest = self.model.window_length, float(self.min_interval)
        if self.sampling == "fixed":
            return float(-(-window // self.samples_in_window))
        if len(errors) < self.samples_of_integral:
            return shortest
        exponent = (self.feedback(errors) - self.set_point) / self.set_point
        change = self.interval_step * (1 - math.exp(min(exponent, LARGEST_EXPONENT)))
        return min(max(interval + change, shortest), float(window))


# The time of the next measurement, by earlier ones: a predictor, its errors, and an interval law.


@dataclass(frozen=True, eq=False)
class StateEstimate:
    """The mean of all series at one step, (n_series,), its variance, and the noise's part of that, or nan."""

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
        """Return the variance of the first measured value as an estimate of the value `steps` earlier."""
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


class SamplingController:
    """Decides from noisy values which steps are due: the first, and after a measured step k with interval I
    the step k + I, rounded down, until it is measured. One error steers all series: the mean of |posterior -
    prior| / max(|posterior|, error_floor)."""

    def __init__(
        self, mechanism: Fast, predictor: ConstantState | StraightLine, memory: Mapping[str, Any]
    ) -> None:
        self.predictor, self._mechanism = predictor, mechanism
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
        model, floor = self._mechanism.model, self._mechanism.error_floor
        if prior is not None and self._mechanism.sampling == "adaptive":
            least = float(model.alpha if floor is None else floor) / float(model.resolution)
            size = np.maximum(np.abs(posterior.mean), least)
            error = float(np.mean(np.abs(posterior.mean - prior.mean) / size))
            self._errors = [*self._errors, (step, error)][-max(self._mechanism.samples_of_integral, 2) :]
        self._interval = self._mechanism.next_interval(self._interval, self._errors)
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

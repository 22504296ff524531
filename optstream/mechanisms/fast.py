"""FAST: samples taken when the series moves, a Kalman filter for the steps in between."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.fast.controller import IntervalLaw, Predictor, SamplingController, follow
from optstream.estimation.fast.kalman import ConstantState
from optstream.estimation.fast.linear import StraightLine
from optstream.estimation.fast.sampling_interval import AdaptiveInterval, FixedInterval
from optstream.measurement.in_turn import measure_in_turn
from optstream.measurement.linear import SAMPLES
from optstream.mechanisms.fast_parameters import FastParameters
from optstream.mechanisms.series import OnlineMechanism
from optstream.mechanisms.state import measured_steps, memory_of, own_state
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend, Spend
from optstream.stream import Measured, PrivatePeriod, State
from optstream.stream.state import public_part

NAME = "Fast"
ERRORS_LOOKED_AT = 5


@dataclass(frozen=True)
class Fast(FastParameters, OnlineMechanism):
    """FAST: at most M steps of any window are measured, sooner when the prediction failed, and filtered.

    A measured step has Laplace noise of scale M * alpha / epsilon. Between two of them the filter's
    prediction is published, at one the corrected value. How far the correction moved it is fed back into the
    interval to the next (`estimation.fast.sampling_interval`). Decided once for all series, from noisy
    numbers.

    As published it protects a user's whole finite series: here, a window as long as the series. With a
    shorter window no window holds more than M samples, whatever the feedback says: a step that is due and has
    no headroom waits for the first with headroom. That is a public rule, over earlier and later periods.

    Source: Fan and Xiong, FAST (technical report 2011; 2012, 2014); defaults of a re-implementation.

    Args:
        model: What is protected.
        n_samples: M, in [1, w]; None for 15 % of the window, rounded down, at least 1.
        sampling: "adaptive", or "fixed": every ceil(w / M) steps.
        predictor: "kalman", or "linear": measured values as they are, then the line through the last two.
        proportional: Gain of the feedback's last error, in [0, 1]; the three gains add up to 1.
        integral: Gain of the errors' mean over `integration_time`, in [0, 1].
        derivative: Gain of the errors' change a step, in [0, 1].
        integration_time: Samples that the integral looks at, in [1, M]; None for 5, or M if that is less.
            Until so many errors are known the interval is the shortest.
        interval_step: theta > 0, in steps.
        set_point: xi > 0, the relative error at which the interval stays.
        min_interval: In steps, in [1, w].
        process_deviation: How far a series is taken to move in a step, > 0, in the unit of the readings: the
            square root of the paper's Q. None for 316 alpha, for counts the re-implementation's Q = 100,000.
            Better is what the public knows of the series; a guess must not come from the private values.
        error_floor: Relative errors are taken of no smaller value than this, > 0, in the unit of the
            readings; None for alpha, which for counts is the re-implementation's 1.

    Raises:
        ParameterError: For the first parameter that is outside its range; and where the noise would outgrow
            the integers.
    """

    adaptive: ClassVar[bool] = True
    noise_is_known: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._spend(1, 0, None)

    @property
    def epsilon(self) -> Fraction:
        """What any window costs: M steps of it, each alpha / scale."""
        return self.samples_in_window * self._spend(1, 0, None).unit_charge

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[CappedSpend, ...]:
        """Return one spend: any steps, but no more than M in a window."""
        return (self._spend(n_steps, first_step, state),)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the measured steps of all other periods; of one whose choice is not known, every step."""
        known = list(spends)
        reserved = [spend for spend in known if isinstance(spend, CappedSpend) and spend.stage == SAMPLES]
        unknown = [s.first_step + step for s in reserved for step in range(s.n_steps)]
        points = [step for step, _ in measured_steps(known, SAMPLES)]
        return {**memory_of(before, NAME), "mechanism": NAME, "points": sorted([*points, *unknown])}

    def fitted(self, measured: Measured) -> Estimate:
        """Return the filter's values: corrected where measured, predicted in between, with its variances."""
        return follow(self._controller(measured.before, measured.first_step, len(measured.points)), measured)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        (plan,) = self.plan(period.n_steps, period.first_step, state)
        controller = self._controller(state, period.first_step, period.n_leaves)
        measured = measure_in_turn(period, plan, self.model.window_length, controller, noise)
        points = [*plan.taken, *(period.first_step + position for position in measured.positions)]
        still_seen = period.first_step + period.n_steps - self.model.window_length
        # not a set: a step that was measured twice counts twice
        near = sorted(point for point in points if point > still_seen)
        memory = {"mechanism": NAME, "points": near, **controller.memory()}
        return replace(measured, before=public_part(state), state=memory)

    def _controller(self, state: State | None, first_step: int, n_series: int) -> SamplingController:
        """Return the controller as the period before left it, or at the start of a stream.

        What a later period left says nothing of this one: it is not used.
        """
        memory: Mapping[str, Any] = own_state(state, NAME)
        last = memory.get("last_sample")
        if last is not None and last >= first_step:
            memory = {}
        unit = float(self.model.resolution)
        floor = float(self.model.alpha) if self.error_floor is None else self.error_floor
        return SamplingController(self._predictor(memory, n_series), self._law(), floor / unit, memory)

    def _predictor(self, memory: Mapping[str, Any], n_series: int) -> Predictor:
        remembered = memory.get("n_series")
        if remembered not in (None, n_series):
            raise ParameterError(f"state of {NAME} is of {remembered} series; the period has {n_series}")
        noise_variance = 2.0 * float(self._spend(1, 0, None).scale) ** 2
        if self.predictor == "linear":
            return StraightLine(noise_variance, memory)
        deviation = self.process_deviation
        if deviation is None:
            deviation = 100_000**0.5 * float(self.model.alpha)
        return ConstantState((deviation / float(self.model.resolution)) ** 2, noise_variance, memory)

    def _law(self) -> IntervalLaw:
        window, most = self.model.window_length, self.samples_in_window
        if self.sampling == "fixed":
            return FixedInterval(-(-window // most))
        time = self.integration_time
        return AdaptiveInterval(
            self.proportional, self.integral, self.derivative,
            min(ERRORS_LOOKED_AT, most) if time is None else time,
            self.interval_step, self.set_point, self.min_interval, window,
        )  # fmt: skip

    def _spend(self, n_steps: int, first_step: int, state: State | None) -> CappedSpend:
        model, most = self.model, self.samples_in_window
        points = own_state(state, NAME).get("points", ())
        return CappedSpend(
            0, SAMPLES, first_step, n_steps, most, tuple(points),
            self._scale(model.pure_epsilon / most), model.alpha_units, model.leaves_per_step,
        )  # fmt: skip

"""FAST: samples taken when the series moves, a Kalman filter for the steps in between."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Literal

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.fast import (
    AdaptiveInterval,
    ConstantState,
    FixedInterval,
    IntervalLaw,
    Predictor,
    SamplingController,
    StraightLine,
    follow,
)
from optstream.measurement.sums import SAMPLES, measure_in_turn
from optstream.mechanisms.base import (
    OnlineMechanism,
    check_positive,
    measured_steps,
    memory_of,
    own_state,
    points_after,
)
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend, PrivacyModel, Spend
from optstream.privacy.exact import make_plain, whole
from optstream.stream import Measured, PrivatePeriod, State
from optstream.stream.state import public_part

NAME = "Fast"
ERRORS_LOOKED_AT = 5
SHARE_SAMPLED = Fraction(15, 100)
ROUNDING = 1e-9  # by how much gains that were meant to add up to 1 may miss it


@dataclass(frozen=True)
class Fast(OnlineMechanism):
    """FAST: at most M steps of any window are measured, sooner when the prediction failed, and filtered.

    A measured step has Laplace noise of scale M * alpha / epsilon (Lemma 10). Between two of them the
    filter's prediction is published, at one the corrected value. The size of the correction sets the interval
    to the next (`estimation.fast.AdaptiveInterval`), once for all series. A step that is due waits until no
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
        for name, legal in (("sampling", ("adaptive", "fixed")), ("predictor", ("kalman", "linear"))):
            if (chosen := getattr(self, name)) not in legal:
                raise ParameterError(f'{name} of Fast must be "{legal[0]}" or "{legal[1]}"; got {chosen!r}')
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
        """Return the filter's values: corrected where measured, predicted in between, with its variances."""
        return follow(self._controller(measured.before, measured.first_step, len(measured.points)), measured)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        (plan,) = self.plan(period.n_steps, period.first_step, state)
        controller = self._controller(state, period.first_step, period.n_leaves)
        measured = measure_in_turn(period, plan, self.model.window_length, controller, noise)
        points = [*plan.taken, *(period.first_step + position for position in measured.positions)]
        seen = points_after(points, period.first_step + period.n_steps, self.model.window_length)
        memory = {"mechanism": NAME, "points": seen, **controller.memory()}
        return replace(measured, before=public_part(state), state=memory)

    def _controller(self, state: State | None, first_step: int, n_series: int) -> SamplingController:
        """Return the controller after the period before, or at a stream's start; never of a later one."""
        memory: Mapping[str, Any] = own_state(state, NAME)
        last = memory.get("last_sample")
        if last is not None and last >= first_step:
            memory = {}
        remembered = memory.get("n_series")
        if remembered not in (None, n_series):
            raise ParameterError(f"state of {NAME} is of {remembered} series; the period has {n_series}")
        unit, alpha = float(self.model.resolution), float(self.model.alpha)
        noise_variance = 2.0 * float(self.plan(1)[0].scale) ** 2
        predictor: Predictor = StraightLine(noise_variance, memory)
        if self.predictor == "kalman":
            deviation = 100_000**0.5 * alpha if self.process_deviation is None else self.process_deviation
            predictor = ConstantState((deviation / unit) ** 2, noise_variance, memory)
        window, most = self.model.window_length, self.samples_in_window
        law: IntervalLaw = FixedInterval(-(-window // most))
        if self.sampling == "adaptive":
            law = AdaptiveInterval(
                self.proportional, self.integral, self.derivative,
                self.integration_time or min(ERRORS_LOOKED_AT, most),
                self.interval_step, self.set_point, self.min_interval, window,
            )  # fmt: skip
        floor = alpha if self.error_floor is None else self.error_floor
        return SamplingController(predictor, law, floor / unit, memory)

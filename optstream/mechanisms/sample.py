"""Sample: one draw a window, held."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from optstream.estimation import Estimate
from optstream.estimation.estimate import hold
from optstream.measurement.sums import SAMPLES, measure_steps
from optstream.mechanisms.base import (
    OnlineMechanism,
    last_values,
    measured_steps,
    memory_of,
    own_state,
    points_after,
)
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, StepSpend
from optstream.privacy.rules import WindowBudget
from optstream.stream import Measured, PrivatePeriod, State
from optstream.stream.state import public_part


@dataclass(frozen=True)
class Sample(OnlineMechanism):
    """One step of any window is measured, with all of epsilon, and its value held until the next.

    A step is measured as soon as no window would hold two: a public rule over the steps that were measured
    before and, when a day is released late, after. Its state and spends run on across periods.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 4.2.

    Args:
        model: The privacy guarantee.

    Raises:
        ParameterError: The noise would outgrow the integers.
    """

    model: PrivacyModel
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._spend((), 0)

    @property
    def epsilon(self) -> Fraction:
        """What any window costs: one step of it, alpha / scale."""
        return self._spend((), 0).unit_charge

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[StepSpend, ...]:
        """Return one spend: the steps that will be measured."""
        chosen = self._positions(n_steps, first_step, state)
        return (self._spend(tuple(int(step in chosen) for step in range(n_steps)), first_step),)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the measured steps of all other periods, and the value that is held."""
        return {
            **memory_of(before, "Sample"),
            "mechanism": "Sample",
            "points": [step for step, _ in measured_steps(spends, SAMPLES)],
        }

    def fitted(self, measured: Measured) -> Estimate:
        return hold(measured)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        (spend,) = self.plan(period.n_steps, period.first_step, state)
        positions = [step for step, weight in enumerate(spend.weights) if weight]
        measured = replace(measure_steps(period, positions, spend, noise), before=public_part(state))
        points = [*own_state(state, "Sample").get("points", ()), *(period.first_step + p for p in positions)]
        end = period.first_step + period.n_steps
        seen = points_after(points, end, self.model.window_length)
        return replace(measured, state={"mechanism": "Sample", "points": seen} | last_values(measured))

    def _positions(self, n_steps: int, first_step: int, state: State | None) -> tuple[int, ...]:
        points = own_state(state, "Sample").get("points", ())
        budget = WindowBudget(1, self.model.window_length, first_step, n_steps, [(at, 1) for at in points])
        chosen = []
        for step in range(n_steps):
            if budget.headroom(step) >= 1:
                budget.take(step)
                chosen.append(step)
        return tuple(chosen)

    def _spend(self, weights: tuple[int, ...], first_step: int) -> StepSpend:
        return self._step_spend(SAMPLES, first_step, weights, self.model.pure_epsilon)

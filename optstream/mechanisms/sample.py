"""Sample: one draw a window, held."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from optstream.measurement.sums import SAMPLES
from optstream.mechanisms.base import (
    SeriesMechanism,
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

NAME = "Sample"


@dataclass(frozen=True)
class Sample(SeriesMechanism):
    """One step of any window is measured, with all of epsilon, and its value held until the next.

    A step is measured as soon as no window would hold two: a public rule over the steps that were measured
    before and, when a day is released late, after. Its state and spends run on across periods.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 4.2. Raises ParameterError for noise that
    would outgrow the integers.

    Args:
        model: The privacy guarantee.
    """

    model: PrivacyModel
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self.epsilon  # refuses noise that would outgrow the integers

    @property
    def epsilon(self) -> Fraction:
        """What any window costs: one step of it, alpha / scale."""
        return self._step_spend(SAMPLES, 0, (), self.model.pure_epsilon).unit_charge

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[StepSpend, ...]:
        """Return one spend: the steps that will be measured."""
        points = [(at, 1) for at in own_state(state, NAME).get("points", ())]
        budget, weights = WindowBudget(1, self.model.window_length, first_step, n_steps, points), list[int]()
        for step in range(n_steps):
            weights.append(int(budget.headroom(step) >= 1))
            budget.take(step, weights[-1])
        return (self._step_spend(SAMPLES, first_step, tuple(weights), self.model.pure_epsilon),)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the measured steps of all other periods, and the value that is held."""
        return {**memory_of(before, NAME), "mechanism": NAME, "points": measured_steps(spends, SAMPLES)}

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        measured = replace(super()._draw(period, noise, state), before=public_part(state))
        points = [*own_state(state, NAME).get("points", ()), *measured_steps(measured.spends, SAMPLES)]
        seen = points_after(points, period.first_step + period.n_steps, self.model.window_length)
        return replace(measured, state={"mechanism": NAME, "points": seen} | last_values(measured))

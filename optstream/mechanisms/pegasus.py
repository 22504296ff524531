"""PeGaSus: perturb every step, group steps that look alike, smooth each group."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.smoothing import SMOOTHERS, smooth
from optstream.measurement.grouping import GROUPER, PERTURBER, measure_groups
from optstream.mechanisms.base import SeriesMechanism, measured_steps, memory_of, own_state
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, StepSpend
from optstream.privacy.exact import Exact, exact, one_of
from optstream.stream import Measured, PrivatePeriod, State

NAME = "PeGaSus"
USUAL_THRESHOLD = 5
"""In units of alpha over a step's epsilon for the grouper: a re-implementation's, as the paper's."""


@dataclass(frozen=True)
class PeGaSus(SeriesMechanism):
    """Every step is measured; steps whose values hardly deviate form groups, and each group is smoothed.

    Each step has epsilon / w. The perturber has `perturber_share` of it: Laplace noise of scale alpha / its
    epsilon on every value. The grouper has the rest: a step joins its series' open group if the group's
    deviation, with noise, stays below a noisy threshold (Lemma 9); else it is a closed group of its own. A
    step's value is smoothed over its group so far and never revised. Groups run on across periods by raw
    state, which serves once.

    Source: Chen, Machanavajjhala, Hay and Miklau 2017, Algorithms 1 and 2. Changed: epsilon is a window's and
    not a step's, noise is discrete, and several series each have groups of their own. Raises ParameterError
    for a parameter outside its range, or noise that would outgrow the integers.

    Args:
        model: The privacy guarantee.
        perturber_share: Of epsilon, exact, in (0, 1).
        threshold: Of a group's deviation, in the unit of the readings, exact, at least 0; None for 5 alpha
            over a step's epsilon for the grouper.
        smoother: "median", "average" or "james_stein".
    """

    model: PrivacyModel
    perturber_share: Exact = "4/5"
    threshold: Exact | None = None
    smoother: str = "median"
    adaptive: ClassVar[bool] = True
    days_independent: ClassVar[bool] = False
    noise_is_known: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share = exact(self.perturber_share, "perturber_share of PeGaSus")
        if not 0 < share < 1:
            raise ParameterError(f"perturber_share of PeGaSus must be in (0, 1); got {share}")
        object.__setattr__(self, "perturber_share", share)
        if self.threshold is not None:
            threshold = exact(self.threshold, "threshold of PeGaSus")
            if threshold < 0:
                raise ParameterError(f"threshold of PeGaSus must be at least 0; got {threshold}")
            object.__setattr__(self, "threshold", threshold)
        one_of(self.smoother, "smoother of PeGaSus", tuple(SMOOTHERS))
        self.plan(1)  # refuses noise that would outgrow the integers

    @property
    def epsilon(self) -> Fraction:
        """What any window of w steps costs: w steps, each the perturber's and the grouper's epsilon."""
        return self.model.window_length * sum((spend.unit_charge for spend in self.plan(1)), Fraction(0))

    @property
    def threshold_units(self) -> int:
        """The deviation that a group may reach, before noise, rounded up to units of the resolution."""
        if self.threshold is None:
            return -(-USUAL_THRESHOLD * self.plan(1)[1].scale // 1)
        return -(-Fraction(self.threshold) // self.model.resolution)

    def plan(
        self, n_steps: int, first_step: int = 0, state: State | None = None
    ) -> tuple[StepSpend, StepSpend]:
        """Return two spends, weight 1 at every step: the perturber's and the grouper's."""
        share, a_step = Fraction(self.perturber_share), self.model.pure_epsilon / self.model.window_length
        weights = (1,) * n_steps
        return (
            self._step_spend(PERTURBER, first_step, weights, a_step * share),
            self._step_spend(GROUPER, first_step, weights, a_step * (1 - share)),
        )

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the state before, its groups closed if later steps were measured: raw state serves once."""
        memory = {**memory_of(before, NAME), "mechanism": NAME}
        ends = memory.get("next_step")
        if ends is not None and any(step >= ends for step in measured_steps(spends, GROUPER)):
            memory["next_step"] = None
        return memory

    def fitted(self, measured: Measured) -> Estimate:
        """Return each step smoothed over its group up to that step."""
        return smooth(measured, self.smoother)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        own_state(state, NAME)
        spends = self.plan(period.n_steps, period.first_step)
        measured = measure_groups(period, spends, self.threshold_units, state, noise)
        return replace(measured, state={"mechanism": NAME, **(measured.state or {})})

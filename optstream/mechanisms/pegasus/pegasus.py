"""PeGaSus: perturb every step, group steps that look alike, smooth each group."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.pegasus.smoothing import SMOOTHERS, smooth
from optstream.measurement.grouping import GROUPER, PERTURBER, measure_groups
from optstream.mechanisms.series import OnlineMechanism
from optstream.mechanisms.state import measured_steps, memory_of, own_state
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, StepSpend
from optstream.privacy.exact import Exact, exact
from optstream.stream import Measured, PrivatePeriod, State

NAME = "PeGaSus"
USUAL_THRESHOLD = 5
"""In units of alpha over a step's epsilon for the grouper: a re-implementation's, as the paper's."""


@dataclass(frozen=True)
class PeGaSus(OnlineMechanism):
    """Every step is measured; steps whose values hardly deviate form groups, and each group is smoothed.

    Each step has epsilon / w. The perturber has `perturber_share` of it: Laplace noise of scale alpha / its
    epsilon on every value. The grouper has the rest: a step joins its series' open group if the group's
    deviation, with noise of scale 8 alpha / its epsilon, stays below a threshold with noise of scale 4 alpha
    / its epsilon, drawn once a group; else it is a closed group of its own. Published at a step is the
    smoothed value of its group so far; it is never revised. Every step costs both epsilons, whatever the
    groups, so any window costs at most epsilon.

    Groups run on across periods: the noisy threshold and the raw values of an open group are raw state. If it
    is lost, the group closes. It serves once: a period that is measured again must not be handed it.

    Source: Chen, Machanavajjhala, Hay and Miklau 2017, Algorithms 1 and 2. Changed: epsilon is a window's and
    not a step's, noise is discrete, and several series each have groups of their own.

    Args:
        model: What is protected.
        perturber_share: Of epsilon, exact, in (0, 1).
        threshold: Of a group's deviation, in the unit of the readings, exact, at least 0; None for 5 alpha
            over a step's epsilon for the grouper.
        smoother: "median", "average" or "james_stein".
        groups: On a tree, "own" for each level's, "children" for those of `PeGaSusTree`.

    Raises:
        ParameterError: For a parameter outside its range, naming it; and where the noise would outgrow the
            integers.
    """

    model: PrivacyModel
    perturber_share: Exact = "4/5"
    threshold: Exact | None = None
    smoother: str = "median"
    groups: str = "own"
    adaptive: ClassVar[bool] = True
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
        if not isinstance(self.smoother, str) or self.smoother not in SMOOTHERS:
            legal = ", ".join(SMOOTHERS)
            raise ParameterError(f"smoother of PeGaSus must be one of {legal}; got {self.smoother!r}")
        if self.groups not in ("own", "children"):
            raise ParameterError(f'groups of PeGaSus must be "own" or "children"; got {self.groups!r}')
        self._spends(1, 0)

    @property
    def tree_class(self) -> str | None:  # type: ignore[override]  # mypy: a property over what is only read
        """The class that puts it on a tree, by its groups."""
        return "PeGaSusTree" if self.groups == "children" else "Hierarchical"

    @property
    def epsilon(self) -> Fraction:
        """What any window of w steps costs: w steps, each the perturber's and the grouper's epsilon."""
        return self.model.window_length * sum(
            (spend.unit_charge for spend in self._spends(1, 0)), Fraction(0)
        )

    @property
    def threshold_units(self) -> int:
        """The deviation that a group may reach, before noise, rounded up to units of the resolution."""
        if self.threshold is None:
            return -(-USUAL_THRESHOLD * self._spends(1, 0)[1].scale // 1)
        return -(-Fraction(self.threshold) // self.model.resolution)

    def plan(
        self, n_steps: int, first_step: int = 0, state: State | None = None
    ) -> tuple[StepSpend, StepSpend]:
        """Return two spends, weight 1 at every step: the perturber's and the grouper's."""
        return self._spends(n_steps, first_step)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return what the period before left; its groups close if steps after it were measured already.

        Then its raw state has served, or may have.
        """
        memory = {**memory_of(before, NAME), "mechanism": NAME}
        ends = memory.get("next_step")
        if ends is not None and any(step >= ends for step, _ in measured_steps(spends, GROUPER)):
            memory["next_step"] = None
        return memory

    def fitted(self, measured: Measured) -> Estimate:
        """Return each step smoothed over its group up to that step."""
        return smooth(measured, self.smoother)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        own_state(state, NAME)
        spends = self._spends(period.n_steps, period.first_step)
        measured = measure_groups(period, spends, self.threshold_units, state, noise)
        return replace(measured, state={"mechanism": NAME, **(measured.state or {})})

    def _spends(self, n_steps: int, first_step: int) -> tuple[StepSpend, StepSpend]:
        share, a_step = Fraction(self.perturber_share), self.model.pure_epsilon / self.model.window_length
        weights = (1,) * n_steps
        return (
            self._step_spend(PERTURBER, first_step, weights, a_step * share),
            self._step_spend(GROUPER, first_step, weights, a_step * (1 - share)),
        )

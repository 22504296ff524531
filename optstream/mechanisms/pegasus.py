"""PeGaSus: perturb every step, group steps that look alike, smooth each group."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.smoothing import SMOOTHERS, smooth
from optstream.measurement.grouping import GROUPER, PERTURBER, measure_groups
from optstream.mechanisms.base import SeriesMechanism, measured_steps, memory_of, own_state
from optstream.mechanisms.hierarchical import Hierarchical
from optstream.mechanisms.laplace import Laplace
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, StepSpend
from optstream.privacy.exact import Exact, exact, one_of
from optstream.stream import AggregationTree, Measured, PrivatePeriod, State
from optstream.stream.lattice import refuse_margin
from optstream.stream.state import public_part

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
        groups: On a tree, "own" for each level's, "children" for those of `PeGaSusTree`.
    """

    model: PrivacyModel
    perturber_share: Exact = "4/5"
    threshold: Exact | None = None
    smoother: str = "median"
    groups: str = "own"
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
        one_of(self.groups, "groups of PeGaSus", ("own", "children"))
        self.plan(1)  # refuses noise that would outgrow the integers

    @property
    def tree_class(self) -> str | None:  # type: ignore[override]  # mypy: a property over a read-only one
        return "PeGaSusTree" if self.groups == "children" else "Hierarchical"

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


GROUPED_BELOW = "GroupedBelow"


@dataclass(frozen=True, init=False)
class PeGaSusTree(Hierarchical):
    """`Hierarchical` PeGaSus, but only levels with leaves look for groups: the others take theirs from below.

    A node of a level without leaves has the common refinement of its children's groups. Groups are released,
    so such a level needs no grouper, and its noise has all of its epsilon. A level whose share is 0 passes
    its groups on. It pays where children change together and thresholds are far above the groupers' noise.
    Raises ParameterError as `Hierarchical`, and for another pattern.

    Args:
        mechanism: A PeGaSus, made with the whole stream's model.
        tree: As in `Hierarchical`.
        level_shares: As in `Hierarchical`.
        lower_bound: As in `Hierarchical`.
    """

    def __init__(
        self,
        mechanism: PeGaSus,
        tree: AggregationTree,
        level_shares: Sequence[Exact],
        lower_bound: float | None = 0.0,
    ) -> None:
        if not isinstance(mechanism, PeGaSus):
            raise ParameterError(
                f"mechanism of PeGaSusTree must be a PeGaSus; got {type(mechanism).__name__}"
            )
        refuse_margin(tree, 'PeGaSus with groups = "children"')
        super().__init__(mechanism, tree, level_shares, lower_bound)

    @cached_property
    def levels(self) -> tuple[tuple[int, SeriesMechanism], ...]:
        """The measured levels and their mechanisms, root first."""
        pattern: Any = self.mechanism
        with_leaves = {*self.tree.depths[self.tree.leaf_indices]}
        return tuple(
            (level, own if level in with_leaves else GroupedBelow(own.model, smoother=pattern.smoother))
            for level, own in super().levels
        )

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        drawn = super()._draw(period, noise, state)
        parts = dict(zip(self.by_level, drawn.parts, strict=True))
        # the running index of each step's group's first step; a node without groups of its own has the
        # coarsest groups in which none of a child is cut, so that its deviation is at most the sum of theirs
        begins = np.full((len(self.tree.nodes), period.n_steps), np.iinfo(np.int64).min)
        for level, nodes in reversed([*enumerate(self.tree.levels)]):
            own, choices = self.by_level.get(level), parts[level].choices if level in parts else None
            if choices:
                begins[nodes] = choices["groups"]
                continue
            below = self.tree.levels[level + 1]
            np.maximum.at(begins, np.array(self.tree.parents)[below], begins[below])
            if isinstance(own, GroupedBelow):
                parts[level] = own.grouped(parts[level], begins[nodes])
        states = {str(level): part.state for level, part in parts.items()}
        assert drawn.state is not None  # every level has one
        return replace(drawn, parts=tuple(parts.values()), state={**drawn.state, "levels": states})


@dataclass(frozen=True)
class GroupedBelow(Laplace):
    """Every step measured as by `Laplace`, and smoothed over groups that were found elsewhere. Its state is
    public: the noisy values of each series' last group. Its noise is never joint."""

    smoother: str = "median"
    adaptive: ClassVar[bool] = True

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the state after the period before."""
        return {**memory_of(before, GROUPED_BELOW), "mechanism": GROUPED_BELOW}

    def misses_only_noise(self, measured: Measured) -> bool:
        return False

    def fitted(self, measured: Measured) -> Estimate:
        """Return each step smoothed over its group up to that step. measured: what `grouped` returned."""
        return smooth(measured, self.smoother)

    def grouped(self, measured: Measured, begins: NDArray[np.int64]) -> Measured:
        """Return the measurements with these groups and a state for the next period. begins: (n_series,
        n_steps), the running index of the first step of each step's group; one that began before continues if
        all of its noisy values are known."""
        first_step = measured.first_step
        terms = [str(spend.scale) for spend in self.plan(1)] + [str(measured.resolution)]
        before = measured.before or {}
        known: list[list[int]] = [[] for _ in begins]
        if (before.get("next_step"), before.get("terms")) == (first_step, terms):
            known = before["noisy"] if len(before["noisy"]) == len(begins) else known
        sizes = np.array([len(values) for values in known])[:, None]
        goes_on = begins == first_step - sizes
        groups = np.where(goes_on, begins, np.maximum(begins, first_step))
        lasts = zip(known, groups[:, -1].tolist(), measured.points.tolist(), strict=True)
        noisy = [
            [*values, *points] if last < first_step else points[last - first_step :]
            for values, last, points in lasts
        ]
        return replace(
            measured,
            choices={"groups": groups.tolist()},
            state={
                "mechanism": GROUPED_BELOW,
                "next_step": first_step + measured.n_steps,
                "terms": terms,
                "noisy": noisy,
            },
        )

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        own_state(state, GROUPED_BELOW)
        return replace(super()._draw(period, noise, state), before=public_part(state))

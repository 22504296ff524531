"""PeGaSus on a tree whose inner nodes take their groups from the nodes below them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.pegasus.refinement import refine
from optstream.estimation.pegasus.smoothing import smooth
from optstream.mechanisms.hierarchical import Hierarchical
from optstream.mechanisms.laplace import Laplace
from optstream.mechanisms.pegasus.pegasus import PeGaSus
from optstream.mechanisms.series import SeriesMechanism
from optstream.mechanisms.state import memory_of, own_state
from optstream.noise import NoiseSource
from optstream.privacy import Spend
from optstream.privacy.exact import Exact
from optstream.stream import AggregationTree, Measured, PrivatePeriod, State
from optstream.stream.lattice import refuse_margin
from optstream.stream.state import public_part

NAME = "GroupedBelow"


@dataclass(frozen=True, init=False)
class PeGaSusTree(Hierarchical):
    """`Hierarchical` PeGaSus, but only levels with leaves look for groups: the others take theirs from below.

    A node of a level without leaves has the common refinement of its children's groups: a step joins if it
    joins in every child. Groups are released, so that is free: such a level needs no grouper, and its noise
    has all of its epsilon. A level with leaves is measured by PeGaSus, all of its nodes, and a level whose
    share is 0 hands on what it takes. A refined group's deviation may be the sum of what its children's were
    allowed.

    By default it seldom pays: the groupers' noise lets a leaf's groups last three steps on average even where
    nothing changes, so with many children a refined group is one step, and the level is plain `Laplace`. That
    is better than own groups where those smear what moves (12 French regions, alpha 10 MW, epsilon 1: the
    nation's error falls by 42 %) and worse where the noise is large beside what moves, even if nothing moves.
    Refined groups pay where children change together and thresholds are far above the groupers' noise.

    Nothing is handed down from parent to child: a flat sum may hide children that move.

    Args:
        mechanism: A PeGaSus, made with the whole stream's model; it says how levels with leaves are measured
            and how all are smoothed.
        tree: As in `Hierarchical`.
        level_shares: As in `Hierarchical`.
        lower_bound: As in `Hierarchical`.

    Raises:
        ParameterError: As `Hierarchical`, and for another pattern.
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

    @property
    def levels(self) -> tuple[tuple[int, SeriesMechanism], ...]:
        """The measured levels and their mechanisms, root first."""
        return _without_groupers(self)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        drawn = super()._draw(period, noise, state)
        parts = {level: part for (level, _), part in zip(self.levels, drawn.parts, strict=True)}
        own = {level: part.choices["groups"] for level, part in parts.items() if part.choices}
        begins = refine(own, self.tree, period.n_steps)
        for level, mechanism in self.levels:
            if isinstance(mechanism, GroupedBelow):
                parts[level] = mechanism.grouped(parts[level], begins[self.tree.levels[level]])
        states = {str(level): part.state for level, part in parts.items()}
        assert drawn.state is not None  # every level has one
        return replace(drawn, parts=tuple(parts.values()), state={**drawn.state, "levels": states})


@dataclass(frozen=True)
class GroupedBelow(Laplace):
    """Every step measured as by `Laplace`, and smoothed over groups that were found elsewhere.

    Its state is public: the noisy values of each series' last group, for the group may go on. If it is lost,
    or is of other noise, groups begin anew. smoother: a key of `SMOOTHERS`. Its noise is never joint, which
    medians gain nothing by. Source: none; it is our own.
    """

    smoother: str = "median"
    adaptive: ClassVar[bool] = True

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return what the period before left."""
        return {**memory_of(before, NAME), "mechanism": NAME}

    def misses_only_noise(self, measured: Measured) -> bool:
        """Return False: it smooths."""
        return False

    def fitted(self, measured: Measured) -> Estimate:
        """Return each step smoothed over its group up to that step. measured: what `grouped` returned."""
        return smooth(measured, self.smoother)

    def grouped(self, measured: Measured, begins: NDArray[np.int64]) -> Measured:
        """Return the measurements with these groups and a state for the next period. Costs no privacy.

        begins: (n_series, n_steps), the running index of the first step of each step's group. A group that
        began before the period goes on if all of its noisy values are known.
        """
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
                "mechanism": NAME,
                "next_step": first_step + measured.n_steps,
                "terms": terms,
                "noisy": noisy,
            },
        )

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        own_state(state, NAME)
        return replace(super()._draw(period, noise, state), before=public_part(state))


@lru_cache(maxsize=256)
def _without_groupers(whole: PeGaSusTree) -> tuple[tuple[int, SeriesMechanism], ...]:
    pattern: Any = whole.mechanism
    with_leaves = {int(depth) for depth in whole.tree.depths[whole.tree.leaf_indices]}
    return tuple(
        (level, own if level in with_leaves else GroupedBelow(own.model, smoother=pattern.smoother))
        for level, own in super(PeGaSusTree, whole).levels
    )

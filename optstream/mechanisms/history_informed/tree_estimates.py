"""What is estimated of a tree from the blocks of its levels: one posterior, exact, over all of them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation import Estimate
from optstream.estimation.counts.published import published_counts
from optstream.estimation.counts.tree_counts import fit_counts, typical_above
from optstream.estimation.counts.tree_sizes import seen_counts
from optstream.estimation.error_factor import ErrorFactor
from optstream.estimation.gaussian_process.filter import (
    MOST_FITTED,
    MOST_LEARNED,
    FilterState,
    latest,
    nearest,
)
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.tree_filter import (
    Look,
    covariance_of_tree,
    events_of_tree,
    fit_tree,
    judged_tree,
    seen_tree,
)
from optstream.estimation.hierarchy.solve import consistent
from optstream.mechanisms.history_informed.history_informed import HistoryInformed
from optstream.mechanisms.history_informed.small_counts import tree_of_common_blocks
from optstream.stream import AggregationTree, Measured

MOST_CORRELATED = 2048
"""Leaves times steps of a period: of more, how their errors hang together is not worked out."""
MOST_TOGETHER = 2048
"""Blocks that are looked at for the errors of several periods: five weeks of 48 a day, with some around."""
Histories = Mapping[int, BlockHistory]
"""Of each measured level."""


@dataclass(frozen=True)
class TreeEstimates:
    """How a tree is estimated. Reads noisy sums and public facts alone: it costs no privacy.

    pattern: what all levels are like. small: the level with blocks of its own, if there is one. lower_bound:
    of every leaf, in the unit of the readings.
    """

    pattern: HistoryInformed
    tree: AggregationTree
    small: int | None
    lower_bound: float | None

    def estimate(self, measured: Measured, belief: FilterState, histories: Histories) -> Estimate:
        """Return the posterior mean of every node and its variance; consistent, and not below the bound."""
        steps, near = asked_and_near(measured, histories)
        scale = self.pattern.scale_units
        if self.pattern.counts:
            fit = fit_counts(belief, near, self.tree, self.small, steps, scale)
            return published_counts(fit, measured, self.tree, self.lower_bound)
        values, variances = fit_tree(belief, near, self.tree, steps, scale)
        unit = float(measured.resolution)
        values, variances = values * unit, variances * unit**2
        bound = self.lower_bound
        if bound is not None and values[self.tree.leaf_indices].min() < bound:
            merged = measured.seen_as(values, variances)
            # a posterior's leaves tell of their parents too, so none is held
            found = consistent(merged, self.tree, [], "variance", bound, "joint")
            return Estimate(found.values, variances, optimality=found.optimality)
        return Estimate(values, variances)

    def error_factor(
        self, measured: Measured, belief: FilterState, histories: Histories
    ) -> ErrorFactor | None:
        """Return the factor of the leaves' posterior covariance; None of counts and for too many leaves."""
        found = self.covariance(measured, belief, histories)
        return found if found is None else ErrorFactor.of_covariance(found)

    def covariance(
        self,
        measured: Measured,
        belief: FilterState,
        histories: Histories,
        asked: range | None = None,
        sums: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64] | None:
        """Return how the errors of leaves hang together, as `HistoryInformedTree.error_covariance` does."""
        n_asked = measured.n_steps if sums is None else len(sums)
        if self.pattern.counts or len(self.tree.leaves) * n_asked > MOST_CORRELATED:
            return None
        steps, near = asked_and_near(measured, histories)
        if asked is not None:
            near = {level: nearest(history, asked, MOST_TOGETHER) for level, history in histories.items()}
        scale = self.pattern.scale_units
        found = covariance_of_tree(belief, near, self.tree, steps, scale, asked, sums)
        return None if found is None else found * float(measured.resolution) ** 2

    def events(self, measured: Measured, belief: FilterState, histories: Histories) -> tuple[int, ...]:
        """Return the days that were found unlike all others. histories: of the levels with one posterior."""
        steps, near = asked_and_near(measured, histories)
        return events_of_tree(belief, near, self.above, steps, self._typical, self._look)

    def refreshed(self, belief: FilterState, histories: Histories, first_step: int) -> FilterState:
        """Return what the tree learned so far, learned again when due. histories: as for `events`."""
        tree, scale = self.above, self._typical
        belief = judged_tree(belief, histories, tree, first_step, scale, self._look)
        if not belief.is_due(first_step, self.pattern.relearn_days):
            return belief
        recent = {level: latest(history, MOST_LEARNED) for level, history in histories.items()}
        found = self._look(recent, tree, belief.days, scale, belief.events)
        if found is None:
            return belief
        return belief.taught(found[0], first_step)

    @property
    def above(self) -> AggregationTree:
        """The tree of the levels that have one posterior."""
        return tree_of_common_blocks(self.tree, self.small)

    @property
    def _look(self) -> Look:
        """What is seen of that tree."""
        return seen_counts if self.pattern.counts else seen_tree

    @property
    def _typical(self) -> float | None:
        """The public size of one of its leaves, in units of the resolution."""
        return typical_above(self.tree, self.above, self.pattern.scale_units)


def asked_and_near(measured: Measured, histories: Histories) -> tuple[range, dict[int, BlockHistory]]:
    """Return the period's steps, and each level's blocks that are nearest to them."""
    steps = range(measured.first_step, measured.first_step + measured.n_steps)
    return steps, {level: nearest(history, steps, MOST_FITTED) for level, history in histories.items()}

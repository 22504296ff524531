"""What is estimated of a tree from the blocks of its levels: one posterior, exact, over all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from optstream.estimation import Estimate
from optstream.estimation.counts.count_errors import count_errors
from optstream.estimation.counts.published import published_counts
from optstream.estimation.counts.tree_counts import SharedFit, fit_counts, shared_fit, typical_above
from optstream.estimation.counts.tree_sizes import seen_counts
from optstream.estimation.error_covariance import (
    AskedTimes,
    CovarianceOfSums,
    SumsOfTimes,
    times_before,
)
from optstream.estimation.gaussian_process.doubts.leaf_covariance import most_nodes
from optstream.estimation.gaussian_process.filter import MOST_LEARNED, FilterState, around, latest
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.tree_filter import (
    Look,
    events_of_tree,
    fit_tree,
    judged_tree,
    nothing_measured,
    seen_tree,
)
from optstream.estimation.hierarchy.solve import consistent
from optstream.mechanisms.history_informed.history_informed import HistoryInformed
from optstream.mechanisms.history_informed.small_counts import tree_of_common_blocks
from optstream.stream import AggregationTree, Measured

Histories = Mapping[int, BlockHistory]
"""Of each measured level."""


@dataclass(frozen=True)
class TreeEstimate:
    """An estimate, and what tells how its errors hang together: None where nothing was measured."""

    values: Estimate
    doubt: Callable[[], CovarianceOfSums | None] | None = None


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

    def estimate(self, measured: Measured, belief: FilterState, histories: Histories) -> TreeEstimate:
        """Return the posterior mean of every node and its variance; consistent, and not below the bound."""
        steps, near = asked_and_near(measured, histories)
        scale, unit = self.pattern.scale_units, float(measured.resolution)
        if self.pattern.counts:
            shared = shared_fit(belief, near, self.tree, self.small, steps, scale)
            fit = fit_counts(shared, near, self.tree, self.small, steps, scale)
            counted = published_counts(fit, measured, self.tree, self.lower_bound)
            own = partial(self._doubt_of_counts, shared, near, histories, steps, unit) if shared else None
            return TreeEstimate(counted, own)
        found, doubt = fit_tree(belief, near, self.tree, steps, scale), None
        if found is None:
            values, variances = nothing_measured(self.tree, len(steps), scale)
        else:
            asked = self._asked(near, histories, steps)
            doubt = found.doubt(asked, len(steps))
            values, variances = found.series(steps, doubt)
        values, variances = values * unit, variances * unit**2
        bound, optimality, unbounded = self.lower_bound, None, None
        if bound is not None and values[self.tree.leaf_indices].min() < bound:
            merged = measured.seen_as(values, variances)
            # a posterior's leaves tell of their parents too, so none is held
            nearest = consistent(merged, self.tree, [], "variance", bound, "joint")
            values, optimality, unbounded = nearest.values, nearest.optimality, values
        estimate = Estimate(values, variances, optimality=optimality, unbounded=unbounded)
        if doubt is None:
            return TreeEstimate(estimate)
        sums = SumsOfTimes(doubt, asked.weights, len(asked.weights) - len(steps), unit**2)
        return TreeEstimate(estimate, lambda: sums)

    def _doubt_of_counts(
        self, shared: SharedFit, near: Histories, histories: Histories, steps: range, unit: float
    ) -> CovarianceOfSums | None:
        """Return the same of counts, of nodes; None also where leaves were not measured."""
        if len(self.tree.nodes) > most_nodes(self.tree, len(steps)):
            return None
        asked = self._asked(near, histories, steps)
        every = range(int(asked.starts.min()), steps.stop)
        found = count_errors(shared, near, self.tree, self.small, every, len(steps))
        if found is None:
            return None
        return SumsOfTimes(found, asked.of_steps, len(asked.weights) - len(steps), unit**2)

    def _asked(self, near: Histories, histories: Histories, steps: range) -> AskedTimes:
        """Return with which days before it a period's errors hang together: those whose blocks the estimate
        looks at.

        Where it looks at all blocks that the estimate of a day before did, that day's error is what this
        posterior leaves in doubt of it, plus a function of blocks, with which this day's error is not
        correlated. So the covariance of both errors is this posterior's (docs/privacy.md says why it costs
        nothing).
        """
        earliest = min(int(one.starts.min()) for one in near.values() if one.n_blocks)
        is_first = all(one.n_blocks == histories[level].n_blocks for level, one in near.items())
        return times_before(self.pattern.public_days, steps, earliest, is_first)

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
    """Return the period's steps, and each level's blocks around them."""
    steps = range(measured.first_step, measured.first_step + measured.n_steps)
    return steps, {level: around(history, steps) for level, history in histories.items()}

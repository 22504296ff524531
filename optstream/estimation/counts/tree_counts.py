"""Counts at every node of a tree: levels above by one posterior, small leaves as shares of their parents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.counts.held_share import level_factors
from optstream.estimation.counts.shares import (
    LEAST_SHAPE,
    Integers,
    LeafBlocks,
    LeafEstimate,
    estimate_leaves,
    shares_of_parents,
)
from optstream.estimation.counts.tree_sizes import seen_counts
from optstream.estimation.counts.variation import Variation, count_variation
from optstream.estimation.gaussian_process.filter import FilterState
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.posterior import Fitted, series_of
from optstream.estimation.gaussian_process.prior import TemporalPrior
from optstream.estimation.gaussian_process.training_data import step_blocks
from optstream.estimation.gaussian_process.tree_filter import SAME, common_blocks, nothing_measured
from optstream.estimation.holding import UNKNOWN
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]

SHARED_DOUBT = 0.02
"""Of a small leaf's own variance as a count: what it gives way to its parent by, where it is sure."""
LEAST_DOUBT = 1e-9


@dataclass(frozen=True, eq=False)
class CountsFit:
    """What is known of every node's expected counts, before they add up.

    Attributes:
        means: (n_nodes, n_steps), expected counts, and what is told of how they varied.
        variances: The same shape: of the doubt about expectations.
        given: The same shape: the variances by which nodes give way to each other.
        count_variances: (n_nodes, n_steps): what is open of the variance of a count whose expectation is 1.
        n_normal: How many nodes, the first ones, have a normal posterior, which may lie below 0.
    """

    means: Floats
    variances: Floats
    given: Floats
    count_variances: Floats
    n_normal: int


def tree_above(tree: AggregationTree, level: int) -> AggregationTree:
    """Return the tree without its levels from this one, above 0, on: nodes in the same order; free."""
    stop = tree.levels[level].start
    return AggregationTree(tree.nodes[:stop], tree.parents[:stop])


def fit_counts(
    shared: "SharedFit | None",
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    small: int | None,
    steps: range,
    scale: float | None,
) -> CountsFit:
    """Estimate every node's counts at these running steps from the blocks of all levels.

    Levels that share their blocks have one posterior, with sizes of `seen_counts`, widened level by level
    (`level_factors`). The level `small`, the deepest where its blocks are its own, is `estimate_leaves` of
    it. What its own measurement tells of a count is in it (`count_variation`), and its expectation is as much
    less in doubt. Where nothing was measured, `scale`, the public size of a typical leaf, or 0 with `UNKNOWN`
    variance. Costs no privacy: noisy numbers only.

    histories: {level: the blocks of its nodes}; a level that is not there was not measured.
    """
    if shared is None:
        means, unknown = nothing_measured(tree, len(steps), scale)
        return CountsFit(means, unknown, unknown, np.ones_like(means), len(means))
    found, days = shared.found, shared.days
    moved, variances = series_of(found, step_blocks(steps, days, shared.events))
    expected = shared.of_nodes + moved
    varied = count_variation(shared.tree, expected, shared.measured, steps)
    means, left, open_of = expected + varied.moved, 1.0 - varied.told, 1.0 - varied.told_expected

    def doubted(of_sizes: Floats) -> Floats:
        return (variances * shared.factors[:, None] + of_sizes * shared.shape(expected) ** 2) * open_of

    alone = doubted(shared.size_doubts)
    above = CountsFit(means, alone, alone + LEAST_DOUBT, left, len(means))
    if small is None:
        return above
    level = tree.levels[small]
    known = shared.leaf_blocks(tree, small, histories[small], steps)
    if known is None:
        return _evenly(above, np.array(tree.parents)[level.start : level.stop])
    leaves = estimate_leaves(*known, steps, found.posterior.prior, days, 1.0)
    # what leaves tell of nodes above is in the sums that are published, not in what these give way by
    doubts = doubted(shared.size_doubts_with(leaves, known[0].parents))
    shares = shares_of_parents(leaves, known[0].parents, len(means))
    return CountsFit(
        np.vstack([means, leaves.means * shared.raised(expected, varied)[known[0].parents]]),
        np.vstack([doubts, leaves.variances + shares**2 @ alone]),
        np.vstack([above.given, leaves.variances + SHARED_DOUBT * leaves.means + LEAST_DOUBT]),
        np.vstack([left, np.full_like(leaves.means, leaves.factor)]),
        len(means),
    )


@dataclass(frozen=True, eq=False)
class SharedFit:
    """What the blocks say that levels share.

    Attributes:
        tree: Of these levels.
        measured: What was measured of them, at the blocks that all share.
        found: Their posterior.
        days: The public clock.
        events: Days that are called events.
        of_nodes: (n_nodes, 1), sizes.
        factors: (n_nodes,), what the posterior's variances are multiplied with, beside its own factor.
        size_doubts: (n_nodes, 1), by how much sizes are doubted beyond the posterior.
        unsure: (n_nodes,), variances of what is known of each node's size without the nodes below it.
    """

    tree: AggregationTree
    measured: Mapping[int, BlockHistory]
    found: Fitted
    days: PublicDays
    events: Sequence[int]
    of_nodes: Floats
    factors: Floats
    size_doubts: Floats
    unsure: Floats

    def shape(self, means: Floats) -> Floats:
        """Return the root's expected counts over its size, (n_steps,), of all nodes', (n_nodes, n_steps)."""
        return np.asarray(np.maximum(means[0] / self.of_nodes[0], LEAST_SHAPE))

    def raised(self, expected: Floats, varied: Variation) -> Floats:
        """Return by which factor counts are found above what was expected of them, (n_nodes, n_steps)."""
        return np.maximum(1.0 + varied.moved / np.maximum(expected, LEAST_SHAPE * self.of_nodes), 0.0)

    def size_doubts_with(self, leaves: LeafEstimate, parents: Integers) -> Floats:
        """Return `size_doubts` with what small leaves tell of the sizes of the nodes above them, (n_nodes,
        1): what is published of a node is nearly what its leaves add up to, where these are known better.

        By the leaves' own blocks, joined with `size_doubts`: what their siblings are like would tell more,
        but all of them the same. parents: (n_small_leaves,), rows of their parents, which are leaves of the
        tree here.
        """
        measured = np.bincount(parents, leaves.factor * leaves.measured, len(self.size_doubts))
        told = np.where(measured > 0.0, measured, np.inf)[self.tree.leaf_indices, None]
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (1.0 / self.size_doubts + 1.0 / self.tree.add_up(told)))

    def means(self, steps: range) -> Floats:
        """Return expected counts, (n_nodes, n_steps), at running steps."""
        return np.asarray(self.of_nodes + self.found.means(step_blocks(steps, self.days, self.events)))

    def leaf_blocks(
        self, tree: AggregationTree, small: int, history: BlockHistory, steps: range
    ) -> tuple[LeafBlocks, Floats, int] | None:
        """Return what was measured of leaves of the level `small` of the whole tree, and their parents'
        counts from a step on, which covers the blocks and the running steps that are asked for; None where
        nothing was.
        """
        history = _alike(history)
        if not history.n_blocks:
            return None
        first = min(int(history.starts.min()), steps.start)
        stop = max(int((history.starts + history.lengths).max()), steps.stop)
        past = np.maximum(self.means(range(first, stop)), LEAST_SHAPE * self.of_nodes)
        level, noise = tree.levels[small], 2.0 * float(history.scales[-1]) ** 2
        parents = np.array(tree.parents)[level.start : level.stop]
        blocks = history.starts, history.lengths, history.sums.astype(np.float64), noise
        return LeafBlocks(*blocks, parents, self.tree, self.unsure), past, first


def shared_fit(
    belief: FilterState,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    small: int | None,
    steps: range,
    scale: float | None,
) -> SharedFit | None:
    """Return the posterior of the levels that share their blocks, with sizes of `seen_counts`; None where
    there are none. Costs no privacy.

    belief: what the tree learned; its history is not looked at. Other arguments as `fit_counts`.
    """
    above = tree if small is None else tree_above(tree, small)
    dense = {level: history for level, history in histories.items() if level != small}
    known = seen_counts(dense, above, belief.days, typical_above(tree, above, scale), belief.events)
    if known is None:
        return None
    seen, sizes, doubts, alone = known
    found, events = belief.answer(seen, steps)
    factors = level_factors(found.posterior) / found.factor
    size_doubts = _doubt_of_sizes(found.posterior.prior, above, sizes, doubts)
    of_nodes = above.add_up(sizes[:, None])
    measured = common_blocks(dense)
    return SharedFit(
        above, measured, found, belief.days, tuple(events), of_nodes, factors, size_doubts, alone
    )


def _alike(history: BlockHistory) -> BlockHistory:
    """Return the blocks with the noise of the latest; others are of another plan."""
    return history.chosen(np.abs(history.scales / history.scales[-1:] - 1.0) < SAME)


def _evenly(above: CountsFit, parents: NDArray[np.int64]) -> CountsFit:
    """Return leaves that were never measured beside what is known above them: even parts, of `UNKNOWN`."""
    even = np.maximum(above.means, 0.0)[parents] / np.bincount(parents)[parents][:, None]
    unknown = np.full(even.shape, UNKNOWN)
    return CountsFit(
        np.vstack([above.means, even]),
        np.vstack([above.variances, unknown]),
        np.vstack([above.given, unknown]),
        np.vstack([above.count_variances, np.ones_like(even)]),
        above.n_normal,
    )


def typical_above(tree: AggregationTree, above: AggregationTree, scale: float | None) -> float | None:
    """Return the public size of a typical leaf of the tree `above`, the first levels of `tree`; None if
    nothing is known of a leaf of the whole, whose size is `scale`. Free.
    """
    if scale is None or above is tree:
        return scale
    return scale * len(tree.leaves) / len(above.leaves)


def _doubt_of_sizes(prior: TemporalPrior, tree: AggregationTree, sizes: Floats, doubts: Floats) -> Floats:
    """Return by how much sizes are doubted beyond what the prior says of what never changes, (n_nodes, 1).

    Of a leaf its own part alone: what leaves share is told by the nodes above.
    """
    shared, own = np.exp(2.0 * prior.logs[:2])
    expected = own * tree.add_up(sizes[:, None] ** 2)[:, 0]
    inner = np.setdiff1d(np.arange(len(tree.nodes)), tree.leaf_indices)
    expected[inner] += shared * tree.add_up(sizes[:, None])[inner, 0] ** 2
    return np.asarray(np.maximum(doubts - expected, 0.0)[:, None])

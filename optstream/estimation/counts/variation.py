"""How counts varied around what is expected of them, as far as their own measurements tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_products import outer_squares
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.tree_passes import pass_over_tree, told_in_groups
from optstream.estimation.many_leaves.groups import Groups
from optstream.stream import AggregationTree

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
LEAST_EXPECTED = 1e-9
"""Counts: an expectation of a leaf below it is taken for this."""
MOST_TOLD = 1.0 - 1e-12
"""Nothing is known to the last digit: errors are divided by what is open."""


@dataclass(frozen=True, eq=False)
class Variation:
    """What blocks tell of how the counts in them varied.

    Attributes:
        moved: (n_nodes, n_steps), by how much counts are found above what is expected of them; it adds up.
        told: (n_nodes, n_steps), which part of what a count varies is known, from 0 to below 1.
        told_expected: The same shape: by which part an expectation is less in doubt for it; 0 in blocks of
            some steps, where that is how their steps differ, of which the block tells nothing.
        tree: Of levels that are measured at the same blocks.
        noise: (n_nodes,), variances of their noise; inf where a node was not measured.
        counted: (n_leaves, n_blocks), variances of leaves' counts over blocks: the counts that are found.
        cover: (n_steps, n_blocks), whether a step lies in a block.
        parts: (n_leaves, n_steps), which part of a leaf's counts in its block is expected at a step; 0 where
            no block covers it.
    """

    moved: Floats
    told: Floats
    told_expected: Floats
    tree: AggregationTree
    noise: Floats
    counted: Floats
    cover: NDArray[np.bool_]
    parts: Floats

    def explained(self, leaves: "csr_array", times: Floats) -> list[Groups]:
        """Return by how much less sums of leaves vary, and with each other, than if nothing were told, by
        weights of leaves, (p, n_leaves), and of steps, (q, n_steps).
        """
        at = np.flatnonzero(self.cover.any(axis=1))
        counted, parts, every = self.counted @ self.cover[at].T, self.parts[:, at], np.arange(at.size)
        matrices, of_steps = np.zeros((at.size,) * 3), outer_squares(times[:, at].T)
        matrices[every, every, every] = -1.0  # steps apart
        told = told_in_groups(self.tree, counted, self.noise)
        return [Groups(leaves, of, rows * parts, matrices, of_steps) for of, rows in told if rows.any()]


def count_variation(
    tree: AggregationTree, expected: Floats, histories: Mapping[int, BlockHistory], steps: range
) -> Variation:
    """Return what blocks tell of how counts varied, once it is known what was expected of them.

    A count is its expectation x plus p, of variance x and mean 0, independent from step to step and from leaf
    to leaf; measured is x + p plus noise. The estimate of x takes p for noise (`seen_counts`), so that what
    a measurement is beyond it, e, is the estimate of p plus noise, and E[p | e] follows from leaves of these
    variances and noisy sums of them (`pass_over_tree`). Of a single series with noise of variance n that is
    r e, r = x / (x + n), and the error of x + p has the variance (1 - r)^2 v + (1 - r) x, v that of x: exact
    for blocks of one step that are all expected alike. Of others x errs less alike, and (1 - r) v is closer.
    Where noise outweighs counts next to nothing is told; a large count that is measured by itself is known to
    its noise. Within a block of some steps each leaf's p is divided as that leaf is expected. Costs no
    privacy: noisy numbers only.

    expected: (n_nodes, n_steps). histories: the blocks of the measured levels, the same at each.
    """
    within = {level: one.between(steps.start, steps.stop) for level, one in histories.items()}
    blocks = next(iter(within.values()))
    sums, noise = np.zeros((len(tree.nodes), blocks.n_blocks)), np.full(len(tree.nodes), np.inf)
    for level, history in within.items():
        at = slice(tree.levels[level].start, tree.levels[level].stop)
        sums[at] = history.sums
        if blocks.n_blocks:
            noise[at] = 2.0 * np.mean(history.scales**2)
    running = np.arange(steps.start, steps.stop)[:, None]
    cover = (running >= blocks.starts) & (running < blocks.starts + blocks.lengths)
    surprises = np.where(np.isfinite(noise)[:, None], sums - expected @ cover, 0.0)
    leaves = np.maximum(expected[tree.leaf_indices], LEAST_EXPECTED)
    moved = pass_over_tree(tree, leaves @ cover, noise, (surprises,)).means[0]
    # a count that is found varies as one of which so much was expected: it may be a day unlike others
    counted = np.maximum(leaves @ cover + moved[tree.leaf_indices], LEAST_EXPECTED)
    known = pass_over_tree(tree, counted, noise, (surprises,))
    told = np.clip(1.0 - known.variances / known.prior, 0.0, MOST_TOLD)
    every = tree.add_up(leaves)
    # blocks are disjoint: what is said of one is that of each of its steps
    of_blocks = every @ cover @ cover.T
    parts = every / np.where(of_blocks > 0.0, of_blocks, np.inf)
    of_leaves = parts[tree.leaf_indices]
    told_of_steps = told @ cover.T * parts
    return Variation(
        tree.add_up(moved[tree.leaf_indices] @ cover.T * of_leaves),
        told_of_steps,
        told_of_steps * cover[:, blocks.lengths == 1].any(axis=1),
        tree,
        noise,
        counted,
        cover,
        of_leaves,
    )

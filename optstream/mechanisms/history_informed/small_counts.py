"""Which leaves are small counts, and the blocks at which they are measured: from public figures alone."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optstream.estimation.counts.tree_counts import tree_above, typical_above
from optstream.mechanisms.history_informed.block_choice import Figures
from optstream.stream import AggregationTree

SMALL = 0.25
"""From which relative noise on a leaf, in one block a window, it is small: between 0.5, where blocks of their
own were no worse, and 0.01, where they were (docs/methods/history-informed.md)."""
SMALL_BLOCKS, SMALL_LENGTH = 1, 4
"""Of a window: the mean of fewer blocks is the less noisy, whatever their length."""
SIZES_APART = 1.5
"""Standard deviation of the logarithm of leaves' sizes, where a choice expects errors."""
SEEN_DAYS = 56
"""Of blocks that are known of a leaf, likewise."""
NODES_OF_SIZES = 40


def small_leaf_level(tree: AggregationTree, public: Figures, level_shares: Sequence[Fraction]) -> int | None:
    """Return the deepest level where its leaves are small counts; else None. Privacy: public figures alone.

    Small is a leaf of the public `scale` whose noise, in one block a window, is more than `SMALL` of it;
    where readings are no counts, or have no scale, no leaf is known to be small. The level above must be
    measured, and every leaf above, for small leaves are shares of what is known there.
    """
    deepest = tree.n_levels - 1
    noise = public.relative_noise
    if public.count is None or noise is None or not deepest or not level_shares[deepest - 1]:
        return None
    return deepest if noise / level_shares[deepest] > SMALL else None


def small_blocks(window_length: int) -> tuple[int, int]:
    """Return (m, L) of small leaves: how many blocks a window has, and their steps. Privacy: public figures
    alone.
    """
    return SMALL_BLOCKS, min(SMALL_LENGTH, window_length)


def tree_of_common_blocks(tree: AggregationTree, small: int | None) -> AggregationTree:
    """Return the tree of the levels that are measured at common blocks: all, or those above `small`; free."""
    return tree if small is None else tree_above(tree, small)


def figures_above(public: Figures, tree: AggregationTree, above: AggregationTree) -> Figures:
    """Return the figures by which the blocks of the levels above are chosen: with the relative noise of a
    leaf of the tree `above`, the first levels of `tree`; free.
    """
    leaf = typical_above(tree, above, 1.0)
    if public.relative_noise is None or leaf is None:
        return public
    count = None if public.count is None else public.count * leaf
    return replace(public, relative_noise=public.relative_noise / leaf, count=count)


def expected_small_error(public: Figures, share: Fraction) -> float:
    """Return the error that is expected of small leaves, relative to the size of a typical one; free.

    The mean over log-normal sizes of the root of what a count varies, and of what `SEEN_DAYS` of blocks leave
    open about its size. 0 everywhere would miss by 1. share: of epsilon, the level's.
    """
    assert public.count is not None
    at, weights = np.polynomial.hermite_e.hermegauss(NODES_OF_SIZES)
    sizes = np.exp(SIZES_APART * at - SIZES_APART**2 / 2)
    windows = max(SEEN_DAYS * public.steps_per_day / public.window_length, 1.0)
    unsure = public.noise(SMALL_BLOCKS, float(share)) / windows
    missed = np.sqrt(sizes / public.count + sizes**2 * unsure / (sizes**2 + unsure))
    return float(weights @ missed / weights.sum())

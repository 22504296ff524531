"""What is measured of a tree: blocks and level shares with the least error that the prior expects.

Functions of public figures: epsilon, alpha, a leaf's public size, the tree. They cost no privacy.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.blocks import Blocks as Steps
from optstream.estimation.gaussian_process.expected_error import expected_level_errors
from optstream.mechanisms.history_informed.block_choice import Blocks, Figures, best_blocks, planned_blocks
from optstream.mechanisms.history_informed.small_counts import (
    expected_small_error,
    figures_above,
    small_leaf_level,
    tree_of_common_blocks,
)
from optstream.stream import AggregationTree

MOVES = (Fraction(1, 4), Fraction(1, 8), Fraction(1, 16), Fraction(1, 32))
"""Parts of epsilon that are tried in other hands, largest first."""
LEAST = Fraction(1, 32)
"""Of a level that holds leaves: nothing else would tell them apart."""
BETTER, WORTH_IT = 0.01, 0.03
"""Relative: a gain below the first is none; what gains less than the second over equal shares is within what
a general prior can tell, and equal ones are kept."""
Shares = tuple[Fraction, ...]
Floats = NDArray[np.float64]


@lru_cache(maxsize=256)
def choose_tree_blocks(tree: AggregationTree, public: Figures, shares: Shares) -> Blocks:
    """Return (m, L) for all levels, what is given of them as it is; as `expected_error_of` judges.

    A tree bears more blocks than one series with the same noise: its leaves tell of each other.
    """
    return best_blocks(lambda *blocks: expected_error_of(tree, public, shares, blocks), public)


@lru_cache(maxsize=64)
def choose_level_shares(tree: AggregationTree, public: Figures) -> Shares:
    """Return one share for each level, root first, that add up to 1.

    public: its relative noise is that of all of epsilon in one block of a window, relative to a leaf's size.
    The measure is the geometric mean of `expected_level_misses`; by it equal shares are never better. The
    search begins with the best of some simple shares. A level without leaves may get nothing, and is then
    derived.
    """

    def blocks_of(shares: Shares) -> Blocks:
        return choose_plan_blocks(tree, public, shares)

    def error(shares: Shares, blocks: Blocks) -> float:
        return float(np.exp(np.log(expected_level_misses(tree, public, shares, blocks)).mean()))

    equal, *others = _simple(tree)
    best = min((equal, *others), key=lambda shares: error(shares, blocks_of(shares)))
    blocks = blocks_of(best)
    least = error(best, blocks)
    for move in MOVES:
        while True:
            found = min(
                ((error(one, blocks), one) for one in _moved(best, move, tree)), default=(least, best)
            )
            if not found[0] < least * (1.0 - BETTER):  # nor for what is no number
                break
            # the blocks follow the shares: with them it is no worse
            best, blocks = found[1], blocks_of(found[1])
            least = min(found[0], error(best, blocks))
    gain = 1.0 - error(best, blocks_of(best)) / error(equal, blocks_of(equal))
    return best if gain > WORTH_IT else equal


def expected_error_of(tree: AggregationTree, public: Figures, shares: Shares, blocks: Blocks) -> float:
    """Return the geometric mean over levels of a node's expected root mean square error, relative to its
    size.

    Geometric, so that a part of the error counts alike at every level: a nation's is much smaller than a
    leaf's, and a plain mean would give it away. Leaves are taken to be of one size. Of counts it holds what
    they vary around their expectation, as far as it is not measured.
    """
    return float(np.exp(np.log(_posterior_errors(tree, public, shares, blocks)).mean()))


def choose_plan_blocks(tree: AggregationTree, public: Figures, shares: Shares) -> Blocks:
    """Return (m, L) of the levels that are measured at common blocks, as `choose_tree_blocks`."""
    above = tree_of_common_blocks(tree, small_leaf_level(tree, public, shares))
    return choose_tree_blocks(above, figures_above(public, tree, above), shares[: above.n_levels])


@lru_cache(maxsize=4096)
def expected_level_misses(tree: AggregationTree, public: Figures, shares: Shares, blocks: Blocks) -> Floats:
    """Return for each level a node's expected root mean square error, relative to its size, (n_levels,).

    As `expected_error_of`, level by level; small leaves by `expected_small_error`. blocks: of the levels that
    share theirs.
    """
    small = small_leaf_level(tree, public, shares)
    above = tree_of_common_blocks(tree, small)
    figures = figures_above(public, tree, above)
    errors = _posterior_errors(above, figures, shares[: above.n_levels], blocks)
    if small is None:
        return errors
    return np.append(errors, expected_small_error(public, shares[small]))


def misses_unmeasured(tree: AggregationTree, public: Figures) -> Floats:
    """Return what the prior alone leaves open of a node of each level, relative to its size, (n_levels,).

    What `expected_level_misses` would be if nothing were measured: by the public scale alone.
    """
    shared, own = public.prior.variances(Steps.at(np.zeros(1, dtype=np.int64)))
    leaves = leaves_by_level(tree)
    of_counts = 0.0 if public.count is None else 1.0 / (public.count * leaves)
    return np.asarray(np.sqrt(shared + own / leaves + of_counts))


def expected_figures(tree: AggregationTree, public: Figures, shares: Shares, scale: float | None) -> Floats:
    """Return `Mechanism.expected_by_level` of a tree whose typical leaf has the public size `scale`."""
    if scale is None:
        return np.full((tree.n_levels, 3), np.nan)
    missed = expected_level_misses(tree, public, shares, choose_plan_blocks(tree, public, shares))
    blind = np.minimum(misses_unmeasured(tree, public), 1.0)
    sizes = scale * leaves_by_level(tree)
    return np.stack([missed * sizes, sizes, blind * sizes], axis=1)


def leaves_by_level(tree: AggregationTree) -> Floats:
    """Return how many leaves a node of each level covers on average, (n_levels,)."""
    return np.array([tree.leaves_below[level.start : level.stop].mean() for level in tree.levels])


@lru_cache(maxsize=4096)
def _posterior_errors(tree: AggregationTree, public: Figures, shares: Shares, blocks: Blocks) -> Floats:
    noise = public.noises(blocks, [float(share) for share in shares])
    errors = expected_level_errors(planned_blocks(public, *blocks), tree, noise)
    if public.count is None:
        return errors
    leaves = leaves_by_level(tree)
    variances = np.array([np.inf if one is None else one.variance for one in noise]) / leaves**2
    return _of_counts(errors, 1.0 / (public.count * leaves), variances, blocks, public.window_length)


def _of_counts(errors: Floats, counted: Floats, noise: Floats, blocks: Blocks, window_length: int) -> Floats:
    """Return what counts are expected to miss by, of what expectations do, all relative to a node's size.

    A step that is measured tells how its count varied, by `count_variation`; others do not. counted: variance
    of a count. noise: of a block's mean, of the node's own measurement alone.
    """
    n_blocks, length = blocks
    told = counted / (length * (counted + length * noise))
    measured = n_blocks * length / window_length
    doubted = 1.0 - told if length == 1 else 1.0
    known = errors**2 * doubted + counted * (1.0 - told)
    return np.asarray(np.sqrt(measured * known + (1.0 - measured) * (errors**2 + counted)))


def _simple(tree: AggregationTree) -> list[Shares]:
    """Return a plan of equal shares; twice as much from level to level, downwards and upwards; all for levels
    with leaves.
    """
    with_leaves = {int(tree.depths[leaf]) for leaf in tree.leaf_indices}
    rows = [[1] * tree.n_levels, [2**level for level in range(tree.n_levels)]]
    rows += [rows[1][::-1], [int(level in with_leaves) for level in range(tree.n_levels)]]
    return [tuple(Fraction(weight, sum(row)) for weight in row) for row in rows]


def _moved(shares: Shares, move: Fraction, tree: AggregationTree) -> Iterator[Shares]:
    """Yield the shares with so much taken from one level and given to another."""
    with_leaves = {int(tree.depths[leaf]) for leaf in tree.leaf_indices}
    for giver, taker in permutations(range(len(shares)), 2):
        left = shares[giver] - min(move, shares[giver])
        if shares[giver] and (left >= LEAST if giver in with_leaves else True):
            moved = list(shares)
            moved[taker] += shares[giver] - left
            moved[giver] = left
            yield tuple(moved)

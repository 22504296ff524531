"""Sizes of small leaves that add up to what is known of the nodes above them."""

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def joined_sizes(
    sizes: Floats, doubts: Floats, parents: Integers, tree: AggregationTree, means: Floats, unsure: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return leaves' sizes, each known by itself, joined with what the nodes above say of their sums.

    What hundreds of small sizes add up to would be off by the noise of all, on every day alike, where a city
    is known by its own blocks. By least squares: with D the sum of siblings' variances d, and v that of their
    parent's mean by all else, their sum takes D / (D + v) of what it lacks, each leaf in proportion to d.
    Their covariance is then diag(d) - u u', u = d / sqrt(D + v). Costs no privacy: noisy numbers only.

    sizes, doubts: (n_leaves,), each known by itself, and d. parents: (n_leaves,), their nodes in `tree`, the
    levels above. means, unsure: (n_nodes,), mean values of its nodes and their variances. Returns sizes, at
    least 0, their variances, and u, (n_leaves,) each.
    """
    total, spread = (np.asarray(np.bincount(parents, one, len(means)), float) for one in (sizes, doubts))
    told, variances = _by_all_else(tree, means, unsure, total, spread)
    share = doubts / (spread + variances)[parents]
    found = np.maximum(sizes + share * (told - total)[parents], 0.0)
    return found, doubts * (1.0 - share), np.sqrt(doubts * share)


def _by_all_else(
    tree: AggregationTree, means: Floats, unsure: Floats, total: Floats, spread: Floats
) -> tuple[Floats, Floats]:
    """Return what is known of each node without the leaves below it, and its variance, (n_nodes,) each.

    Upwards a node is joined with the sum of its children, downwards with what its parent is by all else, less
    its siblings. total, spread: (n_nodes,), sums of the leaves right below and their variances.
    """
    above, total, spread = np.array(tree.parents), total.copy(), spread.copy()
    joined, left = means.copy(), unsure.copy()
    for level in reversed(tree.levels):
        at = slice(level.start, level.stop)
        below = np.where(spread[at] > 0.0, spread[at], np.inf)
        left[at] = 1.0 / (1.0 / unsure[at] + 1.0 / below)
        joined[at] += left[at] / below * (total[at] - means[at])
        if level.start:
            np.add.at(total, above[at], joined[at])
            np.add.at(spread, above[at], left[at])
    told, variances = means.copy(), unsure.copy()
    for level in tree.levels[1:]:
        at, up = slice(level.start, level.stop), above[level.start : level.stop]
        others = variances[up] + spread[up] - left[at]
        variances[at] = 1.0 / (1.0 / unsure[at] + 1.0 / others)
        told[at] += variances[at] / others * (told[up] - total[up] + joined[at] - means[at])
    return told, variances

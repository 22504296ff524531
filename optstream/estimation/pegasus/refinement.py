"""Groups of a tree's inner nodes from the groups below them."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree


def refine(
    groups: Mapping[int, Sequence[Sequence[int]]], tree: AggregationTree, n_steps: int
) -> NDArray[np.int64]:
    """Return for every node and step the running index of the first step of its group, (n_nodes, n_steps).

    groups: {level: for each of its nodes the same}, of the levels that have groups of their own; every level
    that holds leaves is among them. A node of another level has the coarsest groups in which no group of a
    child is cut: two steps share one if they share one in every child. Groups are runs of steps, so such a
    group begins with the latest of the children's.

    Where every child is flat, so is their sum: its deviation is at most the sum of theirs. The reverse does
    not hold, for what one child loses another may gain, so nothing is handed down. Costs no privacy: groups
    are released.
    """
    begins = np.full((len(tree.nodes), n_steps), np.iinfo(np.int64).min)
    parents = np.array(tree.parents)
    for level in reversed(range(tree.n_levels)):
        nodes = tree.levels[level]
        if level in groups:
            begins[nodes] = groups[level]
        else:
            below = tree.levels[level + 1]
            np.maximum.at(begins, parents[below], begins[below])
    return begins

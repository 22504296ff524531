"""The leaves of a tree family by family, and its inner nodes by number."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Families:
    """A tree as passes over its inner nodes need it: what follows of a leaf goes to its parent at once.

    Attributes:
        leaves: (n_leaves,), places in `tree.nodes`, those of one parent in a row.
        family: (n_leaves,), the number of each leaf's parent among the inner nodes; 0 for a tree of one leaf.
        inner: (n_inner,), the inner nodes' places in `tree.nodes`.
        up: (n_inner,), the number of each one's parent, -1 for the root's.
        levels: numbers of inner nodes, level by level, root first.
    """

    leaves: Integers
    family: Integers
    inner: Integers
    up: Integers
    levels: tuple[Integers, ...]

    @classmethod
    def of(cls, tree: AggregationTree) -> "Families":
        """Return the families of a tree, whose leaves may lie at different depths. Time is linear in nodes
        but for one stable sort.
        """
        parents, leaves = np.array(tree.parents), tree.leaf_indices
        is_inner = np.ones(len(tree.nodes), dtype=bool)
        is_inner[leaves] = False
        inner, number = np.flatnonzero(is_inner), np.cumsum(is_inner) - 1
        order = leaves[np.argsort(parents[leaves], kind="stable")]
        family = number[parents[order]] if inner.size else np.zeros(1, dtype=np.int64)
        nodes = (np.arange(level.start, level.stop) for level in tree.levels)
        levels = tuple(found for level in nodes if (found := number[level[is_inner[level]]]).size)
        return cls(order, family, inner, np.where(inner > 0, number[parents[inner]], -1), levels)

    def add_up(self, own: Floats) -> Floats:
        """Return sums over all leaves below each inner node, (n_inner, …), of those over its own leaves."""
        totals = own.copy()
        for level in reversed(self.levels[1:]):
            np.add.at(totals, self.up[level], totals[level])
        return totals

    def own_parts(self, totals: Floats) -> Floats:
        """Return what each inner node adds itself, (n_inner, …), to sums over itself and all above it."""
        above = totals[np.maximum(self.up, 0)].copy()
        above[self.up < 0] = 0.0
        return np.asarray(totals - above)

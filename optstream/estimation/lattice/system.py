"""The linear system of a lattice: one unknown for each measured node above the cells."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.stream.lattice import Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_APART = 2.0**36
"""How much larger a cell's variance may be than the least of a node above: a sum of both must show both."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The nodes of a lattice as its system takes them apart.

    Attributes:
        leaves: (n_leaves,), places in `nodes`.
        family: (n_leaves,), the number of each leaf's parent among the families.
        member: (n_leaves,), the number of each leaf's node of the margin.
        families: Places of the leaves' parents, in `nodes`.
        rest: Places of all other nodes above the leaves: the tree's upper ones, then the margin's.
        upper: (n_upper, n_families), 1 where an upper node holds a family.
    """

    leaves: Integers
    family: Integers
    member: Integers
    families: Integers
    rest: Integers
    upper: Floats

    def above(self, of_families: Floats, of_rest: Floats) -> Floats:
        """Return for each leaf the sum over all nodes that hold it, (n_leaves, …)."""
        n_upper = len(self.upper)
        through = of_families + np.tensordot(self.upper.T, of_rest[:n_upper], axes=1)
        return np.asarray(through[self.family] + of_rest[n_upper:][self.member])

    def sums(self, of_leaves: Floats) -> tuple[Floats, Floats]:
        """Return the families' and the rest's sums over the leaves, from (n_leaves, …)."""
        columns = of_leaves.shape[1:]
        families, margin = np.zeros((len(self.families), *columns)), np.zeros((self.n_margin, *columns))
        np.add.at(families, self.family, of_leaves)
        np.add.at(margin, self.member, of_leaves)
        return families, np.concatenate([np.tensordot(self.upper, families, axes=1), margin])

    @property
    def n_margin(self) -> int:
        """How many nodes the margin has."""
        return len(self.rest) - len(self.upper)


@lru_cache(maxsize=16)
def parts_of(lattice: Lattice) -> Parts:
    """Return a lattice's parts; kept, for they are the same for every step."""
    tree = lattice.tree
    bottom, families = tree.levels[-1], tree.levels[-2]
    parents = np.array(tree.parents)
    upper = np.zeros((families.start, len(families)))
    holder = np.arange(families.start, families.stop)
    while holder[0] > 0:
        holder = parents[holder]
        upper[holder, np.arange(len(families))] = 1.0
    return Parts(
        leaves=np.arange(bottom.start, bottom.stop),
        family=parents[bottom.start : bottom.stop] - families.start,
        member=np.array(lattice.members, dtype=np.int64),
        families=np.arange(families.start, families.stop),
        rest=np.concatenate([np.arange(families.start), np.array(lattice.margin_nodes)]),
        upper=upper,
    )


class System:
    """K = V + A D A', the normal matrix of the nodes above the cells, solved without a matrix of cells.

    V: their own variances, where they are measured. A: which cells each holds. D: the cells' variances, 0 for
    a cell that is held to a value. A cell lies in one family, so the families' part of K is diagonal; they
    are eliminated, and what is left is dense, of the upper nodes and the margin's: the Schur complement.

    Args:
        parts: Of the lattice.
        weights: (n_nodes,), 1 / variance, 0 where a node was not measured.
        free: (n_leaves,), D.
    """

    def __init__(self, parts: Parts, weights: Floats, free: Floats) -> None:
        self.parts, self.free = parts, free
        n_upper, n_families = parts.upper.shape
        of_families, of_rest = weights[parts.families], weights[parts.rest]
        self.known = of_rest > 0
        self.known_families = of_families > 0
        place = parts.family * parts.n_margin + parts.member
        crossed = np.bincount(place, free, minlength=n_families * parts.n_margin)
        crossed = crossed.reshape(n_families, parts.n_margin)
        self.totals = crossed.sum(axis=1)
        self.across = np.hstack([parts.upper.T * self.totals[:, None], crossed])
        own = np.zeros((len(parts.rest), len(parts.rest)))
        own[:n_upper, :n_upper] = (parts.upper * self.totals) @ parts.upper.T
        own[:n_upper, n_upper:] = parts.upper @ crossed
        own[n_upper:, :n_upper] = own[:n_upper, n_upper:].T
        own[n_upper:, n_upper:] = np.diag(crossed.sum(axis=0))
        self.own = own
        with np.errstate(divide="ignore"):
            self.diagonal = np.where(self.known_families, 1.0 / of_families, np.inf) + self.totals
        self.scaled = (self.across / self.diagonal[:, None])[:, self.known]
        left = own[np.ix_(self.known, self.known)] - self.across[:, self.known].T @ self.scaled
        self.schur = left + np.diag(1.0 / of_rest[self.known])

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of the Schur complement, of the measured nodes of the rest."""
        return np.linalg.inv(self.schur) if len(self.schur) else self.schur

    def solve(self, of_families: Floats, of_rest: Floats) -> tuple[Floats, Floats]:
        """Return K^-1 of a vector, or of columns: for families and for the rest, 0 where not measured."""
        column = (slice(None),) + (None,) * (of_families.ndim - 1)
        first = of_families / self.diagonal[column]
        found = np.zeros_like(of_rest)
        if len(self.schur):
            right = of_rest[self.known] - self.across[:, self.known].T @ first
            found[self.known] = np.linalg.solve(self.schur, right)
        return first - self.scaled @ found[self.known], found


def leaf_variances(weights: Floats, parts: Parts) -> Floats:
    """Return the cells' variances, (n_leaves, …); those that are as good as unknown are cut (`MOST_APART`).

    weights: (n_nodes, …), 1 / variance, above 0 at the cells.
    """
    others = np.concatenate([weights[parts.families], weights[parts.rest]]).max(axis=0)
    with np.errstate(divide="ignore"):
        limit = np.where(others > 0, MOST_APART / others, np.inf)
    return np.asarray(np.minimum(1.0 / weights[parts.leaves], limit))

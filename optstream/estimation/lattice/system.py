"""The linear system of a lattice: one unknown for each measured node above the cells, or one a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.stream.lattice import Lattice

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REFINED = 2
"""How often what is left of the equations is solved for: rounding errors of a matrix with held nodes go."""
MOST_APART = 2.0**36
"""How much larger a cell's variance may be than the least of a node above: a sum of both must show both."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The nodes of a lattice as its system takes them apart.

    Attributes:
        leaves: (n_leaves,), places in `nodes`.
        above: Places of all others: the leaves' parents (the families), then the rest, which are the tree's
            upper nodes and the margin's.
        n_families: How many of `above` are families.
        family: (n_leaves,), the number of each leaf's parent among the families.
        member: (n_leaves,), the number of each leaf's node of the margin among the rest.
        upper: (n_families, n_rest), 1 where an upper node holds a family.
        holds: (n_above, n_leaves), which leaves each node holds.
        across: (n_families * n_rest, n_leaves), which leaves a family shares with each of the rest.
        among: (n_rest^2, n_leaves), which leaves two of the rest share.
    """

    leaves: Integers
    above: Integers
    n_families: int
    family: Integers
    member: Integers
    upper: Floats
    holds: "csr_array"
    across: "csr_array"
    among: "csr_array"

    def pulled(self, of_above: Floats) -> Floats:
        """Return for each leaf the sum over all nodes that hold it, (n_leaves, …)."""
        return _times(self.holds.T, of_above)

    def sums(self, of_leaves: Floats) -> Floats:
        """Return each node's sum over its leaves, (n_above, …)."""
        return _times(self.holds, of_leaves)


@lru_cache(maxsize=16)
def parts_of(lattice: Lattice) -> Parts:
    """Return a lattice's parts; kept, for they are the same for every step."""
    tree, parents = lattice.tree, np.array(lattice.tree.parents)
    bottom, families = tree.levels[-1], tree.levels[-2]
    n_families, n_rest = len(families), families.start + len(lattice.margin_nodes)
    holder = parents[bottom.start : bottom.stop]
    family, rest = holder - families.start, []
    while holder[0] > 0:
        holder = parents[holder]
        rest.append(holder)
    upper = np.zeros((n_families, n_rest))
    for one in rest:
        upper[family, one] = 1.0
    rest.append(families.start + np.array(lattice.members, dtype=np.int64))
    return Parts(
        leaves=np.arange(bottom.start, bottom.stop),
        above=np.array([*families, *range(families.start), *lattice.margin_nodes]),
        n_families=n_families,
        family=family,
        member=rest[-1],
        upper=upper,
        holds=_adding([family, *(n_families + one for one in rest)], n_families + n_rest),
        across=_adding([family * n_rest + one for one in rest], n_families * n_rest),
        among=_adding([one * n_rest + other for one in rest for other in rest], n_rest**2),
    )


class Joined:
    """A X A' in blocks, for a matrix X of each cell, A being which cells each node holds.

    A cell lies in one family, so families have nothing in common; the rest have.

    Attributes:
        totals: (b, n_families, k, k), of each family alone.
        across: (b, n_families, k, n_rest * k), of each family with all of the rest.
        own: (b, n_rest * k, n_rest * k), of the rest.
    """

    def __init__(self, parts: Parts, of_leaves: Floats) -> None:
        """Join what each cell has, (n_leaves, b, k, k)."""
        n, (_, b, k, _) = parts.n_families, of_leaves.shape
        m = len(parts.above) - n
        self.totals = np.moveaxis(_times(parts.holds[:n], of_leaves), 1, 0)
        across = _times(parts.across, of_leaves).reshape(n, m, b, k, k)
        self.across = across.transpose(2, 0, 3, 1, 4).reshape(b, n, k, m * k)
        own = _times(parts.among, of_leaves).reshape(m, m, b, k, k)
        self.own = own.transpose(2, 0, 3, 1, 4).reshape(b, m * k, m * k)


class System:
    """(1 + P A D A') mu = P right: what nodes above the cells pull, where they miss `right`.

    It is K mu = right with K = P^-1 + A D A', and a node that was not measured, P = 0, pulls nothing. P: the
    nodes' own precisions. A: which cells each holds. D: the cells' covariances, 0 where a cell is held to a
    value. Families are eliminated, one by one; what is left is dense, of the upper nodes and the margin's:
    the Schur complement. Each node has k values: 1 where steps are problems by themselves, else all steps.

    Args:
        parts: Of the lattice.
        precision: (n_above, b, k, k), P, in the order of `parts.above`; b problems side by side.
        free: (n_leaves, b, k, k), D.

    Attributes:
        joined: A D A'.
        gain: (b, n_families, k, k), K^-1 of a family alone.
        scaled: (b, n_families, k, n_rest * k), the same times what it shares with the rest.
        left: (b, n_rest * k, n_rest * k), A D A' of the rest, families eliminated.
    """

    def __init__(self, parts: Parts, precision: Floats, free: Floats) -> None:
        self.parts, self.free, self.joined = parts, free, Joined(parts, free)
        n, (_, b, k, _) = parts.n_families, precision.shape
        own = np.moveaxis(precision, 1, 0)
        self.own = own[:, n:]
        self.gain = _solved(np.eye(k) + own[:, :n] @ self.joined.totals, own[:, :n])
        self.scaled = self.gain @ self.joined.across
        self.left = self.joined.own - flat_t(self.joined.across) @ flat(self.scaled)
        size = self.left.shape[-1]
        self.matrix = np.eye(size) + (self.own @ self.left.reshape(b, -1, k, size)).reshape(b, size, size)

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of the Schur complement, (b, n_rest * k, n_rest * k), 0 for what was not measured."""
        b, m, k, _ = self.own.shape
        own = np.zeros((b, m, k, m, k))
        every = np.arange(m)
        own[:, every, :, every] = np.moveaxis(self.own, 1, 0)
        return np.asarray(np.linalg.solve(self.matrix, own.reshape(b, m * k, m * k)))

    def solve(self, right: Floats) -> Floats:
        """Return mu, (n_above, b, k, c), for c right sides (n_above, b, k, c)."""
        n, (b, m, k, _) = self.parts.n_families, self.own.shape
        moved = np.moveaxis(right, 1, 0)
        first = self.gain @ moved[:, :n]
        rest = moved[:, n:] - (flat_t(self.joined.across) @ flat(first)).reshape(b, m, k, -1)
        found = np.linalg.solve(self.matrix, flat(self.own @ rest))
        families = first - self.scaled @ found[:, None]
        return np.moveaxis(np.concatenate([families, found.reshape(b, m, k, -1)], axis=1), 1, 0)

    def refined(self, right: Floats, variances: Floats) -> Floats:
        """Return `solve`, what rounding errors leave of the equations solved for again (`REFINED`).

        right: as `solve`, 0 where a node was not measured. variances: (n_above, b, k, k), P^-1, 0 there.
        """
        found, left = np.zeros_like(right), right
        seen = (variances[..., 0, 0] > 0)[..., None, None]
        for _ in range(1 + REFINED):
            step = self.solve(left)
            found += step
            moved = self.parts.sums(self.free @ self.parts.pulled(step))
            left = np.where(seen, left - moved - variances @ step, 0.0)
        return found


def flat(blocks: Floats) -> Floats:
    """Return (b, n, k, …) as (b, n * k, …)."""
    return blocks.reshape(blocks.shape[0], -1, blocks.shape[-1])


def flat_t(blocks: Floats) -> Floats:
    """Return the transpose of `flat`."""
    return np.swapaxes(flat(blocks), -1, -2)


def inverses(precision: Floats) -> Floats:
    """Return the inverse of each matrix, (…, k, k), 0 of one that is 0."""
    seen = precision[..., 0, 0] > 0
    found = np.zeros_like(precision)
    found[seen] = np.linalg.inv(precision[seen]) if precision.shape[-1] > 1 else 1.0 / precision[seen]
    return found


def known_enough(weights: Floats, parts: Parts) -> Floats:
    """Return weights (n_nodes, …), those of cells that are as good as unknown raised (`MOST_APART`).

    weights: 1 / variance, above 0 at the cells.
    """
    found = weights.copy()
    least = weights[parts.above].max(axis=0) / MOST_APART
    found[parts.leaves] = np.maximum(weights[parts.leaves], least)
    return found


def _solved(matrices: Floats, right: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrices, right) if matrices.shape[-1] > 1 else right / matrices)


def _adding(rows: Sequence[Integers], n_rows: int) -> "csr_array":
    n_leaves = len(rows[0])
    columns = np.tile(np.arange(n_leaves), len(rows))
    # a command that tells its help needs none of it
    from scipy.sparse import csr_array

    return csr_array((np.ones(columns.size), (np.concatenate(rows), columns)), shape=(n_rows, n_leaves))


def _times(matrix: "csr_array", values: Floats) -> Floats:
    found = matrix @ np.ascontiguousarray(values).reshape(values.shape[0], -1)
    return np.asarray(found).reshape(-1, *values.shape[1:])

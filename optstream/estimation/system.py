"""Independent leaves, with sums measured along a tree and a margin: exact, by two passes."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree, Lattice

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REFINED = 2  # rounds of iterative refinement with a margin, for nodes that are known far better than cells
MOST_APART = 2.0**36
"""With a margin, how much larger a cell's variance may be than the least of a node above it."""
MOST_RATIO = 2.0**20
"""With a margin: most ratio of a cell's variance to the least above it; subtraction errs with its square."""
SAME = 1e-9  # relative: weights and variances that differ by less are the same
SMALL = 2.0**-80
"""Imaginary part of a precision, relative to the real one, for a derivative by a complex step."""


@dataclass(frozen=True, eq=False)
class Holders:
    """The nodes above each leaf. leaves: places in `tree.nodes`, those with the same holders in a row.
    family, member: of each leaf, the number of its parent among the inner nodes and of its node of the
    margin; 0 without one. above: places of the inner nodes, then of the `n_margin` nodes of the margin. up:
    the number of each inner node's parent, -1 for the root's. levels: numbers of inner nodes, level by level,
    root first."""

    leaves: Integers
    family: Integers
    member: Integers
    above: Integers
    up: Integers
    levels: tuple[Integers, ...]
    n_margin: int

    @cached_property
    def group(self) -> Integers:
        """The number of each leaf's group, (n_leaves,): leaves of a group have the same holders."""
        other = (np.diff(self.family) != 0) | (np.diff(self.member) != 0)
        return np.concatenate([[0], np.cumsum(other)])

    @cached_property
    def groups(self) -> "Holders":
        """The same with groups for leaves."""
        first = np.searchsorted(self.group, np.arange(self.group[-1] + 1))
        return replace(self, leaves=self.leaves[first], family=self.family[first], member=self.member[first])

    @cached_property
    def adding(self) -> tuple["csr_array", "csr_array", "csr_array"]:
        """Matrices from leaves to their families, to the margin's nodes, and to pairs of both."""
        from scipy.sparse import csr_array  # which a command's help does not wait for

        n, n_leaves = len(self.up), len(self.family)
        pair = self.family * self.n_margin + self.member
        sizes = ((self.family, n), (self.member, self.n_margin), (pair, n * self.n_margin))
        every = np.arange(n_leaves)
        found = [
            csr_array((np.ones(n_leaves), (rows, every)), shape=(size, n_leaves))
            if size
            else csr_array((size, n_leaves))
            for rows, size in sizes
        ]
        return found[0], found[1], found[2]

    def sums(self, of_leaves: Floats) -> Floats:
        """Return each node's sum over its leaves, (n_above, …)."""
        to_families, to_margin, _ = self.adding
        found = times(to_families, of_leaves)
        for level in reversed(self.levels[1:]):
            np.add.at(found, self.up[level], found[level])
        return np.concatenate([found, times(to_margin, of_leaves)]) if self.n_margin else found

    def pulled(self, of_above: Floats) -> Floats:
        """Return each leaf's sum over the nodes above it, (n_leaves, …)."""
        totals = of_above[: len(self.up)].copy()
        for level in self.levels[1:]:
            totals[level] += totals[self.up[level]]
        return self.at_leaves(totals, of_above[len(self.up) :])

    def at_leaves(self, of_families: Floats, of_margin: Floats) -> Floats:
        """Return each leaf's family's values plus its margin's, (n_leaves, …)."""
        if not len(self.up):
            return np.zeros((len(self.family), *of_families.shape[1:]))
        found = of_families[self.family]
        return found + of_margin[self.member] if self.n_margin else found


@lru_cache(maxsize=16)
def holders_of(tree: AggregationTree) -> Holders:
    """Return the holders of a tree's leaves, which may lie at different depths, or of a lattice's cells."""
    margin = tree if isinstance(tree, Lattice) else None
    base = margin.tree if margin else tree
    parents, leaves = np.array(base.parents), base.leaf_indices
    is_inner = np.ones(len(base.nodes), dtype=bool)
    is_inner[leaves] = False
    inner, number = np.flatnonzero(is_inner), np.cumsum(is_inner) - 1
    member = np.array(margin.members if margin else np.zeros(len(leaves)), dtype=np.int64)
    order = np.lexsort((member, parents[leaves]))
    family = number[parents[leaves[order]]] if inner.size else np.zeros(1, dtype=np.int64)
    nodes = (np.arange(level.start, level.stop) for level in base.levels)
    levels = tuple(found for level in nodes if (found := number[level[is_inner[level]]]).size)
    above = np.array([*inner, *(margin.margin_nodes if margin else ())], dtype=np.int64)
    up = np.where(inner > 0, number[parents[inner]], -1)
    return Holders(leaves[order], family, member[order], above, up, levels, len(above) - len(inner))


class System:
    """(V + A D A') mu = right: the multipliers of the nodes above the leaves, for residuals `right`.

    V: the noise of nodes above, P^-1; mu = 0 where a node was not measured, P = 0. A: which leaves each node
    holds. D: the leaves' covariances, (n_leaves, b, k, k) for b independent problems; 0 where one is fixed.
    Each node has k values: 1 where steps are problems by themselves, else all steps.

    Upwards a node's sum over its leaves, of covariance B, and C with the margin's sums, meets its own
    measurement: G = (V + B)^-1, T = G V, and T' B and T' C remain. The margin's nodes, last, are one dense
    block. Downwards the pull from above becomes G (right - mean) + T pull - G C f, with f the margin's
    multipliers. Time linear in leaves. Source: Bryson and Frazier 1963 for the downward pass.
    """

    def __init__(self, holders: Holders, precision: Floats, free: Floats) -> None:
        self.holders, self.free = holders, free
        n, m, (_, b, k, _) = len(holders.up), holders.n_margin, free.shape
        self.seen = precision[:, 0, 0, 0] != 0
        self.noise = inverses(precision)
        to_families, to_margin, to_pairs = holders.adding
        self.below = times(to_families, free)
        self.cross = np.moveaxis(times(to_pairs, free).reshape(n, m, b, k, k), 1, 3).reshape(n, b, k, m * k)
        self.gain, self.kept = np.zeros_like(self.below), np.zeros_like(self.below)
        self.kept[:] = np.eye(k)
        self.scaled, last = np.zeros_like(self.cross), np.zeros((b, m, k, m, k), free.dtype)
        every = np.arange(m)
        last[:, every, :, every] = times(to_margin, free)
        self.last = last.reshape(b, m * k, m * k)
        for level in reversed(holders.levels):
            at = level[self.seen[level]]
            self.gain[at] = inverse(self.noise[at] + self.below[at])
            self.kept[at] = product(self.gain[at], self.noise[at])
            if m:
                self.scaled[at] = self.gain[at] @ self.cross[at]
                self.last = self.last - flat(self.cross[at]).mT @ flat(self.scaled[at])
            if level[0]:
                turned = self.kept[level].mT
                np.add.at(self.below, holders.up[level], product(turned, self.below[level]))
                if m:
                    np.add.at(self.cross, holders.up[level], turned @ self.cross[level])
        self.last_seen = np.flatnonzero(self.seen[n:])
        block = self.last.reshape(last.shape)[:, self.last_seen][:, :, :, self.last_seen]
        size = len(self.last_seen)
        block[:, np.arange(size), :, np.arange(size)] += self.noise[n:][self.last_seen]
        self.factor = block.reshape(b, size * k, size * k)

    @cached_property
    def margin(self) -> Floats:
        """The inverse of the margin's block, (b, m * k, m * k), 0 for nodes that were not measured."""
        m, (_, b, k, _), size = self.holders.n_margin, self.free.shape, len(self.last_seen)
        found = np.zeros((b, m, k, m, k), self.factor.dtype)
        solved = np.linalg.inv(self.factor).reshape(b, size, k, size, k)
        found[:, self.last_seen[:, None], :, self.last_seen] = np.moveaxis(solved, (1, 3), (0, 1))
        return found.reshape(self.last.shape)

    def solve(self, right: Floats) -> tuple[Floats, Floats]:
        """Return mu, (n_above, b, k, c), and its sum at each leaf, for c right sides (n_above, b, k, c)."""
        n, m, (_, b, k, c) = len(self.holders.up), self.holders.n_margin, right.shape
        up, means = self.holders.up, np.zeros((n, b, k, c))
        moves, mu, pulls = np.zeros_like(means), np.zeros_like(right), np.zeros_like(means)
        for level in reversed(self.holders.levels):
            moves[level] = product(self.gain[level], right[level] - means[level])
            if level[0]:
                np.add.at(means, up[level], means[level] + product(self.below[level], moves[level]))
        if m:
            left = flat(right[n:]) - flat(self.cross).mT @ flat(moves)
            last = np.zeros((b, m, k, c))
            known = left.reshape(last.shape)[:, self.last_seen].reshape(b, -1, c)
            last[:, self.last_seen] = np.linalg.solve(self.factor, known).reshape(b, -1, k, c)
            mu[n:] = np.moveaxis(last, 1, 0)
            moves -= self.scaled @ last.reshape(b, m * k, c)
        for level in self.holders.levels:
            over = pulls[up[level]]
            pulls[level] = moves[level] + product(self.kept[level], over)
            mu[level] = moves[level] - product(self.gain[level], product(self.below[level], over))
        return mu, self.holders.at_leaves(pulls, mu[n:])

    def refined(self, right: Floats) -> tuple[Floats, Floats]:
        """Return `solve`, with a margin refined; right is 0 where a node was not measured."""
        mu, pulls = self.solve(right)
        for _ in range(REFINED if self.holders.n_margin else 0):
            moved = self.holders.sums(product(self.free, pulls)) + product(self.noise, mu)
            step, pull = self.solve(np.where(self.seen[:, None, None, None], right - moved, 0.0))
            mu, pulls = mu + step, pulls + pull
        return mu, pulls

    def variances(self) -> tuple[Floats, Floats]:
        """Return the variances given all measurements, (n_leaves, b, k) and (n_above, b, k)."""
        holders, n, m = self.holders, len(self.holders.up), self.holders.n_margin
        # nothing pulls at the root, whose parent -1 is a node that is still 0
        pulls, with_margin = np.zeros_like(self.below), np.zeros_like(self.cross)
        found = np.zeros((len(self.seen), *self.free.shape[1:3]), self.free.dtype)
        for level in holders.levels:
            turned = self.kept[level].mT
            below = product(turned, self.below[level])
            up = holders.up[level]
            over, across = pulls[up], with_margin[up]
            found[level] = np.linalg.diagonal(below) - form(product(below, over), below)
            pulls[level] = self.gain[level] + product(product(self.kept[level], over), turned)
            if m:
                cross, scaled = turned @ self.cross[level], self.scaled[level]
                through = self.cross[level] @ self.margin
                found[level] -= 2.0 * form(below @ across, cross) + form(turned @ through, cross)
                kept = self.kept[level] @ across
                mixed, forced = kept @ scaled.mT, self.gain[level] @ through
                pulls[level] += forced @ scaled.mT - mixed - mixed.mT
                with_margin[level] = kept - forced
        at_leaves = pulls[holders.family] if n else np.zeros_like(self.free)
        if m:
            b, _, k, _ = np.moveaxis(self.free, 1, 0).shape
            both = np.moveaxis(with_margin.reshape(n, b, k, m, k), 3, 1)[holders.family, holders.member]
            own = self.margin.reshape(b, m, k, m, k)[:, holders.member, :, holders.member]
            at_leaves = at_leaves + both + both.mT + own
            found[n:] = self._of_margin()
        return np.linalg.diagonal(self.free) - form(product(self.free, at_leaves), self.free), found

    def _of_margin(self) -> Floats:
        """Return the variances of the margin's nodes, (m, b, k)."""
        n, m, (_, b, k, _) = len(self.holders.up), self.holders.n_margin, self.free.shape
        through, every = self.margin @ self.last, np.arange(m)
        own = np.linalg.diagonal(self.noise[n:] @ through.reshape(b, m, k, m, k)[:, every, :, every])
        derived = np.linalg.diagonal(self.last) - form(self.last, through.mT)
        return np.where(self.seen[n:, None, None], own, np.moveaxis(derived.reshape(b, m, k), 1, 0))


def fit(values: Floats, precision: Floats, tree: AggregationTree) -> Floats:
    """Return the leaves, (n_leaves, b, k, c), that minimise sum_n (S z - values)_n' P_n (S z - values)_n.
    values: (n_nodes, b, k, c). P, `precision`: (n_nodes, b, k, k), 0 where a node was not measured."""
    holders = holders_of(tree)
    own, free = values[holders.leaves], inverses(precision[holders.leaves])
    system = System(holders, precision[holders.above], free)
    right = np.where(system.seen[:, None, None, None], values[holders.above] - holders.sums(own), 0.0)
    found = np.empty_like(own)
    found[np.searchsorted(tree.leaf_indices, holders.leaves)] = own + product(free, system.refined(right)[1])
    return found


def noise_through(precision: Floats, noise: Floats, tree: AggregationTree) -> Floats:
    """Return the variance that independent noise at the nodes leaves in each value of `fit`, (n_nodes, b, k).

    P_n f_n has covariance N_n. With G(P) the covariance of all values given precisions P, their noise is G N
    G' = -dG(P + h N)/dh, and the derivative is the imaginary part of G at an imaginary h. nan for problems
    with a noise that is nan, and with a margin where weights are not those of the noise and a cell is hardly
    known next to its nodes above (`MOST_RATIO`).
    Source: Squire and Trapp 1998, "Using complex variables to estimate derivatives of real functions".
    """
    holders, found = holders_of(tree), np.empty(precision.shape[:-1])
    unknown, seen = np.isnan(noise).any(axis=(0, 2, 3)), precision[..., 0, 0] > 0
    noise = np.nan_to_num(noise)
    most = float((np.linalg.diagonal(noise)[seen] / np.linalg.diagonal(precision)[seen]).max(initial=1e-300))
    moved = precision + 1j * (SMALL / most * noise)
    system = System(holders, moved[holders.above], inverses(moved[holders.leaves]))
    if holders.n_margin and not np.allclose(noise, precision, rtol=SAME, atol=0.0):
        largest = np.abs(system.free).max(axis=(0, 2, 3)) * precision[holders.above].max(axis=(0, 2, 3))
        unknown |= largest > MOST_RATIO
    of_leaves, of_above = (part.imag * (-most / SMALL) for part in system.variances())
    found[holders.leaves], found[holders.above] = of_leaves, of_above
    found[:, unknown] = np.nan
    return np.maximum(found, 0.0)


def known_enough(weights: Floats, tree: AggregationTree) -> Floats:
    """Return weights, 1 / variance, with those of practically unknown cells raised (`MOST_APART`)."""
    if not isinstance(tree, Lattice):
        return weights
    holders, found = holders_of(tree), weights.copy()
    least = weights[holders.above].max(axis=0) / MOST_APART
    found[holders.leaves] = np.maximum(weights[holders.leaves], least)
    return found


def inverses(precision: Floats) -> Floats:
    """Return the inverse of each node's matrices, (n, …, k, k), 0 of one that is 0."""
    seen = precision[..., 0, 0] != 0
    found = np.zeros_like(precision)
    found[seen] = inverse(precision[seen])
    return found


def inverse(matrices: Floats) -> Floats:
    """Return the inverses, of single numbers without numpy's cost of a call for each."""
    return np.asarray(np.linalg.inv(matrices) if matrices.shape[-1] > 1 else 1.0 / matrices)


def product(one: Floats, other: Floats) -> Floats:
    """Return the matrices' product, of single numbers likewise."""
    return np.asarray(one * other if one.shape[-1] == 1 else one @ other)


def form(left: Floats, right: Floats) -> Floats:
    return np.asarray((left * right).sum(axis=-1))


def flat(blocks: Floats) -> Floats:
    """Return (n, b, k, …) as (b, n * k, …)."""
    return np.moveaxis(blocks, 0, 1).reshape(blocks.shape[1], -1, blocks.shape[-1])


def times(matrix: "csr_array", values: Floats) -> Floats:
    """Return a sparse matrix times values, (n, …)."""
    found = matrix @ np.ascontiguousarray(values).reshape(values.shape[0], -1)
    return np.asarray(found).reshape(-1, *values.shape[1:])

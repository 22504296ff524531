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
"""Rounds of iterative refinement, against rounding errors of a matrix with fixed nodes."""
MOST_APART = 2.0**36
"""How much larger a cell's variance may be than the least of a node above: a sum of both must show both."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The nodes of a lattice as its system separates them.

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

    Families share no cell; the rest do.

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
    """(1 + P A D A') mu = P right: the multipliers of the nodes above the cells, for residuals `right`.

    It is K mu = right with K = P^-1 + A D A', and mu = 0 where a node was not measured, P = 0. P: the
    nodes' own precisions, (n_above, b, k, k) for b independent problems. A: which cells each holds. D: the
    cells' covariances, (n_leaves, b, k, k), 0 where a cell is fixed. Families are eliminated, one by one;
    the remaining Schur complement of the upper nodes and the margin's is dense. Each node has k values: 1
    where steps are problems by themselves, else all steps.

    Attributes:
        joined: A D A'.
        gain: (b, n_families, k, k), K^-1 of a family alone.
        scaled: (b, n_families, k, n_rest * k), `gain` times the family's part with the rest.
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
        """Return `solve` with iterative refinement; right and `variances`, P^-1, are 0 where P is."""
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
    """Return weights, 1 / variance, with those of practically unknown cells raised (`MOST_APART`)."""
    found = weights.copy()
    least = weights[parts.above].max(axis=0) / MOST_APART
    found[parts.leaves] = np.maximum(weights[parts.leaves], least)
    return found


def _solved(matrices: Floats, right: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrices, right) if matrices.shape[-1] > 1 else right / matrices)


def _adding(rows: Sequence[Integers], n_rows: int) -> "csr_array":
    n_leaves = len(rows[0])
    columns = np.tile(np.arange(n_leaves), len(rows))
    # the help of a command needs none of it
    from scipy.sparse import csr_array

    return csr_array((np.ones(columns.size), (np.concatenate(rows), columns)), shape=(n_rows, n_leaves))


def _times(matrix: "csr_array", values: Floats) -> Floats:
    found = matrix @ np.ascontiguousarray(values).reshape(values.shape[0], -1)
    return np.asarray(found).reshape(-1, *values.shape[1:])


# The estimate of a lattice without bound: exact, from one small system.


SAME = 1e-9
"""Relative: weights and variances that differ by less are the same."""


def reconcile_lattice(fitted: Floats, weights: Floats, lattice: Lattice) -> Floats:
    """Return the leaves, (…, n_leaves, n_columns), that minimise sum_n weights[n] (S z - fitted)_n^2.

    z = y + D A' K^-1 (x - A y), with y the cells' own values, x those of the nodes above, and the rest as in
    `System`: generalised least squares by its dual, which for complete products and a variance a level gives
    the means of the analysis of variance, and holds for any others too. Weights, (n_nodes, n_columns), are 0
    where a node was not measured, never at a cell. Time linear in cells.
    """
    n_nodes, n_columns = weights.shape
    weights = known_enough(weights, parts_of(lattice))
    values = np.moveaxis(fitted, (-2, -1), (0, 1))
    batch = values.shape[2:]
    if is_constant(weights):
        weights, own = weights[:, :1], values.reshape(n_nodes, 1, 1, -1)
    else:
        own = values.reshape(n_nodes, n_columns, 1, -1)
    found = _fit(own, weights[:, :, None, None], lattice)
    return np.moveaxis(found.reshape(-1, n_columns, *batch), (0, 1), (-2, -1))


def reconcile_series(fitted: Floats, precision: Floats, lattice: Lattice) -> Floats:
    """Return the leaves, (…, n_leaves, n_steps), that minimise sum_n (S z - fitted)_n' P_n (S z - fitted)_n.

    `reconcile_lattice` with correlated steps: P_n is a matrix of steps, 0 where a node was not measured,
    never at a cell.
    """
    values = np.moveaxis(fitted, (-2, -1), (0, 1))
    own = values.reshape(values.shape[0], 1, values.shape[1], -1)
    found = _fit(own, precision[:, None], lattice)
    return np.moveaxis(found.reshape(-1, *values.shape[1:]), (0, 1), (-2, -1))


def is_constant(columns: Floats) -> bool:
    """Return whether all columns, (n, n_columns), are the first."""
    return bool(np.allclose(columns, columns[:, :1], rtol=SAME, atol=0.0))


def _fit(own: Floats, precision: Floats, lattice: Lattice) -> Floats:
    """Return the leaves, (n_leaves, b, k, c); own: (n_nodes, b, k, c). precision: (n_nodes, b, k, k)."""
    parts = parts_of(lattice)
    precise = precision[parts.above]
    free, variances = np.asarray(np.linalg.inv(precision[parts.leaves])), inverses(precise)
    found, seen = own[parts.leaves], (precise[..., 0, 0] > 0)[..., None, None]
    right = np.where(seen, own[parts.above] - parts.sums(found), 0.0)
    pulls = System(parts, precise, free).refined(right, variances)
    return np.asarray(found + free @ parts.pulled(pulls))


# How noise goes through the estimate of a lattice: each value's variance, exact, from the same system.

MOST_RATIO = 2.0**20
"""Of a cell's variance to the least above it, where weights are not those of the noise: the error of what is
subtracted grows with its square.
"""


def noise_of_columns(weights: Floats, own: Floats, lattice: Lattice) -> Floats:
    """Return the variance of each node's value after `reconcile_lattice`, (n_nodes, n_columns).

    `own` is the noise variance of each node's own value; nan in a column, where one is not known, makes all
    nan.
    """
    weights = known_enough(weights, parts_of(lattice))
    entering = weights**2 * np.where(weights > 0, own, 0.0)
    some = slice(1) if is_constant(weights) and is_constant(entering) else slice(None)
    found = noise_through_lattice(weights[:, some, None, None], entering[:, some, None, None], lattice)
    return np.broadcast_to(found[..., 0], weights.shape).copy()


def noise_through_lattice(precision: Floats, noise: Floats, lattice: Lattice) -> Floats:
    """Return the variance that independent noise at the nodes leaves in each value, (n_nodes, b, k).

    The problem is that of `noise_through_tree`: x = S z, z = argmin sum_n (x_n - f_n)' P_n (x_n - f_n), where
    P_n f_n has covariance N_n; P and N are (n_nodes, b, k, k). With K of `System`, V = P^-1, r = f - A y:
    z = y + D A' K^-1 r, and x = f - V K^-1 r at a measured node above. E = D N D is the noise of y, F = V
    N V that of f, so Q = F + A E A' is the covariance of r, and
    Cov z = E - 2 sym(E A' K^-1 A D) + D A' K^-1 Q K^-1 A D,  Cov x = F - 2 sym(F K^-1 V) + V K^-1 Q K^-1 V.
    K^-1 = g + B M B', g that of each family alone, M the Schur complement's inverse, B = (-g A D A', 1): all
    products are of a family with the rest, or of the rest. Time linear in cells.

    Where N = P, E = D and Q = K: Cov z = D - D A' K^-1 A D and Cov x = V - V K^-1 V, which lose less where
    cells are hardly known. nan for problems where weights are not those of the noise and a cell is hardly
    known next to its nodes above (`MOST_RATIO`).
    """
    parts = parts_of(lattice)
    through, found = _Through(parts, precision, noise), np.empty(precision.shape[:-1])
    found[parts.leaves], found[parts.above] = through.of_cells(), through.of_above()
    if not through.is_weighed:
        known_above = precision[parts.above].max(axis=(0, 2, 3))
        found[:, np.abs(through.free).max(axis=(0, 2, 3)) * known_above > MOST_RATIO] = np.nan
    return np.maximum(found, 0.0)


class _Through:
    """The matrices of `noise_through_lattice`: those of b problems first, families before the rest.

    spread: E, (n_leaves, b, k, k), and of_noise: A E A'. entered: F, (b, n_above, k, k). total: Q of each
    family. crossed: Q B of the families. first: M. second: M B' Q B M. alone, mixed: g Q g and g Q B M.
    """

    def __init__(self, parts: Parts, precision: Floats, noise: Floats) -> None:
        above, n = parts.above, parts.n_families
        self.is_weighed = np.allclose(noise, precision, rtol=SAME, atol=0.0)
        self.parts, self.measured = parts, np.moveaxis(precision[above][..., 0, 0] > 0, 1, 0)
        self.free = np.asarray(np.linalg.inv(precision[parts.leaves]))
        self.spread: Floats = self.free @ noise[parts.leaves] @ self.free
        self.system, self.of_noise = System(parts, precision[above], self.free), Joined(parts, self.spread)
        self.variances = np.moveaxis(inverses(precision[above]), 1, 0)
        self.entered: Floats = self.variances @ np.moveaxis(noise[above], 1, 0) @ self.variances
        gain, scaled, self.first = self.system.gain, self.system.scaled, self.system.inverse
        total = self.of_noise.totals + self.entered[:, :n]
        crossed = self.of_noise.across - total @ scaled
        self.to_noise = self.of_noise.own - flat_t(self.of_noise.across) @ flat(scaled)
        self.through = flat_t(scaled) @ flat(crossed)
        middle = self.blocks(self.to_noise - self.through).copy()
        places = range(middle.shape[1])
        middle[:, places, :, places] += np.moveaxis(self.entered[:, n:], 1, 0)
        self.second: Floats = self.first @ middle.reshape(self.first.shape) @ self.first
        self.alone, self.mixed = gain @ total @ gain, gain @ crossed @ self.first[:, None]

    def blocks(self, of_rest: Floats) -> Floats:
        """Return (b, n_rest * k, n_rest * k) as (b, n_rest, k, n_rest, k)."""
        b, m, k, _ = self.system.own.shape
        return of_rest.reshape(b, m, k, m, k)

    def of_cells(self) -> Floats:
        """Return the cells' variances; B' A is `rows`, and 1 at the cell's node of the margin."""
        k = self.free.shape[-1]
        upper = np.einsum("fr,ij->firj", self.parts.upper, np.eye(k))
        rows = upper.reshape(len(upper), k, -1) - self.system.scaled
        by_first, by_second = rows @ self.first[:, None], rows @ self.second[:, None]
        once = self._at_cells(self.system.gain + by_first @ _turned(rows), by_first, self.first)
        if self.is_weighed:
            return _diagonal(self.free) - _form(self.free @ once, self.free)
        found = _diagonal(self.spread) - 2.0 * _form(self.spread @ once, self.free)
        turned = self.alone + (2.0 * self.mixed + by_second) @ _turned(rows)
        twice = self._at_cells(turned, by_second + self.mixed, self.second)
        return np.asarray(found + _form(self.free @ twice, self.free))

    def _at_cells(self, of_families: Floats, of_rest: Floats, of_two: Floats) -> Floats:
        """Return each cell's part by its family, by its margin's node, and by both, (n_leaves, b, k, k)."""
        family, member = self.parts.family, self.parts.member
        b, n, k, _ = of_families.shape
        both = of_rest.reshape(b, n, k, -1, k)[:, family, :, member]
        at = np.moveaxis(of_families, 1, 0)[family]
        return np.asarray(at + both + _turned(both) + self.blocks(of_two)[:, member, :, member])

    def of_above(self) -> Floats:
        """Return the variances of the nodes above, measured ones and sums."""
        scaled, first, second = self.system.scaled, self.first, self.second
        once = self._at_above(self.system.gain + scaled @ first[:, None] @ _turned(scaled), first)
        if self.is_weighed:
            return self._weighed_above(once)
        turned = self.alone + (scaled @ second[:, None] - 2.0 * self.mixed) @ _turned(scaled)
        twice = self._at_above(turned, second)
        measured = _diagonal(self.entered) - 2.0 * _form(self.entered @ once, self.variances)
        measured = measured + _form(self.variances @ twice, self.variances)
        across, left, noisy = self.system.joined.across, self.system.left, self.of_noise
        families = _diagonal(noisy.totals) - 2.0 * _form(noisy.across @ first[:, None], across)
        families = families + _form(across @ second[:, None], across)
        rest = _diagonal(self.to_noise - self.through) + _form(left @ second, left)
        rest = rest + 2.0 * _form((self.through - self.to_noise) @ first, left)
        return self._above(measured, families, rest)

    def _weighed_above(self, once: Floats) -> Floats:
        """Return the same where N = P. once: K^-1 at each node."""
        across, left = self.system.joined.across, self.system.left
        measured = _diagonal(self.variances) - _form(self.variances @ once, self.variances)
        families = _diagonal(self.system.joined.totals) - _form(across @ self.first[:, None], across)
        return self._above(measured, families, _diagonal(left) - _form(left @ self.first, left))

    def _above(self, measured: Floats, families: Floats, rest: Floats) -> Floats:
        """Return (n_above, b, k): a node's own variance where it was measured, else that of its sum."""
        sums = np.concatenate([families, rest.reshape(len(rest), -1, families.shape[-1])], axis=1)
        return np.moveaxis(np.where(self.measured[..., None], measured, sums), 1, 0)

    def _at_above(self, of_families: Floats, of_rest: Floats) -> Floats:
        """Return the diagonal blocks of families and rest, (b, n_above, k, k)."""
        places = range(self.system.own.shape[1])
        rest = np.moveaxis(self.blocks(of_rest)[:, places, :, places], 0, 1)
        return np.concatenate([of_families, rest], axis=1)


def _form(left: Floats, right: Floats) -> Floats:
    """Return the diagonal of left right'."""
    return np.asarray((left * right).sum(axis=-1))


def _diagonal(matrices: Floats) -> Floats:
    return np.asarray(np.diagonal(matrices, axis1=-2, axis2=-1))


def _turned(matrices: Floats) -> Floats:
    return np.swapaxes(matrices, -1, -2)

"""Covariances of many leaves: of sums over groups of them, each group by itself."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree, Lattice

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEAST_STRENGTH = 1e-9
"""Relative: what columns add less is left out."""
MOST_ROWS = 1000
"""Of columns, that are factorised at first."""
AT_ONCE = 2**22
"""Products of two columns that are made at once."""


@dataclass(frozen=True, eq=False)
class InGroups:
    """Columns of leaves in one group, and their forms, whatever the sums.

    Attributes:
        of: (n_leaves,), each leaf's group, as in `Groups`.
        columns: (n_leaves, c).
        forms: (c, q, c, q), with forms[a, s, b, t] = forms[b, t, a, s].
    """

    of: Integers
    columns: Floats
    forms: Floats

    def of_sums(self, leaves: "Floats | csr_array") -> "Groups":
        """Return the same of sums of leaves, by weights (p, n_leaves)."""
        from scipy.sparse import csr_array  # which a command's help does not wait for

        return Groups.from_forms(csr_array(leaves), self.of, self.columns, self.forms)


@dataclass(frozen=True, eq=False)
class Groups:
    """The covariance of leaves that share a group; groups are independent.

    With x a group's sums of the columns, the covariance is the sum over groups and products of x' matrix x
    times the product's matrix of times. A group may be one leaf, or all.

    Attributes:
        leaves: (p, n_leaves), weights of the sums; mostly 0.
        of: (n_leaves,), each leaf's group, from 0; -1 where it is in none.
        columns: (n_leaves, c).
        matrices: (n_products, c, c), symmetric.
        times: (n_products, q, q), symmetric.
    """

    leaves: "csr_array"
    of: Integers
    columns: Floats
    matrices: Floats
    times: Floats

    @classmethod
    def from_forms(cls, leaves: "csr_array", of: Integers, columns: Floats, forms: Floats) -> "Groups":
        """Return what any two columns a and b add, with forms[a, s, b, t] = forms[b, t, a, s]."""
        first, second = np.triu_indices(columns.shape[1])
        pairs = np.arange(first.size)
        matrices = np.zeros((first.size, *(columns.shape[1],) * 2))
        matrices[pairs, first, second] += 0.5
        matrices[pairs, second, first] += 0.5
        both = forms[first, :, second] + forms[second, :, first]
        once = np.where(first == second, 0.25, 0.5)[:, None, None]
        return cls(leaves, of, columns, matrices, once * (both + both.transpose(0, 2, 1)))

    @cached_property
    def sums(self) -> tuple[Integers, Integers, Floats]:
        """Numbers of each pair of a sum and a group that meet, rising, and the columns' sums there."""
        return _sums(self.leaves, self.of, self.columns)

    def of_forms(self, forms: Floats) -> Floats:
        """Return what each sum says of forms of the columns, added up over groups, (p, n), by (n, c, c)."""
        which, _, sums = self.sums
        (n, c), n_sums = forms.shape[:2], self.leaves.shape[0]
        begins = np.flatnonzero(np.diff(which, prepend=-1))
        found, first = np.zeros((n_sums, n)), 0
        if n < c:  # as many products as there are forms, or as there are pairs of columns
            own = np.array([np.einsum("ea,ea->e", sums @ form, sums) for form in forms]).reshape(n, len(sums))
            found[which[begins]] = np.add.reduceat(own, begins, axis=1).T if begins.size else 0.0
            return found
        while first < begins.size:
            last = max(int(np.searchsorted(begins, begins[first] + AT_ONCE // c**2)), first + 1)
            own = sums[begins[first] : begins[last] if last < begins.size else len(sums)]
            products = np.add.reduceat(own[:, :, None] * own[:, None, :], begins[first:last] - begins[first])
            found[which[begins[first:last]]] = products.reshape(-1, c * c) @ forms.reshape(n, c * c).T
            first = last
        return found

    @property
    def between(self) -> Floats:
        """What each sum has over each pair of times, (p, q, q)."""
        return np.tensordot(self.of_forms(self.matrices), self.times, axes=1)

    def over(self, times: Floats) -> Floats:
        """Return the matrices, (m, c, c), weighted by the part of some matrices of times in each product."""
        return np.tensordot(np.tensordot(times, self.times, axes=((1, 2), (1, 2))), self.matrices, axes=1)

    def parts_of_times(self, times: Floats) -> Floats:
        """Return how much of some matrices of times, (m, q, q), is in what each sum has, (p, m)."""
        return self.of_forms(self.over(times))

    def variances(self, nodes: Floats | None = None, times: Floats | None = None) -> Floats:
        """Return by what the variances of the sums are larger, or of sums of these, as `ErrorProducts`."""
        if nodes is not None:
            return self.of_sums(nodes).variances(None, times)
        spans = np.eye(self.times.shape[1]) if times is None else times
        return np.asarray(self.of_forms(self.matrices) @ ((spans @ self.times) * spans).sum(axis=2))

    def of_sums(self, nodes: "Floats | csr_array", times: Floats | None = None) -> "Groups":
        """Return the same of sums of these sums."""
        from scipy.sparse import csr_array

        of_times = self.times if times is None else times @ self.times @ times.T
        return replace(self, leaves=csr_array(nodes) @ self.leaves, times=of_times)

    def scaled(self, factor: float) -> "Groups":
        """Return a multiple."""
        return replace(self, times=factor * self.times)

    def of_first(self, times: Floats) -> "Groups":
        """Return the part of the first time with each, spread over other times, (q, n_times, n_times)."""
        return replace(self, matrices=np.tensordot(self.times[:, 0].T, self.matrices, axes=1), times=times)

    def divided(self, sizes: Floats) -> "tuple[Groups, ...]":
        """Return the same for leaves less their share, by size, of the sum of all."""
        n, c = self.columns.shape
        if not self.of.any():
            rest = self.columns - np.outer(sizes / sizes.sum(), self.columns.sum(axis=0))
            return (replace(self, columns=rest),)
        inside = self.of >= 0
        whole = np.zeros((int(self.of.max()) + 1, c))
        np.add.at(whole, self.of[inside], self.columns[inside])
        of_own = np.where(inside[:, None], whole[self.of], 0.0)
        weights, span = few_columns((of_own[:, :, None] * self.columns[:, None, :]).reshape(n, c * c))
        matrices = np.zeros((len(self.matrices), *(1 + len(span),) * 2))
        matrices[:, 0, 0] = np.tensordot(self.matrices, whole.T @ whole, axes=2)
        matrices[:, 0, 1:] = matrices[:, 1:, 0] = -self.matrices.reshape(-1, c * c) @ span.T
        columns = np.column_stack([sizes / sizes.sum(), weights])
        return self, Groups(self.leaves, np.zeros(n, dtype=np.int64), columns, matrices, self.times)


def _sums(leaves: "csr_array", of: Integers, columns: Floats) -> tuple[Integers, Integers, Floats]:
    """Return `Groups.sums`."""
    from scipy.sparse import csr_array

    entries = leaves.tocoo()
    inside = of[entries.col] >= 0
    leaf, n_groups = entries.col[inside], int(of.max(initial=0)) + 1
    pairs, at = np.unique(entries.row[inside].astype(np.int64) * n_groups + of[leaf], return_inverse=True)
    parts = csr_array((entries.data[inside], (at, leaf)), shape=(pairs.size, of.size))
    return pairs // n_groups, pairs % n_groups, parts @ columns


def in_few(parts: Sequence[InGroups], leaves: "csr_array", least: float) -> list[Groups]:
    """Return the covariance of sums of leaves, by weights (p, n_leaves), in as few columns as it needs.

    A column is left out that counts for less than `least` of the variances of single times, added up. The
    forms of each part have one sign.
    """
    from scipy.sparse import csr_array

    found, p = [], leaves.shape[0]
    sums = [_sums(leaves, one.of, one.columns) for one in parts]
    at_once = [np.einsum("asbs->ab", one.forms) for one in parts]
    variances = np.zeros(p)
    for (which, _, own), form in zip(sums, at_once, strict=True):
        variances += np.bincount(which, ((own @ form) * own).sum(axis=1), minlength=p)
    scales = np.sqrt(np.maximum(variances, 1e-12 * variances.max(initial=0.0)))
    scales[scales == 0.0] = 1.0
    for one, (which, group, own), form in zip(parts, sums, at_once, strict=True):
        basis, rest = np.linalg.qr(own / scales[which, None])
        sizes, axes = np.linalg.eigh(rest @ form @ rest.T)
        axes = axes[:, np.abs(sizes) > least]
        if not axes.size:  # all of it is known, or nothing but the variation of counts
            continue
        span = axes.T @ rest
        forms = np.tensordot(np.tensordot(span, one.forms, axes=1), span, axes=(2, 1)).transpose(0, 1, 3, 2)
        asked = csr_array((np.ones(which.size), (which, np.arange(which.size))), shape=(p, which.size))
        found.append(Groups.from_forms(asked, group, scales[which, None] * (basis @ axes), forms))
    return found


def alike(parts: Iterable[Groups]) -> list[list[Groups]]:
    """Return parts with those whose sums have the same leaves and group them as they do."""
    found: dict[bytes, list[Groups]] = {}
    for part in parts:
        key = b"".join(one.tobytes() for one in (part.of, part.leaves.indptr, part.leaves.indices))
        found.setdefault(key, []).append(part)
    return list(found.values())


def added(parts: Sequence[Groups]) -> Groups:
    """Return the sum of parts that group leaves alike and have the same matrices of times, in few columns."""
    columns = np.column_stack([part.columns for part in parts])
    # how much of a covariance goes with each column, for one of it
    norms = [np.abs(one.matrices).max(axis=0) @ np.linalg.norm(one.columns, axis=0) for one in parts]
    scale = np.concatenate(norms)
    scale[scale == 0.0] = 1.0
    columns, span = few_columns(columns * scale)
    span, at = span / scale, np.cumsum([0, *(one.columns.shape[1] for one in parts)])
    owns = [span[:, first:last] for first, last in pairwise(at)]
    matrices = sum(own @ part.matrices @ own.T for own, part in zip(owns, parts, strict=True))
    return replace(parts[0], columns=columns, matrices=np.asarray(matrices))


def few_columns(columns: Floats, least: float = LEAST_STRENGTH) -> tuple[Floats, Floats]:
    """Return fewer columns, (n, r), of which these are sums, by (r, c): to about `least` of each row.

    Some rows show which, as a rule; all where they do not.
    """
    lengths = np.linalg.norm(columns, axis=1, keepdims=True)
    rows = columns / np.where(lengths, lengths, 1.0)
    for some in (rows[:: max(len(rows) // MOST_ROWS, 1)], rows):
        _, strengths, span = np.linalg.svd(some, full_matrices=False)
        span = span[strengths > least * strengths[0]]
        weights = rows @ span.T
        if np.abs(rows - weights @ span).max(initial=0.0) <= 10.0 * least:
            break
    return lengths * weights, span


def leaves_below(tree: AggregationTree) -> "csr_array":
    """Return which leaves each node is the sum of, (n_nodes, n_leaves)."""
    from scipy.sparse import csr_array

    if isinstance(tree, Lattice):  # where a cell lies in a node of the margin, too
        return csr_array(tree.add_up(np.eye(len(tree.leaves))))
    return _above(tree, tree.leaf_indices)


def in_line(tree: AggregationTree) -> "csr_array":
    """Return which nodes lie in each node, or it in them, (n_nodes, n_nodes), its own among them."""
    from scipy.sparse import eye_array

    found = _above(tree, np.arange(len(tree.nodes)))
    return found + found.T - eye_array(len(tree.nodes), format="csr")


def _above(tree: AggregationTree, some: Integers) -> "csr_array":
    """Return which of some nodes lie in each node, (n_nodes, n)."""
    from scipy.sparse import csr_array

    at, node, parents = np.arange(some.size), some, np.array(tree.parents)
    pairs = []
    while node.size:
        pairs.append((node, at))
        node = parents[node]
        node, at = node[node >= 0], at[node >= 0]
    nodes, below = (np.concatenate(one) for one in zip(*pairs, strict=True))
    return csr_array((np.ones(nodes.size), (nodes, below)), shape=(len(tree.nodes), some.size))


# Covariances of many leaves: of the square of one sum over each group, which has times of its own.

NEARLY = 1e-4
"""Relative difference below which rows of times are equal."""


@dataclass(frozen=True, eq=False)
class Squares:
    """Groups of one column, each with a matrix of times of its own.

    The covariance is the sum over groups of the square of a group's sum, times its matrix.

    Attributes:
        sums: (p, n_groups), of the column in each group, for each sum; mostly 0.
        worths: (n_groups, n_products), the weight of each product in a group's matrix of times.
        times: (n_products, q, q), symmetric.
    """

    sums: "csr_array"
    weights: Floats
    times: Floats

    @classmethod
    def of_rows(cls, sums: "csr_array", rows: Floats) -> "Squares":
        """Return the same of groups whose matrices are squares of rows, (n_groups, q)."""
        weights, span = few_columns(rows, NEARLY)
        first, second = np.triu_indices(len(span))
        once = np.where(first == second, 0.5, 1.0)[:, None, None]
        both = span[first][:, :, None] * span[second][:, None, :]
        pair_weights = weights[:, first] * weights[:, second]
        return cls(sums, pair_weights, once * (both + both.transpose(0, 2, 1)))

    def over(self, times: Floats) -> Floats:
        """Return how much of some matrices of times, (m, q, q), is in each group's, (n_groups, m)."""
        return np.asarray(self.weights @ np.tensordot(self.times, times, axes=((1, 2), (1, 2))))

    @property
    def between(self) -> Floats:
        """What each sum has over each pair of times, (p, q, q)."""
        return np.tensordot(self.sums.power(2) @ self.weights, self.times, axes=1)

    def parts_of_times(self, times: Floats) -> Floats:
        """Return how much of them is in what each sum has, (p, m)."""
        return np.asarray(self.sums.power(2) @ self.over(times))

    def variances(self, nodes: Floats | None = None, times: Floats | None = None) -> Floats:
        """Return by what the variances of the sums are larger, or of sums of these, as `ErrorProducts`."""
        spans = np.eye(self.times.shape[1]) if times is None else times
        found = self if nodes is None else self.of_sums(nodes)
        of_spans = ((spans @ self.times) * spans).sum(axis=2)
        return np.asarray(found.sums.power(2) @ (self.weights @ of_spans))

    def of_sums(self, nodes: "Floats | csr_array", times: Floats | None = None) -> "Squares":
        """Return the same of sums of these sums."""
        from scipy.sparse import csr_array

        of_times = self.times if times is None else times @ self.times @ times.T
        return replace(self, sums=csr_array(csr_array(nodes) @ self.sums), times=of_times)

    def scaled(self, factor: float) -> "Squares":
        """Return a multiple."""
        return replace(self, times=factor * self.times)


Part = Groups | Squares
"""A part of the covariance of many leaves."""


# Terms of the errors of many nodes: of each node alone, and what nodes of a group share.

NOTHING = 1e-12
"""Relative: of columns, where rounding alone is left."""


@dataclass(frozen=True, eq=False)
class GroupedNodes:
    """The terms of nodes, for sums over nodes of which none lies in another.

    Attributes:
        alone: (n_terms, n_nodes), each node's own.
        shares: (n_groups, n_nodes), of which the square of the sum counts; mostly 0.
        of: (n_groups,), each group's term.
    """

    alone: Floats
    shares: "csr_array"
    of: Integers

    def __len__(self) -> int:
        return len(self.alone)

    def of_sum(self, weights: Floats) -> Floats:
        """Return each term of a weighted sum of nodes, (n_terms,), or of some sums, (n_terms, n)."""
        from scipy.sparse import csr_array

        ones = np.ones(self.of.size), (self.of, np.arange(self.of.size))
        of_terms = csr_array(ones, shape=(len(self), self.of.size))
        return np.asarray(self.alone @ weights**2 + of_terms @ (self.shares @ weights) ** 2)

    def of_each(self) -> Floats:
        """Return what each term says of each node, (n_terms, n_nodes)."""
        found, entries = self.alone.copy(), self.shares.tocoo()
        np.add.at(found, (self.of[entries.row], entries.col), entries.data**2)
        return found

    def rounded(self) -> "GroupedNodes":
        """Return these in the precision of float32, as a file has them."""
        return GroupedNodes(
            self.alone.astype(np.float32).astype(np.float64),
            self.shares.astype(np.float32).astype(np.float64),
            self.of,
        )


def grouped_nodes(
    parts: tuple[Part, ...],
    line: "csr_array",
    times: Floats,
    scales: Floats,
    weights: Floats,
    least: float,
) -> GroupedNodes:
    """Return the terms of every node for each matrix of times: n added to a variance, then n taken from it.

    A form of columns is, in its axes, a sum of squares, few of which count: squares below `least` are left
    out, by errors `scales` of the nodes and `weights` of such forms in a variance. A group within one
    node needs no square: no other node in a sum has a part in it.
    """
    from scipy.sparse import csr_array

    n, found = len(times), []
    alone, n_groups = np.zeros((2 * n, scales.size)), 0
    for node, group, own, squares in _of_parts(parts, line, times, scales, weights, least):
        alone[:n] += own
        for term, share, at in squares:
            numbers, rows = np.unique(group[at], return_inverse=True)
            found.append((share, n_groups + rows, node[at], np.full(numbers.size, term)))
            n_groups += numbers.size
    shares, rows, nodes, terms = (
        np.concatenate([one[at] for one in found]) if found else np.zeros(0, dtype=np.int64)
        for at in range(4)
    )
    entries = csr_array((shares, (rows, nodes)), shape=(n_groups, scales.size))
    return GroupedNodes(alone, entries, terms)


def _of_parts(
    parts: tuple[Part, ...],
    line: "csr_array",
    times: Floats,
    scales: Floats,
    weights: Floats,
    least: float,
) -> Iterator[tuple[Integers, Integers, Floats, list[tuple[int, Floats, Integers]]]]:
    """Yield pairs of a node and a group, each node's own terms, and squares with the pairs' weights."""
    from scipy.linalg import block_diag

    for some in alike(one for one in parts if isinstance(one, Groups)):
        node, group, _ = some[0].sums
        sums = np.column_stack([part.sums[2] for part in some])
        of_parts = zip(*(part.over(times) for part in some), strict=True)
        forms = np.array([block_diag(*of_term) for of_term in of_parts])
        within, own = _within(line, node, group), np.zeros((len(times), scales.size))
        for of_term, form in zip(own, forms, strict=True):
            of_pairs = ((sums[within] @ form) * sums[within]).sum(axis=1)
            of_term += np.bincount(node[within], of_pairs, minlength=scales.size)
        at = np.flatnonzero(~within)
        relative = sums[at] / scales[node[at], None]
        squares = _squares(group[at], relative, forms, weights, least)
        yield node, group, own, [(term, share * scales[node[at]], at) for term, share in squares]
    for part in parts:
        if isinstance(part, Squares):
            yield _of_squares(part, line, times, scales, weights, least)


def _of_squares(
    part: Squares, line: "csr_array", times: Floats, scales: Floats, weights: Floats, least: float
) -> tuple[Integers, Integers, Floats, list[tuple[int, Floats, Integers]]]:
    """Return what `_of_parts` yields of one part whose groups have one square each."""
    from scipy.sparse import csr_array

    entries, of_groups = part.sums.tocoo(), part.over(times)
    node, group = entries.row.astype(np.int64), entries.col.astype(np.int64)
    within = _within(line, node, group)
    alone = csr_array((np.where(within, entries.data**2, 0.0), (node, group)), shape=part.sums.shape)
    own = (alone @ of_groups).T
    at, squares = np.flatnonzero(~within), []
    relative = np.bincount(group[at], (entries.data / scales[node])[at] ** 2, minlength=len(of_groups))
    for term, sizes in enumerate(of_groups.T):
        counts = weights[term] * np.abs(sizes) * relative > least
        for sign, chosen in ((0, counts & (sizes > 0.0)), (len(times), counts & (sizes < 0.0))):
            some = at[chosen[group[at]]]
            if some.size:
                squares.append((sign + term, entries.data[some] * np.sqrt(np.abs(sizes[group[some]])), some))
    return node, group, own, squares


def _within(line: "csr_array", node: Integers, group: Integers) -> NDArray[np.bool_]:
    """Return whether no other node of a sum has a part in a pair's group: one holds all of the other."""
    from scipy.sparse import csr_array

    shape = line.shape[0], int(group.max(initial=0)) + 1
    parts = csr_array((np.ones(node.size), (node, group)), shape=shape)
    return np.asarray((line @ parts).toarray()[node, group] == np.bincount(group)[group])


def _squares(
    group: Integers, sums: Floats, forms: Floats, weights: Floats, least: float
) -> Iterator[tuple[int, Floats]]:
    """Yield the squares of which forms are sums: the term of each, and the weight of each entry in it."""
    if not sums.size:
        return
    axes, strengths, turn = np.linalg.svd(sums, full_matrices=False)
    kept = strengths > NOTHING * strengths[0]
    axes, turn = axes[:, kept], strengths[kept, None] * turn[kept]
    for term, form in enumerate(forms):
        sizes, vectors = np.linalg.eigh(turn @ form @ turn.T)
        shares = (axes @ vectors) * np.sqrt(np.abs(sizes))
        for size, share in zip(sizes, shares.T, strict=True):
            if weights[term] * np.bincount(group, share**2).max() > least:
                yield (term if size > 0.0 else len(forms) + term), share

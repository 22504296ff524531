"""Terms of the errors of many nodes: of each node alone, and what nodes of a group share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.many_leaves.groups import Groups, alike
from optstream.estimation.many_leaves.squares import Part, Squares

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NOTHING = 1e-12
"""Relative: of columns, where rounding alone is left."""


@dataclass(frozen=True, eq=False)
class GroupedNodes:
    """What the terms say of nodes, for sums over nodes of which none lies in another.

    Attributes:
        alone: (n_terms, n_nodes), what each node counts by itself.
        shares: (n_groups, n_nodes), of which the square of the sum counts; mostly 0.
        of: (n_groups,), each group's term.
    """

    alone: Floats
    shares: "csr_array"
    of: Integers

    def __len__(self) -> int:
        return len(self.alone)

    def of_sum(self, weights: Floats) -> Floats:
        """Return what each term says of a sum of nodes, (n_terms,), by (n_nodes,), or of some sums, (n_terms,
        n), by (n_nodes, n).
        """
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
    parts: tuple[Part, ...], line: "csr_array", times: Floats, scales: Floats, worths: Floats, least: float
) -> GroupedNodes:
    """Return what parts, of every node, say of nodes for each of some matrices of times, (n, q, q): what adds
    to a variance, then what is taken from it, 2 n terms in all.

    A form of columns is, in its axes, a sum of squares, few of which count. What lies within one node needs
    no group: no other node that is asked about has a part in it. line: of `in_line`. scales: (n_nodes,),
    errors of the nodes. worths: (n,), how much a form of such errors counts in a variance, relative. least:
    squares that count for less are left out.
    """
    from scipy.sparse import csr_array

    n, found = len(times), []
    alone, n_groups = np.zeros((2 * n, scales.size)), 0
    for node, group, own, squares in _of_parts(parts, line, times, scales, worths, least):
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
    parts: tuple[Part, ...], line: "csr_array", times: Floats, scales: Floats, worths: Floats, least: float
) -> Iterator[tuple[Integers, Integers, Floats, list[tuple[int, Floats, Integers]]]]:
    """Yield what nodes and groups have in common, which node and which group, (n_pairs,) each; what nodes
    count alone, (n, n_nodes); and squares, each of a term, with what some of these pairs count for in it.

    Arguments as `grouped_nodes`.
    """
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
        squares = _squares(group[at], relative, forms, worths, least)
        yield node, group, own, [(term, share * scales[node[at]], at) for term, share in squares]
    for part in parts:
        if isinstance(part, Squares):
            yield _of_squares(part, line, times, scales, worths, least)


def _of_squares(
    part: Squares, line: "csr_array", times: Floats, scales: Floats, worths: Floats, least: float
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
        counts = worths[term] * np.abs(sizes) * relative > least
        for sign, chosen in ((0, counts & (sizes > 0.0)), (len(times), counts & (sizes < 0.0))):
            some = at[chosen[group[at]]]
            if some.size:
                squares.append((sign + term, entries.data[some] * np.sqrt(np.abs(sizes[group[some]])), some))
    return node, group, own, squares


def _within(line: "csr_array", node: Integers, group: Integers) -> NDArray[np.bool_]:
    """Return of pairs of a node and a group, each once, whether all nodes that have a part in the group lie
    in the node, or it in them: no other one does that is asked about with it.
    """
    from scipy.sparse import csr_array

    shape = line.shape[0], int(group.max(initial=0)) + 1
    parts = csr_array((np.ones(node.size), (node, group)), shape=shape)
    return np.asarray((line @ parts).toarray()[node, group] == np.bincount(group)[group])


def _squares(
    group: Integers, sums: Floats, forms: Floats, worths: Floats, least: float
) -> Iterator[tuple[int, Floats]]:
    """Yield the squares that forms add up from: of which term, and what each entry counts for in it.

    group: of each entry. sums: (n_entries, c), relative to errors.
    """
    if not sums.size:
        return
    axes, strengths, turn = np.linalg.svd(sums, full_matrices=False)
    kept = strengths > NOTHING * strengths[0]
    axes, turn = axes[:, kept], strengths[kept, None] * turn[kept]
    for term, form in enumerate(forms):
        sizes, vectors = np.linalg.eigh(turn @ form @ turn.T)
        shares = (axes @ vectors) * np.sqrt(np.abs(sizes))
        for size, share in zip(sizes, shares.T, strict=True):
            if worths[term] * np.bincount(group, share**2).max() > least:
                yield (term if size > 0.0 else len(forms) + term), share

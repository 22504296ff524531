"""Terms of the errors of many nodes: of each node alone, and what nodes of a group share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.many_leaves.groups import Groups, alike

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
        """Return what each term says of a sum of nodes, (n_terms,), by (n_nodes,)."""
        squares = (self.shares @ weights) ** 2
        return np.asarray(self.alone @ weights**2 + np.bincount(self.of, squares, minlength=len(self)))

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
    parts: tuple[Groups, ...], times: Floats, scales: Floats, worths: Floats, least: float
) -> GroupedNodes:
    """Return what parts, of every node, say of nodes for each of some matrices of times, (n, q, q): what adds
    to a variance, then what is taken from it, 2 n terms in all.

    A form of columns is, in its axes, a sum of squares, few of which count. What lies within one node needs
    no group: no other node that is asked about has a part in it. scales: (n_nodes,), errors of the nodes.
    worths: (n,), how much a form of such errors counts in a variance, relative. least: squares that count
    for less are left out.
    """
    from scipy.linalg import block_diag
    from scipy.sparse import csr_array

    n, found = len(times), []
    alone, n_groups = np.zeros((2 * n, scales.size)), 0
    for some in alike(parts):
        node, group, _ = some[0].sums
        sums = np.column_stack([part.sums[2] for part in some])
        of_parts = zip(*(part.over(times) for part in some), strict=True)
        forms = np.array([block_diag(*of_term) for of_term in of_parts])
        within = some[0].within
        for own, form in zip(alone, forms, strict=False):
            np.add.at(own, node[within], ((sums @ form) * sums).sum(axis=1)[within])
        node, group, sums = node[~within], group[~within], sums[~within]
        for term, share in _squares(group, sums / scales[node, None], forms, worths, least):
            numbers, rows = np.unique(group, return_inverse=True)
            found.append((share * scales[node], n_groups + rows, node, np.full(numbers.size, term)))
            n_groups += numbers.size
    shares, rows, nodes, terms = (
        np.concatenate([one[at] for one in found]) if found else np.zeros(0, dtype=np.int64)
        for at in range(4)
    )
    entries = csr_array((shares, (rows, nodes)), shape=(n_groups, scales.size))
    return GroupedNodes(alone, entries, terms)


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

"""Covariances of weighted sums as a sum of products: a matrix of nodes times one of times, few of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.many_leaves.squares import Part

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ErrorProducts:
    """What the covariance of sums of leaves over sums of times adds up from, alike in both orders of a pair.

    It is the sum over products of a matrix of nodes times one of times; and over any two columns a and b of
    column a times column b times forms[a, :, b, :].

    Attributes:
        nodes: (n_products, p, p), symmetric.
        times: (n_products, q, q), symmetric, in the squared unit of the readings.
        columns: (p, c), weights of the sums of leaves.
        forms: (c, q, c, q), in the same unit, with forms[a, s, b, t] = forms[b, t, a, s].
        groups: What more groups of leaves share, in place of matrices of many leaves.
    """

    nodes: Floats
    times: Floats
    columns: Floats
    forms: Floats
    groups: tuple[Part, ...] = ()

    @classmethod
    def of_groups(cls, groups: Iterable[Part], p: int, q: int) -> "ErrorProducts":
        """Return what groups of leaves alone share, in p sums over q sums of times."""
        nothing = np.zeros((0, p, p)), np.zeros((0, q, q)), np.zeros((p, 0)), np.zeros((0, q, 0, q))
        return cls(*nothing, tuple(groups))

    def joined(self, columns: Floats, forms: Floats) -> "ErrorProducts":
        """Return the sum of this and of what further columns, (p, d), with forms, (d, q, d, q), add."""
        n, (d, q) = self.columns.shape[1], forms.shape[:2]
        both = np.zeros((n + d, q, n + d, q))
        both[:n, :, :n], both[n:, :, n:] = self.forms, forms
        return replace(self, columns=np.column_stack([self.columns, columns]), forms=both)

    def plus(self, nodes: Floats, times: Floats) -> "ErrorProducts":
        """Return the sum of this and of further products: nodes, (n_further, p, p), and times, (n_further, q,
        q).
        """
        every = np.concatenate([self.nodes, nodes]), np.concatenate([self.times, times])
        return replace(self, nodes=every[0], times=every[1])

    def scaled(self, factor: float) -> "ErrorProducts":
        """Return a multiple."""
        groups = tuple(one.scaled(factor) for one in self.groups)
        return replace(self, times=factor * self.times, forms=factor * self.forms, groups=groups)

    def of_sums(self, nodes: Floats, times: Floats) -> "ErrorProducts":
        """Return the same of sums of these sums, by weights (n_sums, p) and (n_spans, q)."""
        across = np.tensordot(self.forms @ times.T, times, axes=(1, 1)).transpose(0, 3, 1, 2)
        p = nodes.shape[0]
        return ErrorProducts(
            nodes @ self.nodes @ nodes.T if len(self.nodes) else np.zeros((0, p, p)),
            times @ self.times @ times.T,
            nodes @ self.columns,
            across,
            tuple(one.of_sums(nodes, times) for one in self.groups),
        )

    def variances(self, nodes: Floats | None = None, times: Floats | None = None) -> Floats:
        """Return the variances of the sums, (p, q), or of sums of these, by weights (n_sums, p) and (n_spans,
        q).
        """
        columns = self.columns if nodes is None else nodes @ self.columns
        first, second, forms = self._pairs
        found: Floats | float = 0.0
        if len(self.nodes):
            found = _forms(self.nodes, nodes).T @ _forms(self.times, times)
        found = found + (columns[:, first] * columns[:, second]) @ _forms(forms, times)
        for one in self.groups:
            found = found + one.variances(nodes, times)
        return np.asarray(found)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Each unordered pair of columns, and its symmetric form for both orders, (n_pairs, q, q)."""
        first, second = np.triu_indices(self.columns.shape[1])
        forms = self.forms[first, :, second, :]
        both = np.where(first == second, 0.5, 1.0)[:, None, None]
        return first, second, both * (forms + forms.transpose(0, 2, 1))

    def principal(self, scales: Floats, most: int) -> Iterator[tuple[Floats, Floats]]:
        """Yield the products, `most` of them, that come nearest to the same sum, the largest first: a matrix
        of nodes and one of times, as the attributes.

        What columns add is written in an orthonormal basis of them, so that only what the few `nodes` have
        beside it is factorised over all pairs of nodes. The products are then the singular vectors of a small
        matrix: a row for each pair of the basis and for each of the few, a column for each pair of times.
        scales: (p,), what an error of each node counts as one.
        """
        basis, rest = np.linalg.qr(self.columns / scales[:, None])
        turned = np.tensordot(np.tensordot(rest, self.forms, axes=1), rest, axes=(2, 1)).transpose(0, 3, 1, 2)
        of_columns = halves(halves(0.5 * (turned + turned.transpose(0, 1, 3, 2))).transpose(2, 0, 1)).T
        nodes = self.nodes / np.outer(scales, scales)
        within = basis.T @ nodes @ basis
        left, beside = np.linalg.qr(halves(nodes - basis @ within @ basis.T).T)
        times = halves(self.times)
        rows = np.vstack([of_columns + halves(within).T @ times, beside @ times])
        for weight, of_times in zip(*_largest(rows, most), strict=True):
            inside, outside = np.split(weight, [len(of_columns)])
            found = basis @ wholes(inside, basis.shape[1]) @ basis.T + wholes(left @ outside, len(scales))
            yield found * np.outer(scales, scales), wholes(of_times, self.times.shape[1])


def _forms(matrices: Floats, weights: Floats | None) -> Floats:
    """Return what each matrix says of each sum alone, (..., n_sums). matrices: (..., p, p)."""
    if weights is None:
        return np.asarray(np.einsum("...ii->...i", matrices))
    return np.asarray(((weights @ matrices) * weights).sum(axis=-1))


def _largest(matrix: Floats, most: int) -> tuple[Floats, Floats]:
    """Return the products of a row and a column that come nearest to a matrix, `most` or fewer, the largest
    first: (n, n_rows) and (n, n_columns).

    By its square, which leaves half the digits of what is small: far more than is told apart by them. Raises
    LinAlgError where floats cannot hold it.
    """
    from scipy.linalg import eigh  # which a command's help does not wait for

    is_wide = len(matrix) <= matrix.shape[1]
    square = matrix @ matrix.T if is_wide else matrix.T @ matrix
    if not (np.isfinite(square).all() and square.any()):
        raise np.linalg.LinAlgError("the covariances are too large or too small for floats")
    n = len(square)
    vectors = eigh(square, subset_by_index=(max(n - most, 0), n - 1))[1].T[::-1]
    return (vectors, vectors @ matrix) if is_wide else (vectors @ matrix.T, vectors)


def outer_squares(rows: Floats) -> Floats:
    """Return each row times itself, (n, q, q)."""
    return np.asarray(rows[:, :, None] * rows[:, None, :])


def halves(matrices: Floats) -> Floats:
    """Return each pair once, so that lengths are those of whole matrices, (..., n_pairs)."""
    first, second = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., first, second] * np.where(first == second, 1.0, np.sqrt(2.0)))


def wholes(half: Floats, size: int) -> Floats:
    """Return the symmetric matrices, (..., size, size), from what `halves` made of them."""
    first, second = np.triu_indices(size)
    found = np.empty((*half.shape[:-1], size, size))
    once = half * np.where(first == second, 1.0, np.sqrt(0.5))
    found[..., first, second] = found[..., second, first] = once
    return found

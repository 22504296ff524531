"""Covariances of weighted sums as a sum of products: a matrix of nodes times one of times, few of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ErrorProducts:
    """What the covariance of sums of leaves over sums of times adds up from, alike in both orders of a pair.

    Attributes:
        nodes: (n_products, p, p), symmetric.
        times: (n_products, q, q), symmetric, in the squared unit of the readings.
    """

    nodes: Floats
    times: Floats

    @classmethod
    def of_pairs(cls, columns: Floats, forms: Floats) -> "ErrorProducts":
        """Return the sum over columns a and b of column a times column b times a form of times.

        Args:
            columns: (p, c), weights of the sums of leaves.
            forms: (c, q, c, q), with forms[a, s, b, t] = forms[b, t, a, s].

        Returns:
            A product for each unordered pair of columns.
        """
        first, second = np.triu_indices(columns.shape[1])
        both = np.where(first == second, 0.5, 1.0)[:, None]
        outer = (both * columns.T[first])[:, :, None] * columns.T[second][:, None, :]
        of_times = forms[first, :, second, :]
        return cls(outer + outer.transpose(0, 2, 1), 0.5 * (of_times + of_times.transpose(0, 2, 1)))

    def joined(self, other: "ErrorProducts") -> "ErrorProducts":
        """Return both together.

        Args:
            other: Of the same sums.

        Returns:
            Their sum.
        """
        return ErrorProducts(
            np.concatenate([self.nodes, other.nodes]), np.concatenate([self.times, other.times])
        )

    def scaled(self, factor: float) -> "ErrorProducts":
        """Return a multiple.

        Args:
            factor: What it is multiplied with.

        Returns:
            The multiple.
        """
        return ErrorProducts(self.nodes, factor * self.times)

    def between(self) -> Floats:
        """Return the covariances, (p, q, p, q): the mean of both orders of a pair."""
        return np.asarray(np.tensordot(self.nodes, self.times, axes=(0, 0)).transpose(0, 2, 1, 3))

    def variances(self, nodes: Floats | None = None, times: Floats | None = None) -> Floats:
        """Return the variances of the sums, or of sums of these.

        Args:
            nodes: (n_sums, p), weights; None for the sums themselves.
            times: (n_spans, q), likewise.

        Returns:
            A variance for each of both.
        """
        return np.asarray(_forms(self.nodes, nodes).T @ _forms(self.times, times))

    def principal(self, scales: Floats, most: int) -> tuple[Floats, Floats]:
        """Return the same sum in as few products as come nearest, the largest first.

        Args:
            scales: (p,), what an error of each node counts as one.
            most: How many are returned.

        Returns:
            Matrices of nodes and of times, as the attributes.
        """
        nodes, of_nodes = _halves(self.nodes, 1.0 / scales)
        times, of_times = _halves(self.times, np.ones(self.times.shape[1]))
        left, of_left = np.linalg.qr(nodes.T)
        right, of_right = np.linalg.qr(times.T)
        first, strengths, second = np.linalg.svd(of_left @ of_right.T, full_matrices=False)
        return (
            _whole((left @ first[:, :most]).T / of_nodes, len(scales)),
            _whole(strengths[:most, None] * (second[:most] @ right.T) / of_times, self.times.shape[1]),
        )


def _forms(matrices: Floats, weights: Floats | None) -> Floats:
    """Return what each matrix says of each sum alone, (n, n_sums)."""
    if weights is None:
        return np.asarray(np.einsum("rii->ri", matrices))
    return np.asarray(((weights @ matrices) * weights).sum(axis=2))


def _halves(matrices: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return each pair once, so that lengths are those of whole matrices, weighted, (n, n_pairs); and what
    each was multiplied with.
    """
    first, second = np.triu_indices(matrices.shape[1])
    factors = np.where(first == second, 1.0, np.sqrt(2.0)) * weights[first] * weights[second]
    return matrices[:, first, second] * factors, factors


def _whole(halves: Floats, size: int) -> Floats:
    """Return symmetric matrices, (n, size, size), from each pair once."""
    first, second = np.triu_indices(size)
    found = np.empty((len(halves), size, size))
    found[:, first, second] = halves
    found[:, second, first] = halves
    return found

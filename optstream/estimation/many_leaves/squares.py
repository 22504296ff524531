"""Covariances of many leaves: of the square of one sum over each group, which has times of its own."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.many_leaves.groups import Groups, few_columns

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
NEARLY = 1e-4
"""Relative: what rows of times are not told apart by."""


@dataclass(frozen=True, eq=False)
class Squares:
    """What groups share whose sums of one column count, each with a matrix of times of its own.

    The covariance is the sum over groups of the square of a group's sum, times its matrix.

    Attributes:
        sums: (p, n_groups), of the column in each group, of the sums that are asked about; mostly 0.
        worths: (n_groups, n_products), how much of each product is in a group's matrix of times.
        times: (n_products, q, q), symmetric.
    """

    sums: "csr_array"
    worths: Floats
    times: Floats

    @classmethod
    def of_rows(cls, sums: "csr_array", rows: Floats) -> "Squares":
        """Return the same of groups whose matrices are squares of rows, (n_groups, q)."""
        weights, span = few_columns(rows, NEARLY)
        first, second = np.triu_indices(len(span))
        once = np.where(first == second, 0.5, 1.0)[:, None, None]
        both = span[first][:, :, None] * span[second][:, None, :]
        worths = weights[:, first] * weights[:, second]
        return cls(sums, worths, once * (both + both.transpose(0, 2, 1)))

    def over(self, times: Floats) -> Floats:
        """Return how much of some matrices of times, (m, q, q), is in each group's, (n_groups, m)."""
        return np.asarray(self.worths @ np.tensordot(self.times, times, axes=((1, 2), (1, 2))))

    @property
    def between(self) -> Floats:
        """What each sum has over each pair of times, (p, q, q)."""
        return np.tensordot(self.sums.power(2) @ self.worths, self.times, axes=1)

    def told(self, times: Floats) -> Floats:
        """Return how much of them is in what each sum has, (p, m)."""
        return np.asarray(self.sums.power(2) @ self.over(times))

    def variances(self, nodes: Floats | None = None, times: Floats | None = None) -> Floats:
        """Return by what the variances of the sums are larger, or of sums of these, as `ErrorProducts`."""
        spans = np.eye(self.times.shape[1]) if times is None else times
        found = self if nodes is None else self.of_sums(nodes)
        of_spans = ((spans @ self.times) * spans).sum(axis=2)
        return np.asarray(found.sums.power(2) @ (self.worths @ of_spans))

    def of_sums(self, nodes: "Floats | csr_array", times: Floats | None = None) -> "Squares":
        """Return the same of sums of these sums."""
        from scipy.sparse import csr_array

        of_times = self.times if times is None else times @ self.times @ times.T
        return replace(self, sums=csr_array(csr_array(nodes) @ self.sums), times=of_times)

    def scaled(self, factor: float) -> "Squares":
        """Return a multiple."""
        return replace(self, times=factor * self.times)


Part = Groups | Squares
"""Of what the covariances of many leaves add up from."""

"""Many rows that are alike: each a sum of few, so that products with a matrix take those few rows alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT = 1e-10
"""Of a row's length: what the span may leave of it."""
NEGLIGIBLE = 1e-13
"""Of a row's length, squared: what a pair of the span may count for and be left out."""


@dataclass(frozen=True, eq=False)
class SpannedRows:
    """Rows as `weights` (n_rows, r) times `span` (r, n).

    How a node moves with a mode is a smooth function of the mode's variance, whatever the node: a tree of
    10,000 nodes has a dozen rows that span all. What is quadratic in n is then done for these alone.
    """

    weights: Floats
    span: Floats

    @classmethod
    def of(cls, rows: Floats, exact: float = EXACT) -> "SpannedRows":
        """Return these rows, to `exact` of each one's length.

        Gram-Schmidt with the row that is known worst next: time n_rows n r.
        """
        lengths = np.linalg.norm(rows, axis=1)
        lengths[lengths == 0.0] = 1.0
        left = rows / lengths[:, None]
        known = np.empty_like(left)
        found: list[Floats] = []
        for _ in range(min(rows.shape)):
            squares = np.einsum("ij,ij->i", left, left)
            worst = int(np.argmax(squares))
            if squares[worst] <= exact**2:
                break
            one = left[worst].copy()
            for other in found:  # once more, for rounding
                one -= (one @ other) * other
            one /= np.linalg.norm(one)
            left -= np.multiply((left @ one)[:, None], one, out=known)
            found.append(one)
        span = np.array(found).reshape(len(found), rows.shape[1])
        return cls(rows @ span.T, span)

    @property
    def pairs(self) -> Floats:
        """Return what each row counts a pair of the span for, each pair once, (n_rows, r (r + 1) / 2)."""
        first, second = np.triu_indices(len(self.span))
        return np.asarray(self.weights[:, first] * self.weights[:, second])

    def squares(self, ends: Floats, matrix: Floats) -> Floats:
        """Return (row * end)' matrix (row * end) of every row and end, (n_rows, n_ends).

        ends: (n_ends, n). matrix: (n, n), symmetric. Pairs of the span that no row counts for more than
        `NEGLIGIBLE` are left out. Time r n_ends n^2 for the r of which some pair counts.
        """
        lengths = np.linalg.norm(self.weights, axis=1, keepdims=True)
        major = (np.abs(self.weights) > np.sqrt(NEGLIGIBLE) * lengths).any(axis=0)
        moved = self.span * ends[:, None, :]
        forms = (moved[:, major] @ matrix) @ moved.transpose(0, 2, 1)
        forms[:, :, ~major] *= 2.0
        n_pairs = forms.shape[1] * forms.shape[2]
        pairs = (self.weights[:, major, None] * self.weights[:, None, :]).reshape(len(lengths), n_pairs)
        return np.asarray(pairs @ forms.reshape(len(ends), n_pairs).T)

    def products(self, ends: Floats, matrix: Floats) -> Floats:
        """Return the same of any two ends for the `pairs` of the span, (n_pairs, n_ends, n_ends)."""
        moved = self.span[:, None, :] * ends
        rank, n_ends, n = moved.shape
        across = (moved @ matrix).reshape(-1, n) @ moved.reshape(-1, n).T
        of_pairs = across.reshape(rank, n_ends, rank, n_ends).transpose(0, 2, 1, 3)
        first, second = np.triu_indices(rank)
        both = of_pairs[first, second] + of_pairs[second, first]
        both[first == second] /= 2.0
        return np.asarray(both)

    def weighed(self, ends: Floats) -> Floats:
        """Return ends diag(span) ends', (r, n_ends, n_ends)."""
        return np.asarray((self.span[:, None, :] * ends) @ ends.T)

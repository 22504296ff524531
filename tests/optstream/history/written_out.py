"""Sums of products as the covariance of each pair of sums."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_terms import ErrorProducts


def written_out(products: ErrorProducts) -> NDArray[np.float64]:
    """Return the covariances, (p, q, p, q): the mean of both orders of a pair."""
    found = np.tensordot(products.nodes, products.times, axes=(0, 0)).transpose(0, 2, 1, 3)
    half = np.einsum("ia,asbt,jb->isjt", products.columns, products.forms, products.columns, optimize=True)
    return np.asarray(found + 0.5 * (half + half.transpose(0, 3, 2, 1)))

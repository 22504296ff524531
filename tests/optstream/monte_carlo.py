"""Covariances of draws against exact ones."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z = 6.5
"""Standard errors. A mean of products of normal numbers is farther from its expectation with a chance below
1e-9, the skewness of squares included: below 1e-6 for a matrix of at most 1,000 different entries."""


def distances(draws: NDArray[np.float64], expected: ArrayLike) -> NDArray[np.float64]:
    """Return how far second moments of draws, (n, ...), are from these, in standard errors, (p, p)."""
    flat = draws.reshape(len(draws), -1)
    n, squares = len(flat), flat**2
    found = flat.T @ flat / n
    errors = np.sqrt(np.maximum(squares.T @ squares / n - found**2, 0.0) / n)
    least = 1e-9 * np.sqrt(np.outer(np.diag(found), np.diag(found))) + 1e-300
    return np.asarray(np.abs(found - expected) / np.maximum(errors, least))


def agree(draws: NDArray[np.float64], expected: ArrayLike) -> bool:
    """Return whether second moments of these draws are the expected ones."""
    assert draws[0].size <= 44
    return bool(distances(draws, expected).max() < Z)

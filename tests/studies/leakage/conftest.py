"""Transition matrices: random ones of every kind, and those that have broken implementations."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st


def random_matrix(seed, n_states, concentration=1.0, zeros=0.0):
    """Rows from a Dirichlet distribution, each entry 0 with probability `zeros` (never a whole row)."""
    generator = np.random.default_rng(seed)
    rows = generator.dirichlet(np.full(n_states, concentration), n_states)
    cut = np.where(generator.random(rows.shape) < zeros, 0, rows)
    cut[cut.sum(axis=1) == 0, 0] = 1
    return cut / cut.sum(axis=1, keepdims=True)


ISSUE = np.array([[0.8, 0.2], [0, 1]])
DEGENERATE = {
    "one state": np.ones((1, 1)),
    "the issue's": ISSUE,
    "identity": np.eye(4),
    "permutation": np.eye(4)[[2, 0, 3, 1]],
    "uniform": np.full((5, 5), 0.2),
    "equal rows with zeros": np.tile([0.5, 0, 0.5], (3, 1)),
    "reducible": np.array([[0.5, 0.5, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 0.9, 0.1], [0, 0, 0.2, 0.8]]),
    "transient": np.array([[0.2, 0.3, 0.5], [0, 0.6, 0.4], [0, 0.1, 0.9]]),
    "two equal rows": np.array([[0.1, 0.9, 0], [0.1, 0.9, 0], [0.3, 0.3, 0.4]]),
    "equal ratios": np.array([[0.4, 0.4, 0.2], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8]]),
    "nearly equal rows": np.array([[0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]]),
    "tiny entries": np.array([[1e-300, 0.4, 0.6], [0.5, 1e-12, 0.5], [0.3, 0.7, 0]]),
    "subnormal entries": np.array([[5e-324, 1.0], [0.25, 0.75]]),
    "sparse": random_matrix(7, 9, 0.5, zeros=0.7),
    "peaked": random_matrix(8, 6, 0.05),
}
matrices = st.builds(
    random_matrix,
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.sampled_from([0.05, 0.3, 1.0, 10.0]),
    st.sampled_from([0.0, 0.0, 0.3, 0.8]),
)


@pytest.fixture(params=DEGENERATE, ids=str)
def degenerate(request):
    """Each degenerate matrix in turn."""
    return DEGENERATE[request.param]


@pytest.fixture(scope="session")
def chains():
    """The issue's matrix, the maker of random ones, and a strategy: `data.draw(chains.matrices)`."""
    return SimpleNamespace(issue=ISSUE, random=random_matrix, matrices=matrices)

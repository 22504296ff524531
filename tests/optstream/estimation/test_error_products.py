"""Sums of products of nodes and times: what is made of parts says what their sum does."""

import numpy as np
import pytest

from optstream.estimation.error_terms import ErrorProducts, halves
from tests.optstream.estimation.written_out import written_out

NODES, TIMES = 4, 5


def products(random, p, q):
    """Products of nodes and times as a covariance has them: symmetric, and forms alike in both orders."""
    nodes, times = random.normal(size=(2, p, p)), random.normal(size=(2, q, q))
    forms = random.normal(size=(2, q, 2, q))
    return ErrorProducts(
        nodes + nodes.transpose(0, 2, 1),
        times + times.transpose(0, 2, 1),
        random.normal(size=(p, 2)),
        forms + forms.transpose(2, 3, 0, 1),
    )


def test_principal_products_are_the_nearest_of_so_many():
    """Those that a singular value decomposition of all pairs has, whichever are made of columns."""
    whole = products(np.random.default_rng(7), NODES, TIMES)
    scales = np.array([1.0, 2.0, 0.5, 1.0])
    pairs = written_out(whole).transpose(0, 2, 1, 3)
    pairs = 0.25 * (pairs + pairs.transpose(1, 0, 2, 3))
    pairs = pairs + pairs.transpose(0, 1, 3, 2)
    relative = pairs / np.outer(scales, scales)[:, :, None, None]
    rows = halves(halves(relative).transpose(2, 0, 1)).T
    strengths = np.linalg.svd(rows, compute_uv=False)
    for most in (1, 3, 5):
        near = sum(np.multiply.outer(*one) for one in whole.principal(scales, most))
        missed = (near - pairs) / np.outer(scales, scales)[:, :, None, None]
        assert np.sqrt((missed**2).sum()) == pytest.approx(np.sqrt((strengths[most:] ** 2).sum()), rel=1e-6)

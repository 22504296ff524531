"""Sums of products of nodes and times: what is made of parts says what their sum does."""

import numpy as np
import pytest

from optstream.estimation.error_products import ErrorProducts

PARTS, NODES, TIMES = 3, 4, 5


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


def test_folded_parts_say_what_the_sum_of_them_does():
    """Covariances of parts, weighed differently at each time, against all pairs of parts added up."""
    whole = products(np.random.default_rng(4), PARTS * NODES, PARTS * TIMES)
    one_order = np.einsum("rij,rst->isjt", whole.nodes, whole.times)
    one_order += np.einsum("ia,asbt,jb->isjt", whole.columns, whole.forms, whole.columns)
    pairs = one_order.reshape(PARTS, NODES, PARTS, TIMES, PARTS, NODES, PARTS, TIMES)
    added = np.einsum("kiksljlt->isjt", pairs)
    added = 0.5 * (added + added.transpose(2, 1, 0, 3))
    folded = whole.folded(PARTS)
    np.testing.assert_allclose(folded.between(), added, atol=1e-12)
    np.testing.assert_allclose(folded.variances(), np.einsum("isis->is", added), atol=1e-12)
    np.testing.assert_allclose(folded.nodes, folded.nodes.transpose(0, 2, 1))
    np.testing.assert_allclose(folded.times, folded.times.transpose(0, 2, 1))
    assert folded.between() != pytest.approx(np.einsum("kikskjkt->isjt", pairs))  # no pairs of two parts


def test_one_part_folded_is_what_it_was():
    one = products(np.random.default_rng(5), NODES, TIMES)
    np.testing.assert_allclose(one.folded(1).between(), one.between(), rtol=1e-12)

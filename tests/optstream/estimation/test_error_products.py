"""Sums of products of nodes and times: what is made of parts says what their sum does."""

import numpy as np
import pytest

from optstream.estimation.error_products import ErrorProducts, halves, products_of_each
from tests.optstream.estimation.written_out import written_out

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
    np.testing.assert_allclose(written_out(folded), added, atol=1e-12)
    np.testing.assert_allclose(folded.variances(), np.einsum("isis->is", added), atol=1e-12)
    np.testing.assert_allclose(folded.nodes, folded.nodes.transpose(0, 2, 1))
    np.testing.assert_allclose(folded.times, folded.times.transpose(0, 2, 1))
    assert written_out(folded) != pytest.approx(np.einsum("kikskjkt->isjt", pairs))  # no pairs of two parts


def test_one_part_folded_is_what_it_was():
    one = products(np.random.default_rng(5), NODES, TIMES)
    np.testing.assert_allclose(written_out(one.folded(1)), written_out(one), rtol=1e-12)


def test_what_errs_apart_is_few_products():
    """Of 9 leaves whose covariances over times are sums of 2, as one for each leaf says it."""
    random = np.random.default_rng(6)
    parts, times = random.normal(size=(9, 2)), random.normal(size=(2, TIMES, TIMES))
    forms = np.tensordot(parts, times + times.transpose(0, 2, 1), axes=1)
    weights = random.normal(size=(NODES, 9))
    nodes, of_times = products_of_each(weights, forms)
    assert len(nodes) == len(of_times) == 2
    found = np.einsum("rij,rst->isjt", nodes, of_times)
    np.testing.assert_allclose(found, np.einsum("il,jl,lst->isjt", weights, weights, forms), atol=1e-12)


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


def test_what_errs_little_beside_others_is_not_left_out():
    """A leaf whose variance is 1e-16 of the others has a shape in time that none of them has."""
    random = np.random.default_rng(8)
    roots = random.normal(size=(3, TIMES, TIMES)) * np.array([1e6, 1e6, 1e-2])[:, None, None]
    forms = roots @ roots.transpose(0, 2, 1)
    nodes, times = products_of_each(np.eye(3), forms)
    found = np.einsum("rii,rss->is", nodes, times)
    np.testing.assert_allclose(found, np.einsum("iss->is", forms), rtol=1e-6)
    none, _ = products_of_each(np.eye(3), np.zeros((3, TIMES, TIMES)))
    assert not none.size

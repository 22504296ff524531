"""Rows as sums of few are the rows, and so are all products with them."""

import numpy as np
import pytest

from optstream.history.posterior import EXACT, SpannedRows

GENERATOR = np.random.default_rng(3)
N = 40
MODES = np.geomspace(1e-6, 1e3, N)
ALIKE = 1.0 / (1.0 + np.geomspace(0.1, 100.0, 500)[:, None] * MODES)
CASES = {
    "alike": (ALIKE, 24),
    "unlike": (GENERATOR.normal(size=(12, N)), 12),
    "more than their length": (GENERATOR.normal(size=(90, N)), N),
    "one": (ALIKE[:1], 1),
    "the same": (np.ones((5, N)), 1),
    "zeros": (np.zeros((3, N)), 0),
    "none": (np.zeros((0, N)), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_few_rows_span_all(name):
    rows, most = CASES[name]
    found = SpannedRows.of(rows)
    assert len(found.span) <= most
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    assert (np.abs(found.weights @ found.span - rows) <= 10 * EXACT * lengths).all()


@pytest.mark.parametrize("name", CASES)
def test_squares_and_products_are_those_of_the_rows(name):
    rows, _ = CASES[name]
    found, ends = SpannedRows.of(rows), GENERATOR.normal(size=(6, N))
    half = GENERATOR.normal(size=(N, N))
    matrix = half @ half.T
    moved = rows[:, None, :] * ends
    expected = np.einsum("itk,kl,iul->itu", moved, matrix, moved)
    size = np.abs(expected).max(initial=0.0)
    products = found.pairs @ found.products(ends, matrix).reshape(-1, 36)
    assert np.allclose(products.reshape(-1, 6, 6), expected, rtol=1e-9, atol=1e-10 * size)
    squares = np.einsum("itt->it", expected)
    assert np.allclose(found.squares(ends, matrix), squares, rtol=1e-9, atol=1e-10 * size)
    weighed = np.einsum("tk,ik,uk->itu", ends, rows, ends)
    found_weighed = np.tensordot(found.weights, found.weighed(ends), axes=1)
    assert np.allclose(found_weighed, weighed, rtol=1e-9, atol=1e-10 * np.abs(weighed).max(initial=0.0))
    assert found.squares(ends[:0], matrix).shape == (len(rows), 0)

"""The loss function against the linear programs that define it, by both ways of computing it."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from studies.leakage import LossFunction, loss_by_row_pairs
from studies.leakage.loss import log_ratio_of_numbers, loss_by_programs

AMOUNTS = [1e-3, 0.7, 8.0]


def test_degenerate_matrices_against_the_programs(degenerate):
    loss = LossFunction(degenerate)
    for a in AMOUNTS:
        assert loss(a) == pytest.approx(loss_by_programs(degenerate, a), abs=1e-6)
        assert loss_by_row_pairs(degenerate, a) == pytest.approx(loss(a), rel=1e-12, abs=1e-15)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data(), st.floats(1e-3, 6))
def test_random_matrices_against_the_programs(chains, data, a):
    """Beyond 6 the solver's tolerance shows: 1.3e-6 at 9, where the subsets below are right."""
    matrix = data.draw(chains.matrices)
    assert LossFunction(matrix)(a) == pytest.approx(loss_by_programs(matrix, a), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.floats(1e-3, 30))
def test_random_matrices_against_all_corners_of_the_programs(chains, data, a):
    """A program's best x has only its least and its largest value: all subsets for the larger are tried."""
    matrix = data.draw(chains.matrices)
    subsets = np.array(list(product([0.0, 1.0], repeat=len(matrix))))
    weights = 1 + subsets @ matrix.T * math.expm1(a)
    ratios = weights[:, :, None] / weights[:, None, :]
    assert LossFunction(matrix)(a) == pytest.approx(math.log(ratios.max()), rel=1e-11, abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.floats(0, 1000))
def test_the_pieces_say_what_algorithm_1_says_up_to_a_thousand(chains, data, a):
    matrix = data.draw(chains.matrices)
    assert LossFunction(matrix)(a) == pytest.approx(loss_by_row_pairs(matrix, a), rel=1e-11, abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.floats(0, 1000), st.floats(0, 1000))
def test_it_rises_never_faster_than_a_and_never_above_it(chains, data, one, other):
    loss = LossFunction(data.draw(chains.matrices))
    low, high = sorted((one, other))
    assert loss(0.0) == 0
    assert 0 <= loss(low) <= loss(high) + 1e-12
    assert loss(high) - loss(low) <= (high - low) * (1 + 1e-12) + 1e-12
    assert loss(high) <= high * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_jump_where_pieces_meet(chains, data):
    loss = LossFunction(data.draw(chains.matrices))
    pieces = loss.pieces
    assert (np.diff(pieces.starts) >= 0).all()
    for k, start in enumerate(pieces.starts.tolist()):
        if k:
            before = log_ratio_of_numbers(pieces.q[k - 1], pieces.d[k - 1], start)
            assert loss(start) == pytest.approx(before, rel=1e-9)


def test_large_leakage_is_not_lost(chains):
    """A public implementation returns 0 beyond a = 36, where its ratio meets q/d in floating point."""
    for matrix in (chains.issue, np.array([[0.6, 0.4], [0.3, 0.7]])):
        loss, last = LossFunction(matrix), 0.0
        for a in (30.0, 36.0, 37.0, 40.0, 100.0, 699.0, 701.0, 745.0, 1000.0, 1e6):
            assert loss(a) >= last > -1
            assert loss_by_row_pairs(matrix, a) == pytest.approx(loss(a), rel=1e-12)
            last = loss(a)
    assert LossFunction(chains.issue)(1000.0) == pytest.approx(1000 + math.log(0.8), rel=1e-15)
    assert last == pytest.approx(math.log(2), rel=1e-12)


def test_identity_carries_all_and_equal_rows_nothing():
    a = np.array([0, 1e-9, 0.3, 5, 699.5, 700.5, 1000])
    np.testing.assert_allclose(LossFunction(np.eye(3))(a), a, rtol=1e-14)
    for nothing in (np.full((4, 4), 0.25), np.ones((1, 1))):
        assert (LossFunction(nothing)(a) == 0).all()
        assert LossFunction(nothing)(3.0) == 0
        assert loss_by_row_pairs(nothing, 3.0) == 0


def test_a_large_matrix_has_few_pieces(chains):
    loss = LossFunction(chains.random(1, 50))
    assert repr(loss) == f"LossFunction(n_states=50, n_pieces={loss.pieces.q.size})"
    assert 2 <= loss.pieces.q.size <= 100
    for a in (0.05, 1.0, 20.0):
        assert loss(a) == pytest.approx(loss_by_row_pairs(chains.random(1, 50), a), rel=1e-12)


def test_algorithm_1_takes_one_number(chains):
    with pytest.raises(ParameterError, match="a must be one number"):
        loss_by_row_pairs(chains.issue, [1.0, 2.0])
    with pytest.raises(ParameterError, match="a must be a number"):
        LossFunction(chains.issue)("much")

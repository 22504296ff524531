"""Where leakage ends, against long iteration; infinite where it is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.leakage import (
    LossFunction,
    backward_leakage,
    forward_leakage,
    repeated_leakage,
    supremum,
)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.floats(1e-4, 4))
def test_it_is_where_iteration_ends(chains, data, epsilon):
    loss = LossFunction(data.draw(chains.matrices))
    found = supremum(loss, epsilon)
    reached = backward_leakage(np.full(3000, epsilon), loss)
    assert (reached <= found * (1 + 1e-9)).all()
    if math.isinf(found):
        assert loss(1e6) + epsilon >= 1e6 - 1e-9  # so that no a is large enough
    else:
        assert loss(found) + epsilon == pytest.approx(found, rel=1e-9)


def test_infinite_where_a_state_is_never_left_and_epsilon_large_enough():
    """Theorem 11 with d = 0: finite below log(1/q), here log(1/0.8)."""
    border = math.log(1.25)
    matrix = [[0.8, 0.2], [0, 1]]
    assert math.isfinite(supremum(matrix, border - 1e-6))
    assert supremum(matrix, border) == math.inf
    assert supremum(matrix, border + 1e-6) == math.inf
    assert supremum(np.eye(2), 1e-300) == math.inf
    assert supremum(np.eye(2), 0.0) == 0


def test_reducible_chains_are_infinite_and_forgetful_ones_epsilon():
    blocks = np.kron(np.eye(2), np.full((2, 2), 0.5))
    assert supremum(blocks, 0.01) == math.inf
    assert supremum(np.full((3, 3), 1 / 3), 0.4) == 0.4
    assert supremum(None, 0.4) == 0.4


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_repeated_period_ends_where_iteration_does(chains, data, epsilons):
    loss = LossFunction(data.draw(chains.matrices))
    before, after = repeated_leakage(epsilons, backward=loss, forward=loss)
    many = np.tile(epsilons, 400)
    reached = backward_leakage(many, loss)[-len(epsilons) :]
    ahead = forward_leakage(many, loss)[: len(epsilons)]
    # numbers below the least normal one have no digits left to be right in
    assert (reached <= before * (1 + 1e-9) + 1e-300).all()
    assert (ahead <= after * (1 + 1e-9) + 1e-300).all()
    if np.isfinite(before).all():
        again = backward_leakage(np.array([before[-1], *epsilons]), loss)[1:]
        np.testing.assert_allclose(again, before, rtol=1e-9, atol=1e-50)
        assert np.isfinite(after).all()
    elif max(epsilons) > 0:
        n = len(epsilons)
        assert loss(1e6) * n + sum(epsilons) >= n * 1e6 - 1e-6

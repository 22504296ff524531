"""Legal matrices, stationary distributions, and time reversed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from studies.leakage import LossFunction, backward_transition, stationary_distribution


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5]], r"square matrix of at least one state; got shape \(1, 2\)"),
        (np.zeros((0, 0)), r"at least one state; got shape \(0, 0\)"),
        ([1.0], "square matrix"),
        ([[1.1, -0.1], [0, 1]], "at least 0; got -0.1 at row 0, column 1"),
        ([[1, 0], [math.nan, 1]], "got nan at row 1, column 0"),
        ([[1, 0], [0, math.inf]], "got inf at row 1, column 1"),
        ([[1, 0], [0.5, 0.5 + 2e-9]], r"row 1 \(counted from 0\) adds up to 1.000000002"),
        ([[0.8, 0], [0.2, 1]], "row i is the distribution given state i; row 0"),
        ([["x", 1], [0, 1]], "transition must be a matrix of numbers"),
        ([[1, 0], [1]], "transition must be a matrix of numbers"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(matrix, message):
    with pytest.raises(ParameterError, match=message):
        LossFunction(matrix)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_it_stays_and_reversing_twice_is_the_chain_itself(chains, seed, n_states):
    forward = chains.random(seed, n_states, 0.5)
    stationary = stationary_distribution(forward)
    np.testing.assert_allclose(stationary @ forward, stationary, rtol=1e-9)
    backward = backward_transition(forward)
    np.testing.assert_allclose(backward.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(backward_transition(backward), forward, rtol=1e-6, atol=1e-300)


def test_backward_is_bayes_by_simulation_of_all_pairs(chains):
    """Row i of the result is about what came before i: joint probabilities, counted out."""
    forward, prior = chains.random(4, 3), np.array([0.2, 0.5, 0.3])
    backward = backward_transition(forward, prior)
    for now in range(3):
        joint = [prior[before] * forward[before, now] for before in range(3)]
        np.testing.assert_allclose(backward[now], np.array(joint) / sum(joint), rtol=1e-14)
    assert not np.allclose(backward, backward_transition(forward))

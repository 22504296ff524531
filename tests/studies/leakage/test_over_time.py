"""Backward, forward and total leakage: known figures, recursions, and what an adversary really learns."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.leakage import (
    LossFunction,
    backward_leakage,
    backward_transition,
    forward_leakage,
    sequence_leakage,
    stationary_distribution,
    total_leakage,
)

series = st.lists(st.floats(0, 5), min_size=1, max_size=12).map(np.array)


def test_the_known_figures(chains):
    epsilons = np.full(10, 0.1)
    assert backward_leakage(epsilons, chains.issue)[9] == pytest.approx(0.4963886, abs=5e-8)
    total = total_leakage(epsilons, backward=chains.issue, forward=chains.issue)
    assert total[4] == pytest.approx(0.6368413, abs=5e-8)
    assert total[4] == pytest.approx(total[5], rel=1e-12)
    assert total.argmax() in (4, 5)


@settings(max_examples=60, deadline=None)
@given(st.data(), series)
def test_the_recursions_as_the_paper_writes_them(chains, data, epsilons):
    matrix = data.draw(chains.matrices)
    loss = LossFunction(matrix)
    backward, forward = backward_leakage(epsilons, loss), forward_leakage(epsilons, matrix)
    assert backward[0] == epsilons[0]
    assert forward[-1] == epsilons[-1]
    np.testing.assert_allclose(backward[1:], loss(backward[:-1]) + epsilons[1:], rtol=1e-12)
    np.testing.assert_allclose(forward[:-1], loss(forward[1:]) + epsilons[:-1], rtol=1e-12)
    total = total_leakage(epsilons, backward=loss, forward=loss)
    np.testing.assert_allclose(total, backward + forward - epsilons, rtol=1e-12)
    assert (epsilons <= total + 1e-12).all()
    assert (total <= epsilons.sum() + 1e-9).all()


def test_one_who_knows_nothing_learns_epsilon_and_one_who_knows_all_the_sum():
    epsilons = np.array([0.1, 0.4, 0, 0.2])
    np.testing.assert_array_equal(backward_leakage(epsilons, None), epsilons)
    np.testing.assert_allclose(total_leakage(epsilons, backward=None, forward=None), epsilons, rtol=1e-15)
    np.testing.assert_allclose(
        total_leakage(epsilons, backward=np.eye(2), forward=np.eye(2)), np.full(4, 0.7), rtol=1e-12
    )
    np.testing.assert_allclose(
        total_leakage(epsilons, backward=np.eye(2), forward=None), [0.1, 0.5, 0.5, 0.7], rtol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(st.data(), series)
def test_several_steps_together(chains, data, epsilons):
    """Theorem 3: one step is the total leakage, all of them the sum of the epsilons."""
    backward, forward = data.draw(chains.matrices), data.draw(chains.matrices)
    known = {"backward": backward, "forward": forward}
    n_steps = epsilons.size
    np.testing.assert_allclose(
        sequence_leakage(epsilons, 1, **known), total_leakage(epsilons, **known), rtol=1e-12
    )
    np.testing.assert_allclose(sequence_leakage(epsilons, n_steps, **known), [epsilons.sum()], rtol=1e-9)
    before, after = backward_leakage(epsilons, backward), forward_leakage(epsilons, forward)
    for length in range(2, n_steps + 1):
        together = sequence_leakage(epsilons, length, **known)
        expected = [
            before[t] + epsilons[t + 1 : t + length - 1].sum() + after[t + length - 1]
            for t in range(n_steps - length + 1)
        ]
        np.testing.assert_allclose(together, expected, rtol=1e-9, atol=1e-12)


def learned(table, start, forward, steps):
    """The true loss about the values at `steps`: the greatest log ratio of likelihoods of an output.

    table: {path: distribution of the output}; every path of a chain with this start.
    """
    joint, mass = {}, {}
    for path, outputs in table.items():
        weight = start[path[0]] * math.prod(forward[i, j] for i, j in itertools.pairwise(path))
        key = tuple(path[t] for t in steps)
        joint[key] = joint.get(key, 0) + weight * outputs
        mass[key] = mass.get(key, 0) + weight
    likelihoods = np.array([joint[key] / mass[key] for key in joint])
    return float(np.log(likelihoods.max(axis=0) / likelihoods.min(axis=0)).max())


def loss_of_step(table, step, n_states):
    """The loss when only that step changes: what a spend charges it."""
    return max(
        float(np.abs(np.log(table[path] / table[(*path[:step], value, *path[step + 1 :])])).max())
        for path in table
        for value in range(n_states)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 3))
def test_a_joint_measurement_tells_no_more_than_the_total_leakage(chains, seed, spread):
    """Any table of likelihoods over whole paths, not only a release a step (docs/methods/leakage.md, 3)."""
    n_states, n_steps, generator = 2 + seed % 2, 4, np.random.default_rng(seed)
    forward = chains.random(seed, n_states)
    start = stationary_distribution(forward)
    table = {
        path: generator.uniform(1, 1 + spread, 3)
        for path in itertools.product(range(n_states), repeat=n_steps)
    }
    for output in range(3):  # each output's likelihood alone is a mechanism of one output
        one = {path: values[output : output + 1] for path, values in table.items()}
        epsilons = np.array([loss_of_step(one, step, n_states) for step in range(n_steps)])
        known = {"backward": backward_transition(forward), "forward": forward}
        total = total_leakage(epsilons, **known)
        for step in range(n_steps):
            assert learned(one, start, forward, [step]) <= total[step] + 1e-12
        for step, bound in enumerate(sequence_leakage(epsilons, 2, **known)):
            assert learned(one, start, forward, [step, step + 1]) <= bound + 1e-12


def test_the_total_leakage_is_attained_and_a_forgetful_bound_is_not_enough(chains):
    """Releases of each step that tell the two states apart by exactly epsilon; all say the same state."""
    forward, epsilon, n_steps = np.array([[0.9, 0.1], [0.1, 0.9]]), 0.5, 5
    table = {
        path: np.array([math.exp(epsilon * sum(path))]) for path in itertools.product((0, 1), repeat=n_steps)
    }
    found = learned(table, np.array([0.5, 0.5]), forward, [2])
    total = total_leakage(np.full(n_steps, epsilon), backward=forward, forward=forward)[2]
    assert found == pytest.approx(total, rel=1e-9)
    assert found > 2 * epsilon

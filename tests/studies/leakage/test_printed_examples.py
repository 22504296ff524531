"""Figures that the paper's text prints or draws: examples 1 to 5."""

import numpy as np
import pytest

from studies.leakage import LossFunction, backward_leakage, supremum, total_leakage

NEVER_LEFT = [[0.8, 0.2], [0, 1]]


def test_examples_2_and_3_of_ten_releases_at_a_tenth():
    epsilons = np.full(10, 0.1)
    known = [np.eye(2), NEVER_LEFT, None]
    last = [backward_leakage(epsilons, one)[-1] for one in known]
    assert last == pytest.approx([1.0, 0.49639, 0.1], abs=1e-5)
    everything = total_leakage(epsilons, backward=np.eye(2), forward=np.eye(2))
    assert everything == pytest.approx(np.ones(10))


def test_the_transition_point_of_the_example_below_algorithm_2():
    """q = (0.2, 0.3, 0.5) and d = (0.1, 0, 0.9) change pieces at log(13 / 3), printed as 1.47."""
    loss = LossFunction([[0.2, 0.3, 0.5], [0.1, 0, 0.9], [0.1, 0, 0.9]])
    border = np.log(13 / 3)
    assert border == pytest.approx(1.47, abs=0.005)
    for a in (0.1, border - 0.01, border, border + 0.01, 5.0):
        grown = np.expm1(a)
        first, second = (0.5 * grown + 1) / (0.1 * grown + 1), 0.3 * grown + 1
        assert (first > second) == (a < border) or a == border
        reversed_pair = (0.9 * grown + 1) / (0.5 * grown + 1)
        assert loss(a) == pytest.approx(np.log(max(first, second, reversed_pair)))


def test_example_5_ends_where_theorem_11_says():
    assert supremum(NEVER_LEFT, 0.23) == np.inf  # above log(1 / 0.8)
    assert supremum(np.eye(2), 0.001) == np.inf
    assert supremum(NEVER_LEFT, 0.15) == pytest.approx(1.19224, abs=1e-5)
    steps = backward_leakage(np.full(3000, 0.15), NEVER_LEFT)
    assert steps[-1] == pytest.approx(supremum(NEVER_LEFT, 0.15), rel=1e-9)

"""Metrics beside the formulas, written out."""

import numpy as np
import pytest

from optstream import AggregationTree
from studies.evaluation.metrics import relative_error, violation


def test_relative_error_has_a_floor():
    assert relative_error(np.array([3.0, 1.0]), np.array([4.0, 0.0]), 1.0) == pytest.approx((0.25 + 1.0) / 2)
    assert relative_error(np.array([3.0, 1.0]), np.array([4.0, 0.0]), 10.0) == pytest.approx(0.1)


def test_the_largest_violation_over_nodes_periods_and_steps():
    tree = AggregationTree.from_parents({"all": None, "a": "all", "b": "all", "b1": "b", "b2": "b"})
    leaves = {"a": [1.0, 2.0], "b1": [3.0, 4.0], "b2": [5.0, 6.0]}
    whole = tree.add_up(np.array([leaves[name] for name in tree.leaves]))
    series = np.array([whole, whole])
    assert violation(series, tree) == 0.0
    series[1, 2, 0] += 0.5  # b is 0.5 more than its children, and all 0.5 less than its own
    assert violation(series, tree) == 0.5
    series[0, 0, 1] -= 3.0
    assert violation(series, tree) == 3.0

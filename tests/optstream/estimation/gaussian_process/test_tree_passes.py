"""Modes are passed over a few at a time, and nothing hangs on how many."""

import numpy as np
import pytest

from optstream.history import tree as tree_passes
from optstream.history.tree import pass_over_tree
from optstream.stream import AggregationTree

TREE = AggregationTree.from_parents({"all": None, "a": "all", "b": "all", "a1": "a", "a2": "a", "b1": "b"})


@pytest.mark.parametrize("at_once", [1, 13])
def test_a_few_modes_at_a_time_give_what_all_do(monkeypatch, at_once):
    draws = np.random.default_rng(1)
    noise = np.array([0.3, np.inf, 0.2, 0.5, 0.1, 0.4])
    sides = tuple(np.where(np.isfinite(noise)[:, None], draws.normal(size=(6, 5)), 0.0) for _ in range(2))
    variances = np.exp(draws.normal(size=(3, 5)))
    whole = pass_over_tree(TREE, variances, noise, sides)
    monkeypatch.setattr(tree_passes, "AT_ONCE", at_once)
    parts = pass_over_tree(TREE, variances, noise, sides)
    assert parts.log_density == pytest.approx(whole.log_density, rel=1e-12)
    for name in ("means", "pulls", "variances", "prior"):
        assert np.allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12)

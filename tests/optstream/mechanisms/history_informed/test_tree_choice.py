"""Level shares by the model: from public figures alone, by its own measure never worse than equal ones."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.mechanisms.blocks import (
    LEAST,
    Figures,
    choose_level_shares,
    choose_tree_blocks,
    expected_error_of,
)
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import AggregationTree

SLOTS = 24
FLAT = AggregationTree.from_parents({"all": None} | {str(leaf): "all" for leaf in range(5)})
RAGGED = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "B1": "B", "B2": "B", "B3": "B"})
ALONE = AggregationTree.from_parents({"all": None})


def expected(tree, noise, shares):
    blocks = choose_tree_blocks(tree, Figures(SLOTS, SLOTS, noise), tuple(map(Fraction, shares)))
    return expected_error_of(tree, Figures(SLOTS, SLOTS, noise), tuple(map(Fraction, shares)), blocks)


@pytest.mark.slow
@pytest.mark.parametrize("tree", [FLAT, RAGGED, ALONE])
@pytest.mark.parametrize(
    "noise",
    [pytest.param(1e-4, marks=pytest.mark.nightly), 1e-3, pytest.param(0.02, marks=pytest.mark.nightly), 0.5],
)
def test_they_add_up_fit_the_tree_and_are_never_worse_than_equal_ones(tree, noise):
    shares = choose_level_shares(tree, Figures(SLOTS, SLOTS, noise))
    assert sum(shares) == 1
    assert all(shares[tree.depths[leaf]] >= LEAST for leaf in tree.leaf_indices)
    equal = [Fraction(1, tree.n_levels)] * tree.n_levels
    assert expected(tree, noise, shares) <= expected(tree, noise, equal)


def informed(**given):
    return HistoryInformed(PrivacyModel("1/10", SLOTS, 1), **{"scale": 1500.0} | given)


@pytest.mark.slow
def test_nothing_that_is_read_changes_them_and_they_cost_what_was_asked():
    """Two streams as different as can be: the same spends, step by step, known before either is read."""
    mechanism = HistoryInformedTree(informed(), FLAT, "model")
    spends = []
    for load in (np.zeros((5, SLOTS)), np.random.default_rng(0).uniform(0, 9000, (5, SLOTS))):
        state, drawn = None, []
        for day in range(3):
            planned = mechanism.plan(SLOTS, day * SLOTS, state)
            release = mechanism.release(load, noise=simulated_noise(1), first_step=day * SLOTS, state=state)
            state, drawn = release.state, [*drawn, *release.spends]
            assert release.spends == planned
        spends.append(drawn)
    assert spends[0] == spends[1]
    assert worst_window(spends[0], SLOTS).epsilon <= Fraction("1/10")


def test_without_a_scale_or_by_another_word_they_are_refused():
    with pytest.raises(ParameterError, match="without a scale"):
        HistoryInformedTree(informed(scale=None), FLAT, "model")
    with pytest.raises(ParameterError, match="got 'best'"):
        HistoryInformedTree(informed(), FLAT, "best")

"""How covariates may move blocks: sums over steps, only where they apply, whatever their unit."""

import numpy as np

from optstream.history.blocks import Blocks
from optstream.history.covariates import columns_of
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate

SLOTS, N_DAYS = 6, 12
TREE = AggregationTree.from_parents({"r": None, "a": "r", "b": "r", "c": "r"})
SIZES = np.array([1.0, 2.0, 4.0])
VALUES = np.random.default_rng(0).normal(size=(4, N_DAYS)) + np.arange(N_DAYS) % 5
STEPS = Blocks.at(np.arange(SLOTS * N_DAYS))


def columns(values, blocks=STEPS, level=None):
    return columns_of((Covariate("one", 0, values, level=level),), TREE, SIZES, blocks, SLOTS).values


def test_a_block_is_worth_times_the_sum_of_its_steps():
    starts, lengths, weight = np.array([0, 4, 30]), np.array([1, 4, 3]), np.array([1.0, 0.25, 2.0])
    single = columns(VALUES)
    found = columns(VALUES, Blocks.at(starts, lengths, weight=weight))
    for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        expected = weight[place] * single[:, :, start : start + length].sum(axis=2)
        assert np.allclose(found[:, :, place], expected)


def test_leaves_are_moved_by_their_size_and_nodes_by_the_sum():
    found = columns(np.repeat(VALUES[:1], 4, axis=0))
    common = found[:25]
    assert np.allclose(common[:, 2:], common[:, 1:2] * np.array([2.0, 4.0])[:, None])
    assert np.allclose(found[:, 0], found[:, 1:].sum(axis=1))
    assert np.array_equal(found, columns(VALUES[:1]))
    assert np.array_equal(columns(VALUES), columns(VALUES[1:])), "a row for each node is one for each leaf"


def test_missing_days_lie_between_their_neighbours_and_unknown_ones_move_nothing():
    gaps, between = VALUES.copy(), VALUES.copy()
    gaps[:, 4] = np.nan
    between[:, 4] = (VALUES[:, 3] + VALUES[:, 5]) / 2
    assert np.allclose(columns(gaps), columns(between))
    outside = columns(VALUES, Blocks.at(np.array([-1, SLOTS * N_DAYS])))
    assert not outside.any()


def test_a_wild_value_moves_no_more_than_a_bounded_amount():
    values = VALUES.copy()
    values[:, 5] = 1e15
    assert np.abs(columns(values)).max() < 4.0

"""Counts over a tree: which blocks are looked at, and where none were measured."""

from datetime import date

import numpy as np
import pytest

from optstream.history.blocks import BlockHistory
from optstream.history.counts import LEAST_VARIANCE, fit_counts
from optstream.history.filter import FilterState
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

DAYS = PublicDays.from_date(date(2024, 1, 1), 24)
TREE = AggregationTree(
    ("city", "a", "b", *(f"z{number}" for number in range(6))), (-1, 0, 0, 1, 1, 1, 2, 2, 2)
)
RATES = np.array([0.1, 0.1, 9.0, 2.0, 0.5, 0.1])
BELIEF = FilterState(TemporalPrior.broad(24), DAYS)


def history(level, starts, length, scale, seed=0):
    hours = np.arange(30 * 24)
    rates = TREE.add_up(RATES[:, None] * (1 + 0.5 * np.sin(hours * np.pi / 12)))
    rates = rates[TREE.levels[level].start : TREE.levels[level].stop]
    sums = np.stack([rates[:, at : at + length].sum(axis=1) for at in starts], axis=1)
    noise = np.random.default_rng([seed, level]).laplace(size=sums.shape) * scale
    same = np.full(starts.size, length)
    return BlockHistory(starts, same, np.full(starts.size, float(scale)), np.rint(sums + noise))


def histories():
    dense, small = np.arange(0, 28 * 24, 13), np.arange(0, 28 * 24, 25)
    return {0: history(0, dense, 2, 6), 1: history(1, dense, 2, 12), 2: history(2, small, 4, 8)}


def fitted(known, small=2, scale=2.0):
    steps = range(27 * 24, 28 * 24)
    return fit_counts(BELIEF, known, TREE, small, steps, scale)


def test_busy_leaves_are_busy_and_empty_ones_nearly_0():
    fit = fitted(histories())
    assert fit.means.shape == fit.variances.shape == fit.given.shape == (9, 24)
    leaves = fit.means[3:].mean(axis=1)
    assert leaves[2] > 5
    assert leaves[[0, 1, 5]].max() < 1.5
    assert fit.means[3:].min() >= 0
    assert (fit.variances > 0).all()
    assert (fit.given[:3] >= fit.variances[:3]).all()
    measured = np.isin(np.arange(27 * 24, 28 * 24), np.arange(0, 28 * 24, 13)[:, None] + np.arange(2))
    assert (fit.count_variances[:, ~measured] >= 1).all()
    assert (fit.count_variances[3:] >= 1).all()
    assert (fit.count_variances[:3, measured] < 1).all()


def test_nodes_are_as_sure_as_the_leaves_that_they_are_the_sums_of():
    """City and boroughs with blocks of noise 400, and zones with 2: errors are those of zones, what nodes
    give way by is not.
    """
    hardly, dense = histories(), np.arange(0, 28 * 24, 13)
    hardly |= {0: history(0, dense, 2, 400), 1: history(1, dense, 2, 400)}
    surer, unsure = ({**hardly, 2: history(2, np.arange(0, 28 * 24, 25), 4, noise)} for noise in (2, 400))
    known, unknown = fitted(surer), fitted(unsure)
    assert (known.variances[:3] < 0.3 * unknown.variances[:3]).all()
    assert known.given[:3] == pytest.approx(unknown.given[:3])
    # the control: leaves that are noisier than their parents tell nothing of these
    apart = fitted(histories() | {2: history(2, np.arange(0, 28 * 24, 25), 4, 400)})
    assert apart.variances[:3] + LEAST_VARIANCE == pytest.approx(apart.given[:3])


def test_blocks_of_another_plans_noise_are_left_out():
    known, other = histories(), history(2, np.arange(0, 26 * 24, 25), 4, 80, seed=3)
    mixed = other.joined(known[2].between(26 * 24, 28 * 24))
    alone = fitted({**known, 2: known[2].between(26 * 24, 28 * 24)})
    assert np.array_equal(fitted({**known, 2: mixed}).means, alone.means)

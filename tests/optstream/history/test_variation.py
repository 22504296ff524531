"""How counts varied, as far as measurements tell: by dense conditioning, and on counts that are drawn."""

import numpy as np
import pytest

from optstream.history.blocks import BlockHistory
from optstream.history.counts import count_bands, count_variation
from optstream.stream import AggregationTree

TREE = AggregationTree(("all", "a", "b", "c", "d", "e"), (-1, 0, 0, 1, 1, 2))
LEAVES = TREE.leaf_indices
STEPS = range(24, 36)


def measured(truth, scales, starts, length, random, first=0):
    """Blocks of every level that has a scale, with Laplace noise, on (n_nodes, n_steps) from step `first`."""
    sums = np.stack([truth[:, at - first : at - first + length].sum(axis=1) for at in starts], axis=1)
    found = {}
    for level, scale in scales.items():
        at = slice(TREE.levels[level].start, TREE.levels[level].stop)
        noisy = np.rint(sums[at] + random.laplace(size=sums[at].shape) * scale)
        same = np.full(len(starts), length)
        found[level] = BlockHistory(np.array(starts), same, np.full(len(starts), float(scale)), noisy)
    return found


def drawn(scales=None, length=2):
    random = np.random.default_rng(3)
    rates = random.uniform(5.0, 400.0, (LEAVES.size, 1)) * random.uniform(0.5, 1.5, (1, len(STEPS)))
    truth = TREE.add_up(random.poisson(rates).astype(float))
    known = measured(truth, scales or {0: 9, 1: 12, 2: 6}, [24, 27, 31], length, random, 24)
    return TREE.add_up(rates), known, truth


@pytest.mark.parametrize("scales", [{0: 9, 1: 12, 2: 6}, {0: 9, 2: 6}, {1: 12}])
def test_it_is_the_posterior_of_independent_leaves_given_noisy_sums(scales):
    """Dense conditioning, block by block; the control leaves one measurement out."""
    expected, known, _ = drawn(scales)
    varied = count_variation(TREE, expected, known, STEPS)
    rows = np.concatenate([np.arange(TREE.levels[one].start, TREE.levels[one].stop) for one in scales])
    noise = np.concatenate([np.full(len(TREE.levels[one]), 2.0 * scales[one] ** 2) for one in scales])
    sums, every = TREE.add_up(np.eye(LEAVES.size))[rows], TREE.add_up(np.eye(LEAVES.size))
    values = np.concatenate([known[one].sums for one in scales])
    for number, start in enumerate((0, 3, 7)):
        whole = expected[:, start : start + 2].sum(axis=1)

        def found(counted, chosen=slice(None), whole=whole, number=number):
            gain = np.diag(counted) @ sums[chosen].T
            inner = sums[chosen] @ gain + np.diag(noise[chosen])
            surprise = (values[:, number] - whole[rows])[chosen]
            return gain @ np.linalg.solve(inner, surprise), gain @ np.linalg.solve(inner, gain.T)

        moved = every @ found(whole[LEAVES])[0]
        np.testing.assert_allclose(varied.moved[:, start : start + 2].sum(axis=1), moved, rtol=1e-9)
        assert not np.allclose(every @ found(whole[LEAVES], slice(1, None))[0], moved, rtol=1e-3)
        counted = whole[LEAVES] + moved[LEAVES]
        explained = found(counted)[1]
        part = expected[0, start : start + 2] / whole[0]
        np.testing.assert_allclose(
            varied.known[:, start : start + 2],
            np.outer(np.diag(every @ explained @ every.T) / (every @ counted), part),
            rtol=1e-9,
        )
    outside = [2, 5, 6, 9, 10, 11]
    assert not varied.moved[:, outside].any()
    assert not varied.known[:, outside].any()


def test_large_counts_that_were_measured_are_known_to_the_noise_and_bands_hold():
    """9,000 counts of each leaf, false alarm below 1e-6; the control takes them for unmeasured."""
    random = np.random.default_rng(8)
    steps = range(0, 9_000)
    rates = np.repeat(np.array([[4_000.0], [9_000.0], [2_500.0]]), len(steps), axis=1)
    counts = random.poisson(rates).astype(float)
    truth, expected = TREE.add_up(counts), TREE.add_up(rates)
    known = measured(truth, {2: 20}, list(steps), 1, random)
    varied = count_variation(TREE, expected, known, steps)
    values, left = (expected + varied.moved)[LEAVES], (1.0 - varied.known)[LEAVES]
    missed = np.abs(values - counts).mean()
    assert missed < 21  # Laplace noise of scale 20; counts vary by 51, 76 and 40 on average
    low, high = count_bands(values, np.zeros_like(values), left)
    held = ((low <= counts) & (counts <= high)).mean()
    assert 0.93 < held < 0.97
    low, high = count_bands(values, np.zeros_like(values), 1.0)
    assert ((low <= counts) & (counts <= high)).mean() > 0.99

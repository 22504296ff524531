"""The error of a merged unit is told as large as it is, though the filter knows one noise for all its level.

A merged unit's blocks of the days before have the noise of all its parts. To raise the noise of its whole
level by as much was tried: what is learned of the readings then takes more of their spread for noise, and the
told errors of all units became smaller, not larger.
"""

from datetime import date, timedelta

import numpy as np
import pytest

from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import DatedHierarchy, TreeChange

CHANGED = date(2016, 7, 1)
STEPS, SIZE, BEFORE, AFTER = 24, 300.0, 14, 3
LEAVES = [f"{number:02}" for number in range(16)]
MERGED = {f"m{number}": (LEAVES[2 * number], LEAVES[2 * number + 1]) for number in range(4)}
HIERARCHY = DatedHierarchy(
    (("FR", None), *((leaf, "FR") for leaf in LEAVES)), (TreeChange(CHANGED, merged=MERGED),)
)


def readings(seed):
    """(days, leaves, steps): a day's shape, times a size of each leaf that wanders by 5 % a day."""
    random = np.random.default_rng(seed)
    shape = SIZE * (1 + 0.6 * np.sin(2 * np.pi * np.arange(STEPS) / STEPS))
    sizes = np.exp(np.cumsum(random.normal(0, 0.05, (BEFORE + AFTER, len(LEAVES))), axis=0))
    chance = random.normal(0, 15, (*sizes.shape, STEPS))
    return np.maximum(np.round(sizes[..., np.newaxis] * shape + chance), 0)


def squares(seed):
    """Of merged units, on the days since: mean square error, the told one, and the told one of a part."""
    noise, state, found = simulated_noise(seed), None, []
    for number, day_readings in enumerate(readings(seed)):
        day = CHANGED + timedelta(days=number - BEFORE)
        tree = HIERARCHY.tree_of(day)
        pattern = HistoryInformed(PrivacyModel("1/4", STEPS, "10", resolution="1"), scale=SIZE)
        mechanism = HistoryInformedTree(pattern, tree, ("1/4", "3/4"))
        of_leaf = dict(zip(LEAVES, day_readings, strict=True))
        of_leaf |= {unit: of_leaf[one] + of_leaf[other] for unit, (one, other) in MERGED.items()}
        truth = np.array([of_leaf[leaf] for leaf in tree.leaves])
        if day == CHANGED:
            between = HIERARCHY.map_between(day - timedelta(days=1), day)
            state = mechanism.recall((), mechanism.carried_over(state, between, number * STEPS))
        release = mechanism.release(truth, noise=noise, first_step=number * STEPS, state=state)
        state = release.state
        if day >= CHANGED:
            merged = np.array([node in MERGED for node in tree.nodes])
            single = np.array([node in LEAVES for node in tree.nodes])
            errors, told = release.values - tree.add_up(truth), release.standard_errors**2
            found.append([(errors[merged] ** 2).mean(), told[merged].mean(), told[single].mean()])
    return np.mean(found, axis=0)


@pytest.mark.nightly
def test_a_merged_units_error_is_told_as_large_as_it_is():
    """Six streams with seeds: 0.4 of it. The control is told as sure as one of its parts is."""
    error, told, of_a_part = np.mean([squares(seed) for seed in range(6)], axis=0)
    print(
        f"\nmean square error over the told: {error / told:.2f}; over that of a part: {error / of_a_part:.2f}"
    )
    assert error < told
    assert error > of_a_part

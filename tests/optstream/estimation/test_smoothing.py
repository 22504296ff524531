"""Smoothers against their formulas, prefix by prefix."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.estimation.smoothing import NOISE_LEFT, SMOOTHERS, smooth
from optstream.stream import Measured

NOISY = np.random.default_rng(2).integers(-100, 100, (2, 12))
GROUPS = [[0, 0, 0, 0, 4, 5, 5, 5, 5, 9, 9, 9], [0] * 12]
DIRECT = {
    "average": lambda groups: groups.mean(axis=-1),
    "median": lambda groups: np.median(groups, axis=-1),
    "james_stein": lambda groups: (
        groups.mean(axis=-1) + (groups[..., -1] - groups.mean(axis=-1)) / groups.shape[-1]
    ),
}


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
def test_each_step_is_smoothed_over_its_group_so_far(smoother):
    measured = Measured.from_public(NOISY, [], variances=[np.array([[8.0]] * 2)])
    estimate = smooth(replace(measured, choices={"groups": GROUPS}), smoother)
    for series in range(2):
        for step in range(12):
            group = NOISY[series, GROUPS[series][step] : step + 1].astype(float)
            assert estimate.values[series, step] == pytest.approx(DIRECT[smoother](group), abs=1e-9)
            left = NOISE_LEFT[smoother](np.array([len(group)]))[0]
            assert estimate.variances[series, step] == pytest.approx(8 * left)


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_the_noise_that_is_left_is_that_of_laplace_noise(smoother, size):
    """40,000 groups. A sample variance is off by 1.3 % (one standard deviation): 9 % is never met."""
    noise = np.random.default_rng(size).laplace(0, 1, (40_000, size))
    left = 2 * NOISE_LEFT[smoother](np.array([size]))[0]
    assert left == pytest.approx(np.var(DIRECT[smoother](noise)), rel=0.09)
    assert size == 1 or left != pytest.approx(2.0, rel=0.09)

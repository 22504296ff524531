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


def measured_of(noisy, groups, first_step=0, before=None):
    measured = Measured.from_public(noisy, [], variances=[np.array([[8.0]] * len(noisy))])
    return replace(measured, first_step=first_step, before=before, choices={"groups": groups})


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
def test_each_step_is_smoothed_over_its_group_so_far(smoother):
    estimate = smooth(measured_of(NOISY, GROUPS), smoother)
    for series in range(2):
        for step in range(12):
            group = NOISY[series, GROUPS[series][step] : step + 1].astype(float)
            assert estimate.values[series, step] == pytest.approx(DIRECT[smoother](group), abs=1e-9)
            left = NOISE_LEFT[smoother](np.array([len(group)]))[0]
            assert estimate.variances[series, step] == pytest.approx(8 * left)


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
def test_a_group_goes_on_from_the_period_before(smoother):
    whole = smooth(measured_of(NOISY, GROUPS), smoother)
    before = {"noisy": [NOISY[0, 5:7].tolist(), NOISY[1, :7].tolist()]}
    part = smooth(measured_of(NOISY[:, 7:], [row[7:] for row in GROUPS], 7, before), smoother)
    assert np.allclose(part.values, whole.values[:, 7:])
    assert np.allclose(part.variances, whole.variances[:, 7:])


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 30])
def test_the_noise_that_is_left_is_that_of_laplace_noise(smoother, size):
    """100,000 groups. A sample variance is off by under 1 % (one standard deviation): 9 % is never met."""
    noise = np.random.default_rng(size).laplace(0, 1, (100_000, size))
    left = 2 * NOISE_LEFT[smoother](np.array([size]))[0]
    assert left == pytest.approx(np.var(DIRECT[smoother](noise)), rel=0.09)
    assert size == 1 or left != pytest.approx(2.0, rel=0.09)

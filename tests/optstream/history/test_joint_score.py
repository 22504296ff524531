"""What joint noise tells: the score against numbers, its mean square, groups with blocks that are lost."""

import numpy as np
import pytest
from scipy.special import ndtr

from optstream.history.blocks import Blocks
from optstream.history.filter import star
from optstream.history.posterior import NoiseGroups, Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.history.robust import (
    joint_information,
    joint_score,
    with_known_noise,
)
from optstream.noise import joint_noise, simulated_noise

pytestmark = pytest.mark.slow


def log_density(surprise, doubt, size):
    """By the integral over the radius, on a fine grid."""
    radius, deviation = np.linspace(1e-4, 80, 40_001), np.sqrt(doubt)
    density = radius**size * np.exp(-radius)
    for value in surprise:
        inside = ndtr((value + radius) / deviation) - ndtr((value - radius) / deviation)
        density = density * inside / (2 * radius)
    return np.log(np.trapezoid(density, radius))


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("doubt", [0.1, 1.0, 4.0])
def test_the_score_is_the_slope_of_the_density_also_where_blocks_of_a_group_are_lost(size, doubt):
    surprise = np.random.default_rng(size).normal(0, 4, size)
    for known in {1, size - 1, size}:
        row = surprise[:known]
        numeric = [
            (log_density(row - step, doubt, size) - log_density(row + step, doubt, size)) / 2e-4
            for step in 1e-4 * np.eye(known)
        ]
        assert joint_score(row[None] * 7.0, doubt * 49.0, 7.0, size)[0] * 7.0 == pytest.approx(
            numeric, abs=5e-3
        )


@pytest.mark.parametrize("size", [2, 4, pytest.param(8, marks=pytest.mark.nightly)])
def test_the_mean_square_is_that_of_drawn_noise(size):
    """10,000 groups, seeded: its standard error is about a hundredth and a half."""
    drawn = joint_noise(simulated_noise(3), 1000.0, size, 10_000) / 1000.0
    for doubt in (0.2, 2.0):
        moved = drawn + np.random.default_rng(1).normal(0, np.sqrt(doubt), drawn.shape)
        told = (joint_score(moved, doubt, 1.0, size) ** 2).mean()
        assert joint_information(doubt, 1.0, size) == pytest.approx(told, rel=0.05)
        worth = 1.0 / joint_information(doubt, 1.0, size) - doubt
        assert size < worth < (size + 1) * (size + 2) / 3


@pytest.mark.parametrize("lost", [0, 1])
def test_heavy_joint_noise_errs_less_than_by_its_variance(lost):
    """Forty levels that hardly move, in groups of four: it beats the estimate that knows variances alone."""
    size, n, n_series = 4, 200, 40
    numbers = np.repeat(np.arange(n // size), size)[lost:]
    noise = joint_noise(simulated_noise(5), 3000.0, size, n_series * n // size).reshape(n_series, n)[:, lost:]
    variance = (size + 1) * (size + 2) / 3
    residuals = np.vstack([np.zeros(n - lost), noise / 3000.0])
    blocks = Blocks.at(np.arange(lost, n))
    groups = NoiseGroups(
        numbers, np.where(np.arange(n_series + 1)[:, None] > 0, size, 1) * np.ones_like(numbers)
    )
    seen = Seen(star(n_series), blocks, residuals, np.array([np.inf] + [variance] * n_series),
                np.full(n_series, 1.0), groups)  # fmt: skip
    plain = TreePosterior(TemporalPrior.broad(48), seen)
    known = with_known_noise(plain)
    asked = Blocks.at(np.arange(n))
    errors = [np.mean(one.means(asked)[1:] ** 2) for one in (plain, known)]
    assert errors[1] < 0.85 * errors[0]
    assert np.all(known.seen.noise[1:] < variance)
    assert np.all(known.seen.noise[1:] >= size - 1e-9)

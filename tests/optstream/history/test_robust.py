"""Scores and information of Laplace and joint noise, against numbers; what they gain; days that alarm."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaincc, ndtr

from optstream.history.blocks import Blocks
from optstream.history.filter import fit, star
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.history.robust import information, joint_information, joint_score, score, with_known_noise
from optstream.history.self_check import is_unlike

SLOTS = 12


@pytest.mark.parametrize("variance", [1e-3, 0.5, 4.0, 100.0])
def test_the_score_is_the_derivative_of_the_log_density(variance):
    z = np.linspace(-9, 9, 20001)
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])

    def log_density(surprise):
        return np.log((weight * np.exp(-np.abs(surprise - z * np.sqrt(variance)) / 2.0) / 4.0).sum())

    given = np.array([[variance]]), np.array([[2.0]])
    for surprise in (-7.0, -0.4, 1.3, 20.0):
        numeric = (log_density(surprise - 1e-3) - log_density(surprise + 1e-3)) / 2e-3
        assert np.isclose(score(np.array([[surprise]]), *given)[0, 0], numeric, rtol=1e-2, atol=1e-4)
    noise_variance = 1.0 / information(*given)[0, 0] - variance
    assert noise_variance * (1 + 1e-3) >= 4.0
    assert noise_variance <= 8.0 * (1 + 1e-2) + 0.05 * variance


def log_density_of_group(surprise, variance, size):
    """By the integral over the radius, on a fine grid."""
    radius, deviation = np.linspace(1e-4, 80, 40_001), np.sqrt(variance)
    density = radius**size * np.exp(-radius)
    for value in surprise:
        inside = ndtr((value + radius) / deviation) - ndtr((value - radius) / deviation)
        density = density * inside / (2 * radius)
    return np.log(np.trapezoid(density, radius))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("variance", [0.1, 1.0, 4.0])
def test_the_joint_score_is_the_slope(size, variance):
    surprise, step = np.random.default_rng(size).normal(0, 4, 3), 1e-4
    before, after = (
        np.array([log_density_of_group([value + side], variance, size) for value in surprise])
        for side in (-step, step)
    )
    found = joint_score(surprise * 7.0, variance * 49.0, 7.0, size) * 7.0
    assert found == pytest.approx((before - after) / (2 * step), abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4, pytest.param(8, marks=pytest.mark.nightly)])
def test_the_joint_information_is_the_mean_square_for_drawn_noise(size):
    """10,000 draws, seeded: its standard error is about a hundredth and a half."""
    random = np.random.default_rng(3)
    drawn = random.gamma(size + 1, size=10_000) * random.uniform(-1, 1, 10_000)
    for variance in (0.2, 2.0):
        moved = drawn + np.random.default_rng(1).normal(0, np.sqrt(variance), drawn.shape)
        found = joint_information(variance, 1.0, size)
        assert found == pytest.approx((joint_score(moved, variance, 1.0, size) ** 2).mean(), rel=0.05)
        assert size < 1.0 / found - variance < (size + 1) * (size + 2) / 3
    noise, like_group = (size + 1) * (size + 2) / 3, np.full((3, 60), size)
    known = with_known_noise(posterior_of(drawn[:120].reshape(2, 60), noise, like_group=like_group))
    assert np.all((size <= known.seen.noise[1:]) & (known.seen.noise[1:] < noise))


def posterior_of(values, noise, *, slots=SLOTS, clock=None, like_group=None):
    """Series side by side, measured at every third step unless given otherwise."""
    n_series, n = values.shape
    blocks = Blocks.at(np.arange(n) * 3 if clock is None else clock)
    residuals = np.vstack([np.zeros(n), values])
    noises = np.array([np.inf] + [noise] * n_series)
    seen = Seen(star(n_series), blocks, residuals, noises, np.ones(n_series), like_group)
    return TreePosterior(TemporalPrior.broad(slots), seen)


@pytest.mark.parametrize("size", [1, 3])
def test_the_mean_given_one_value_is_that_of_its_exact_density(size):
    """By an integral over the true value x and the radius of the noise, at several surprises."""
    noise = (size + 1) * (size + 2) / 3
    at = np.linspace(-60, 60, 24_001)
    for value in (-1.0, 3.0, 9.0):
        first = posterior_of(np.array([[value]]), noise, like_group=np.full((2, 1), size))
        variance = first.left_out(1)[1][1, 0] - noise
        away = np.maximum(np.abs(value - at), 1e-9)
        # the integral of r^(size - 1) exp(-r) beyond |value - x|: the noise is uniform within its radius
        weights = gammaincc(size, away) * np.exp(-(at**2) / (2 * variance))
        exact = (at * weights).sum() / weights.sum()
        assert with_known_noise(first).means(first.seen.blocks)[1, 0] == pytest.approx(exact, rel=0.003)


@pytest.mark.slow
def test_a_shifted_day_alarms_and_noise_does_not():
    """Noise: 100 histories, none alarms (false alarms of 1 in 10^6 blocks by design)."""
    today = np.arange(60) >= 56
    for seed in range(100):
        values = np.random.default_rng(seed).laplace(0, 0.1, (3, 60))
        assert not is_unlike(posterior_of(values, 2 * 0.1**2), today, 1.2)
    values[1, 56:] += 3.0
    assert is_unlike(posterior_of(values, 2 * 0.1**2), today, 1.2)


def test_a_prior_that_cannot_be_computed_with_is_not_used():
    """Lengths that learning ran away with: the broad prior answers in their place."""
    posterior, broken = posterior_of(np.zeros((2, 20)), 0.1), TemporalPrior.broad(SLOTS)
    with np.errstate(all="ignore"):
        found = fit(replace(broken, logs=broken.logs + 400.0), posterior.seen, (), (4,))
    assert np.isfinite(found.posterior.means(Blocks.at(np.arange(60, 72)))).all()

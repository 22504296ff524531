"""Scores and information of Laplace and joint noise, against numbers; what they gain; days that alarm."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.history.blocks import Blocks
from optstream.history.filter import fit, star
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.history.robust import information, score, with_known_noise
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


def posterior_of(values, noise, *, slots=SLOTS, clock=None, joint=False):
    """Series side by side, measured at every third step unless given otherwise."""
    n_series, n = values.shape
    blocks = Blocks.at(np.arange(n) * 3 if clock is None else clock)
    residuals = np.vstack([np.zeros(n), values])
    noises = np.array([np.inf] + [noise] * n_series)
    return TreePosterior(
        TemporalPrior.broad(slots),
        Seen(star(n_series), blocks, residuals, noises, np.ones(n_series), np.full(1 + n_series, joint)),
    )


def test_joint_noise_is_taken_as_normal():
    noise = np.random.default_rng(5).laplace(0, 1.0, (2, 60))
    laplace, joint = (posterior_of(noise, 2.0, joint=joint) for joint in (False, True))
    assert with_known_noise(joint) is joint
    assert np.all(with_known_noise(laplace).seen.noise[1:] < 2.0)


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

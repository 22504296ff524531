"""How far OptStream is off between its points: against the errors of series that are known."""

import numpy as np
import pytest

from optstream.history.blocks import Blocks
from optstream.history.prior import TemporalPrior
from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature

W = 48
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "a": "A", "b": "A", "c": "B"})
PARTS = Feature((range(0, 14), range(14, 24), range(24, 36), range(36, 48)), "parts")
SIZES = np.array([4000.0, 1500.0, 600.0])


def mechanism(epsilon="1", n_samples=10, features=(PARTS,), shares=("1/3", "1/3", "1/3"), **more):
    given = {"sampling": EquallySpaced(n_samples), "features": features, "level_shares": shares} | more
    return OptStream(PrivacyModel(epsilon, W, 1, "0.001"), TREE, lower_bound=None, **given)


def simulated_days(n_days, seed):
    """Days of the prior, at three fifths of its variances, with what the leaves share and their own."""
    draw, at = np.random.default_rng(seed), Blocks.at(np.arange(W))
    shared, own = (
        np.linalg.cholesky(0.6 * one + 1e-10 * np.eye(W))
        for one in TemporalPrior.broad(W).covariances(at, at)
    )
    for _ in range(n_days):
        together, apart = shared @ draw.normal(size=W), draw.normal(size=(3, W)) @ own.T
        yield SIZES[:, None] * (1.0 + together + apart)


def seen_of(one, days, seed=0):
    """Squared errors, their expected values and those of the noise alone, (n_days, n_nodes, n_steps)."""
    found, state = [], None
    for number, day in enumerate(days):
        noise = simulated_noise([seed, number])
        release = one.release(day, noise=noise, first_step=number * W, state=state)
        state = release.state
        missed = release.values - TREE.add_up(day)
        found.append((missed**2, release.standard_errors**2, release.noise_standard_errors**2))
    return map(np.array, zip(*found, strict=True))


@pytest.mark.parametrize("features", [(), (PARTS,)], ids=["points", "points and sums"])
@pytest.mark.parametrize("epsilon", ["0.3", "1000"])
def test_errors_are_as_large_as_is_said(features, epsilon):
    """Over 60 days, at each level; a ratio below 0.6 or above 1.6 is 7 deviations of its logarithm off."""
    one = mechanism(epsilon, features=features)
    missed, expected, noise = seen_of(one, simulated_days(60, 1))
    for level in TREE.levels:
        own = slice(level.start, level.stop)
        assert 0.6 < missed[:, own].mean() / expected[:, own].mean() < 1.6
    if epsilon == "1000":
        assert missed.mean() > 10.0 * noise.mean(), "control: noise alone says next to nothing"

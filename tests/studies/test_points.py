"""The number of points with the least bound: what OptStream measures is below it, and how it grows."""

import math
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from studies.points import error_bound, suggest_n_samples

WINDOW, N_LEAVES = 24, 1000
TREE = AggregationTree.from_parents({"all": None} | {f"leaf {n}": "all" for n in range(N_LEAVES)})


def series_of(n_samples, rng, first_step):
    """Series that move by at most 1 a step: zigzags, or as far from the points as they get."""
    if n_samples % 2:
        return np.cumsum(rng.choice([-1.0, 1.0], (N_LEAVES, WINDOW)), axis=-1)
    points = np.array(EquallySpaced(n_samples).positions(WINDOW, first_step, WINDOW))
    distance = np.abs(np.arange(WINDOW)[:, None] - points).min(axis=1).astype(float)
    return np.tile(distance, (N_LEAVES, 1))


@pytest.mark.parametrize(("lipschitz", "epsilon"), [(0.0, "1"), (1.0, "1"), (30.0, "2")])
def test_the_measured_error_of_the_mechanism_is_below_the_bound(lipschitz, epsilon):
    """1,000 leaves a k, each its own noise and series; 4 standard errors of the mean are left for luck."""
    ratios, rng = [], np.random.default_rng(7)
    model = PrivacyModel(epsilon, WINDOW, "2", resolution="0.001")
    free = {"features": [], "level_shares": ["0", "1"], "lower_bound": None, "post_processing": False}
    for n_samples in (2, 3, 4, 6, 9, 13, 18, WINDOW):
        mechanism = OptStream(model, TREE, sampling=EquallySpaced(n_samples), **free)
        first_step = int(rng.integers(WINDOW))
        truth = lipschitz * series_of(n_samples, rng, first_step)
        release = mechanism.release(truth, noise=simulated_noise(n_samples), first_step=first_step)
        errors = np.abs(release.values[1:] - truth).mean(axis=-1)
        bound = error_bound(WINDOW, n_samples, Fraction(epsilon), 2, lipschitz)
        assert errors.mean() <= bound + 4 * errors.std() / math.sqrt(N_LEAVES)
        ratios.append(errors.mean() / bound)
    assert max(ratios) > 0.8  # so a bound that is a quarter smaller would be caught


def test_it_grows_with_the_root_of_steepness_and_budget():
    """1 + sqrt(L (w - 1) epsilon / (3 alpha)), where gaps are much longer than a step."""
    for window in (10_000, 40_000):
        for steepness in (0.1, 0.5, 2.0):
            near = 1 + math.sqrt(steepness * (window - 1) * 0.5 / (3 * 2))
            assert abs(suggest_n_samples(window, 0.5, 2, steepness).n_samples - near) <= 0.02 * near + 1
    assert suggest_n_samples(48, 1, 1, 0).n_samples == 2
    assert suggest_n_samples(48, 1, 1, 1e9).n_samples == 48


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window_length": 1}, "window_length must be an integer of at least 2; got 1"),
        ({"epsilon": 0}, "epsilon must be a finite number greater than 0; got 0"),
        ({"alpha": -1}, "alpha must be a finite number greater than 0; got -1"),
        ({"lipschitz": -1}, "lipschitz must be a finite number of at least 0; got -1"),
    ],
)
def test_figures_that_cannot_be_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        suggest_n_samples(**({"window_length": 48, "epsilon": 1, "alpha": 1, "lipschitz": 1} | given))
    with pytest.raises(ParameterError, match=r"n_samples of error_bound must be an integer in \[2, 48\]"):
        error_bound(48, 49, 1, 1, 1)

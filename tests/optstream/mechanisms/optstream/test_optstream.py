"""The mechanism: its plan costs what it says, its releases add up, its parameters are checked."""

import math
from fractions import Fraction

import numpy as np
import pytest

from optstream.estimation.problem import interpolation_matrix
from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import AggregationTree, Feature
from studies.points import error_bound, suggest_n_samples

MODEL = PrivacyModel(epsilon="1", window_length=48, alpha=1)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})


def build(model=MODEL, tree=TREE, n_steps=48, **changes):
    arguments = {
        "sampling": EquallySpaced(n_samples=10),
        "features": _features(n_steps),
        "level_shares": ["1/2", "1/2"],
    }
    return OptStream(model, tree, **(arguments | changes))


def _features(n_steps):
    return [Feature((range(0, 14), range(14, n_steps)), "parts"), Feature((range(n_steps),), "day")]


def test_strict_costs_epsilon_and_no_more_in_any_window_of_a_year_with_clock_changes():
    """Sliding windows over days of 46, 48 and 50 steps: the filter never has cause to refuse."""
    lengths = [48] * 86 + [46] + [48] * 216 + [50] + [48] * 62
    spends, at = [], 0
    for length in lengths:
        spends += build(n_steps=length).plan(length, at)
        at += length
    cost = worst_window(spends, 48).epsilon
    assert cost <= 1
    assert cost > 1 - Fraction(1, 2**48)
    assert build().epsilon == cost


WINDOW = 24


def series_of(kind, n_samples, rng, n_series, first_step):
    """Series that move by at most 1 a step."""
    points = np.array(EquallySpaced(n_samples).positions(WINDOW, first_step, WINDOW))
    match kind:
        case "walk":
            return np.cumsum(rng.uniform(-1, 1, (n_series, WINDOW)), axis=-1)
        case "zigzag":
            return np.cumsum(rng.choice([-1.0, 1.0], (n_series, WINDOW)), axis=-1)
        case "away from the points":
            distance = np.abs(np.arange(WINDOW)[:, None] - points).min(axis=1).astype(float)
            return np.tile(distance, (n_series, 1))


@pytest.mark.parametrize("kind", ["walk", "zigzag", "away from the points"])
def test_no_series_is_missed_by_more(kind):
    rng = np.random.default_rng(1)
    closest = 0.0
    for n_samples in range(2, WINDOW + 1):
        for first_step in range(WINDOW):
            series = series_of(kind, n_samples, rng, 20, first_step)
            points = EquallySpaced(n_samples).positions(WINDOW, first_step, WINDOW)
            matrix = interpolation_matrix(points, WINDOW)
            error = np.abs(series[:, points] @ matrix - series).mean(axis=-1).max()
            bound = error_bound(WINDOW, n_samples, 1e12, 1e-12, 1.0)
            assert error <= bound + 1e-9
            closest = max(closest, error / bound if bound > 1e-6 else 0.0)
    if kind == "away from the points":
        assert closest > 0.7  # so a bound that is a third smaller would be caught


@pytest.mark.parametrize(("lipschitz", "epsilon"), [(0.0, "1"), (1.0, "1"), (30.0, "2")])
def test_the_measured_error_of_the_mechanism_is_below_the_bound(lipschitz, epsilon):
    """1,000 leaves a k, each its own noise and series; 4 standard errors of the mean are left for luck."""
    n_leaves, ratios = 1000, []
    tree = AggregationTree.from_parents({"all": None} | {f"leaf {n}": "all" for n in range(n_leaves)})
    rng = np.random.default_rng(7)
    model = PrivacyModel(epsilon, WINDOW, "2", resolution="0.001")
    for n_samples in (2, 3, 4, 6, 9, 13, 18, WINDOW):
        mechanism = OptStream(
            model,
            tree,
            sampling=EquallySpaced(n_samples),
            features=[],
            level_shares=["0", "1"],
            lower_bound=None,
            post_processing=False,
        )
        first_step = int(rng.integers(WINDOW))
        kind = "zigzag" if n_samples % 2 else "away from the points"
        truth = lipschitz * series_of(kind, n_samples, rng, n_leaves, first_step)
        release = mechanism.release(truth, noise=simulated_noise(n_samples), first_step=first_step)
        errors = np.abs(release.values[1:] - truth).mean(axis=-1)
        slack = 4 * errors.std() / math.sqrt(n_leaves)
        bound = error_bound(WINDOW, n_samples, Fraction(epsilon), 2, lipschitz)
        assert errors.mean() <= bound + slack
        ratios.append(errors.mean() / bound)
    assert max(ratios) > 0.8  # so a bound that is a quarter smaller would be caught


def test_it_grows_with_the_root_of_steepness_and_budget():
    """1 + sqrt(L (w - 1) epsilon / (3 alpha)), where gaps are much longer than a step."""
    for window in (10_000, 40_000):
        for steepness in (0.1, 0.5, 2.0):
            near = 1 + math.sqrt(steepness * (window - 1) * 0.5 / (3 * 2))
            found = suggest_n_samples(window, 0.5, 2, steepness).n_samples
            assert abs(found - near) <= 0.02 * near + 1
    assert suggest_n_samples(48, 1, 1, 0).n_samples == 2
    assert suggest_n_samples(48, 1, 1, 1e9).n_samples == 48

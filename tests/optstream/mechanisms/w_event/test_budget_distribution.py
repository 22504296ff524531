"""Budget distribution against its algorithm, by hand and by brute force."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.mechanisms.w_event import GRAINS, BudgetDistribution
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from tests.optstream.mechanisms.silent_noise import SilentNoise


def paid(mechanism, values):
    return mechanism.release(values, noise=SilentNoise()).spends[1].weights


def test_by_hand_each_publication_takes_half_of_what_its_window_has_left():
    mechanism = BudgetDistribution(PrivacyModel("2", 4, 1, "1"))
    jumps = [10**6 * step for step in range(1, 7)]
    halves = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 16))
    # the first leaves the window: 1 - 7/16 is left, then 1 - (1/8 + 1/16 + 9/32)
    assert paid(mechanism, [jumps]) == (*halves, Fraction(9, 32), Fraction(17, 64))


def brute_force(series, window, noise):
    """The algorithm as published, epsilon 2, alpha 1: (step, budget, release) of what it publishes."""
    last, budgets, published = np.zeros(len(series), dtype=int), [], []
    for step in range(series.shape[1]):
        distance = np.abs(series[:, step] - last).mean()
        left = 1 - sum(budgets[-(window - 1) :] if window > 1 else [])
        # in whole grains, as ours
        budget = Fraction(int(left / 2 * GRAINS), GRAINS)
        budgets.append(Fraction(0))
        if budget == 0:
            continue
        noisy = distance + noise.discrete_laplace(float(window), (1,))[0] / len(series)
        if noisy > 1 / budget:
            last = series[:, step] + noise.discrete_laplace(float(1 / budget), (len(series),))
            budgets[-1] = budget
            published.append((step, budget, list(last)))
    return published


@pytest.mark.parametrize("window", [1, 2, 5, 16])
def test_the_schedule_is_the_algorithms(window):
    """Powers of two on either side of the comparison, so that floats there are exact."""
    mechanism = BudgetDistribution(PrivacyModel("2", window, 1, "1"))
    generator = np.random.default_rng(window)
    for seed in range(20):
        steps = generator.integers(-40, 40, (2, 60)) * (generator.random(60) < 0.5)
        series = steps.cumsum(axis=1)
        release = mechanism.release(series, noise=simulated_noise(seed))
        weights = release.spends[1].weights
        drawn = [
            (step, weights[step], list(release.measured.points[:, place]))
            for place, step in enumerate(release.measured.positions)
        ]
        assert drawn == brute_force(series, window, simulated_noise(seed))
        assert len(drawn) > 3

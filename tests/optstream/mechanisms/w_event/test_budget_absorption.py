"""Budget absorption against its algorithm, by hand and by brute force."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.mechanisms.w_event import BudgetAbsorption
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import round_up_to_float
from tests.optstream.mechanisms.silent_noise import SilentNoise

BY_HAND = BudgetAbsorption(PrivacyModel("8", 4, 1, "1"))
"""A window of 4 and epsilon 8: a share is 1, its scale 1, a distance's 1."""


def quarters(*counts):
    return tuple(Fraction(count, 4) for count in counts)


def test_by_hand_shares_are_absorbed_and_repaid():
    stream = [0, 0, 50, 50, 90, 90, 90, 90, 90, 90, 90, 130, 999, 999, 999, 999]
    release = BY_HAND.release([stream], noise=SilentNoise())
    distance, publications = release.spends
    # step 2 takes 3 shares and silences 3 and 4; step 5 has one; step 11 has a window's and silences 12 to 14
    assert publications.weights == quarters(0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1)
    assert distance.weights == (1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1)
    held = [0, 0, 50, 50, 50, 90, 90, 90, 90, 90, 90, 130, 130, 130, 130, 999]
    assert release.values.tolist() == [held]


def test_a_debt_that_no_window_sees_any_more_is_remembered():
    """Four shares at step 3 pay for 4 to 6; at step 8 a window of 4 sees none of it, and two are there."""
    first = BY_HAND.release([[0, 0, 0, 50, 50, 50, 50, 50]], noise=SilentNoise())
    assert first.spends[1].weights == quarters(0, 0, 0, 4, 0, 0, 0, 0)
    assert first.state["spent"] == []
    second = BY_HAND.release([[90]], noise=SilentNoise(), first_step=8, state=first.state)
    assert second.spends[1].weights == quarters(2)


def test_without_memory_the_debt_is_read_from_the_spends_before_and_not_from_those_after():
    jumps = [np.arange(1, 5) * 1000]
    before = BY_HAND.release([[0, 0, 50]], noise=SilentNoise())
    state = BY_HAND.recall(before.spends)
    late = BY_HAND.release(jumps, noise=SilentNoise(), first_step=3, state=state)
    assert late.spends[1].weights == quarters(0, 0, 1, 1)
    after = BY_HAND.release([[50]], noise=SilentNoise(), first_step=8)
    early = BY_HAND.release(jumps, noise=SilentNoise(), state=BY_HAND.recall(after.spends))
    assert early.spends[1].weights == quarters(1, 1, 1, 1)


def brute_force(series, window, noise):
    """The algorithm as published, epsilon 2 * window, alpha 1: (step, shares, release) of what it publishes.

    Steps that it silences are not asked, as ours.
    """
    last, at, shares, published = np.zeros(len(series), dtype=int), -1, 1, []
    for step in range(series.shape[1]):
        silenced = shares - 1
        if at >= 0 and step - at <= silenced:
            continue
        absorbed = min(step - (at + silenced), window)
        distance = np.abs(series[:, step] - last).mean()
        noisy = distance + noise.discrete_laplace(1.0, (1,))[0] / len(series)
        if noisy > 1 / absorbed:
            scale = round_up_to_float(Fraction(1, absorbed))
            last = series[:, step] + noise.discrete_laplace(scale, (len(series),))
            at, shares = step, absorbed
            published.append((step, absorbed, list(last)))
    return published


@pytest.mark.parametrize("window", [1, 2, 5, 16])
def test_the_schedule_is_the_algorithms(window):
    mechanism = BudgetAbsorption(PrivacyModel(2 * window, window, 1, "1"))
    generator = np.random.default_rng(window)
    for seed in range(20):
        steps = generator.integers(-3, 4, (2, 60)) * (generator.random(60) < 0.3)
        series = steps.cumsum(axis=1)
        release = mechanism.release(series, noise=simulated_noise(seed))
        weights = release.spends[1].weights
        drawn = [
            (step, weights[step] * window, list(release.measured.points[:, place]))
            for place, step in enumerate(release.measured.positions)
        ]
        assert drawn == brute_force(series, window, simulated_noise(seed))
        assert len(drawn) > 3

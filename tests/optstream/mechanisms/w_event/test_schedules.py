"""Budget distribution and absorption against their algorithms, by hand and by brute force."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.mechanisms.w_event import GRAINS, BudgetAbsorption, BudgetDistribution
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


def paid(mechanism, values):
    return mechanism.release(values, noise=SilentNoise()).spends[1].weights


def test_by_hand_each_publication_takes_half_of_what_its_window_has_left():
    mechanism = BudgetDistribution(PrivacyModel("2", 4, 1, "1"))
    jumps = [10**6 * step for step in range(1, 7)]
    halves = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 16))
    # the first leaves the window: 1 - 7/16 is left, then 1 - (1/8 + 1/16 + 9/32)
    assert paid(mechanism, [jumps]) == (*halves, Fraction(9, 32), Fraction(17, 64))


def absorption(series, window, noise):
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


def distribution(series, window, noise):
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


# powers of two on either side of distribution's comparison, so that floats there are exact
SCHEDULES = [(BudgetAbsorption, absorption, 4, 0.3), (BudgetDistribution, distribution, 40, 0.5)]


@pytest.mark.parametrize(("kind", "algorithm", "jump", "share"), SCHEDULES)
@pytest.mark.parametrize("window", [1, 2, 5, 16])
def test_the_schedule_is_the_algorithms(kind, algorithm, jump, share, window):
    shares = window if kind is BudgetAbsorption else 1
    mechanism = kind(PrivacyModel(2 * shares, window, 1, "1"))
    generator = np.random.default_rng(window)
    for seed in range(20):
        steps = generator.integers(-jump, jump, (2, 60)) * (generator.random(60) < share)
        series = steps.cumsum(axis=1)
        release = mechanism.release(series, noise=simulated_noise(seed))
        weights = release.spends[1].weights
        drawn = [
            (step, weights[step] * shares, list(release.measured.points[:, place]))
            for place, step in enumerate(release.measured.positions)
        ]
        assert drawn == algorithm(series, window, simulated_noise(seed))
        assert len(drawn) > 3

"""PBD and PBA: what they do by hand, and that no class pays more than its own in any of its windows."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.mechanisms.w_event import BudgetAbsorption, BudgetDistribution
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from studies.personalised import customer_sample
from studies.personalised.mechanisms import (
    PersonalisedBudgetAbsorption,
    PersonalisedBudgetDistribution,
)
from studies.personalised.personal_epsilon import CHANCE_UNITS, CustomerClass
from tests.optstream.mechanisms.silent_noise import SilentNoise

BOTH = (PersonalisedBudgetDistribution, PersonalisedBudgetAbsorption)
UNIFORM = {PersonalisedBudgetDistribution: BudgetDistribution, PersonalisedBudgetAbsorption: BudgetAbsorption}
CLASSES = (
    CustomerClass("shy", 40, "1/5", 12),
    CustomerClass("usual", 200, "1", 7),
    CustomerClass("open", 100, "4", 30),
)


def jumping(generator, n_series=2, n_steps=60):
    """Counts that stand still and jump."""
    levels = generator.integers(0, 60, (len(CLASSES), n_series, n_steps // 6))
    return np.repeat(levels, 6, axis=2)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", range(8))
def test_no_window_of_a_class_is_charged_more_than_its_epsilon_by_brute_force(kind, seed):
    generator = np.random.default_rng(seed)
    share = Fraction(int(generator.integers(1, 10)), 10)
    found = kind(CLASSES, share).release(jumping(generator), noise=simulated_noise(seed))
    assert found.published
    for own, spends in zip(CLASSES, found.spends, strict=True):
        charges = [a + b for a, b in zip(*(spend.charges for spend in spends), strict=True)]
        windows = [sum(charges[at : at + own.window_length]) for at in range(len(charges))]
        assert 0 < max(windows) == worst_window(spends, own.window_length).epsilon <= own.epsilon


@pytest.mark.parametrize("kind", BOTH)
def test_control_a_class_that_is_watched_over_longer_windows_than_its_own_pays_more(kind):
    """What the bound above would not hold for: the epsilon of one class in the windows of another."""
    found = kind(CLASSES).release(jumping(np.random.default_rng(1)), noise=simulated_noise(1))
    usual = found.spends[1]
    assert worst_window(usual, 30).epsilon > CLASSES[1].epsilon * Fraction(3, 2)


@pytest.mark.parametrize("kind", BOTH)
def test_with_one_class_it_charges_as_the_mechanism_for_all_does(kind):
    """The same rule, but for when it is worth publishing: the paper takes the root of the square error."""
    model, stream = PrivacyModel("8", 4, 1, "1"), np.arange(1, 13) * 1000
    own = kind((CustomerClass("all", 12_000, "8", 4),)).release(stream[None, None], noise=SilentNoise())
    known = UNIFORM[kind](model).release(stream[None], noise=SilentNoise())
    assert [spend.charges for spend in own.spends[0]] == [spend.charges for spend in known.spends]
    assert own.values.tolist() == known.values.tolist()


def published_one_or_more(present, n_trials):
    """How often a shy customer is seen: of a stream of one step, the release says one or more."""
    classes = (CustomerClass("shy", 1, "1", 1), CustomerClass("open", 100, "4", 1))
    counts = np.array([present, 0]).reshape(2, 1, 1)
    mechanism, noise = PersonalisedBudgetDistribution(classes), simulated_noise(19)
    return sum(mechanism.release(counts, noise=noise).values[0, 0] >= 1 for _ in range(n_trials))


def test_attack_a_shy_customer_is_seen_as_often_as_the_classes_charges_allow_and_no_more(monkeypatch):
    """By Lemma 22 at most e^(1/2 + 1/4) as often as nobody: half of epsilon asks, half of the rest pays.

    This event attains it: at noise of 2 and of 1, the thresholds. Six standard deviations of a binomial
    count: less than one false alarm in 10^6 runs.
    """
    n_trials, asked, paid = 2000, np.exp(-2.0), np.exp(-1.0)
    nobody = asked**2 / (1 + asked) * paid / (1 + paid)
    allowed = nobody * np.exp(0.75)
    reach = 6 * np.sqrt(allowed / n_trials)
    assert published_one_or_more(1, n_trials) / n_trials < allowed + reach
    # the control: of everybody who takes part more is lost
    monkeypatch.setattr(customer_sample, "chance_units", lambda epsilon, threshold: CHANCE_UNITS)
    assert published_one_or_more(1, n_trials) / n_trials > allowed + reach

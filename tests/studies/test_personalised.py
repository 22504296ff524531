"""Customers with epsilons of their own: who is left out, and that no class pays more than its own."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb, exp, log

import numpy as np
import pytest

from optstream.mechanisms.w_event import BudgetAbsorption, BudgetDistribution
from optstream.noise import secure_noise, simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from studies.personalised import (
    CHANCE_UNITS,
    CustomerClass,
    PersonalisedBudgetAbsorption,
    PersonalisedBudgetDistribution,
    chance_units,
    noisy_counts,
    noisy_distance,
    sampled,
)
from tests.optstream.mechanisms.silent_noise import SilentNoise

EPSILONS = tuple(map(Fraction, ("1/1000", "1/20", "1/3", "1", "5/2", "8")))
REACH = 400


def law(certain, sampled, chance, scale):
    """Probabilities of a noisy count: so many who take part for certain, so many by chance, and noise."""
    q = exp(-1 / scale)
    taking_part = [comb(sampled, k) * chance**k * (1 - chance) ** (sampled - k) for k in range(sampled + 1)]
    return [
        sum(p * (1 - q) / (1 + q) * q ** abs(k - certain - part) for part, p in enumerate(taking_part))
        for k in range(-REACH // 8, REACH // 8)
    ]


def loss(one, other):
    return max(abs(log(a / b)) for a, b in zip(one, other, strict=True) if a > 1e-250 and b > 1e-250)


@pytest.mark.parametrize(("epsilon", "threshold"), list(product(EPSILONS, EPSILONS)))
def test_the_chance_is_the_largest_number_of_parts_below_the_exact_one(epsilon, threshold):
    if threshold <= epsilon:
        assert chance_units(epsilon, threshold) == CHANCE_UNITS
        return
    with localcontext() as context:
        context.prec = 120
        numbers = (Decimal(one.numerator) / Decimal(one.denominator) for one in (epsilon, threshold))
        up, down = (one.exp() - 1 for one in numbers)
        assert chance_units(epsilon, threshold) == int(up / down * CHANCE_UNITS)


@pytest.mark.parametrize(("epsilon", "threshold"), [("1/3", "1"), ("1/20", "5/2"), ("1", "1"), ("5/2", "8")])
def test_one_customer_more_or_less_loses_the_epsilon_of_the_class_exactly(epsilon, threshold):
    """Enumerated: the worst outcome comes as near to epsilon as the reach allows, and no nearer than it."""
    epsilon, threshold = Fraction(epsilon), Fraction(threshold)
    chance = chance_units(epsilon, threshold) / CHANCE_UNITS
    scale = float(1 / threshold)
    worst = max(loss(law(2, n, chance, scale), law(2, n + 1, chance, scale)) for n in range(3))
    assert worst == pytest.approx(float(epsilon), rel=1e-9)


def counts(*rows):
    return np.array(rows, dtype=np.int64)


def test_each_customer_of_a_shy_class_takes_part_by_a_draw_of_its_own():
    """Secure randomness; six standard deviations of a binomial count: a false alarm in 10^8 runs."""
    offers = [Fraction(1, 4), Fraction(2)]
    found = sampled(counts([40_000, 0, 10_000], [7, 5, 0]), offers, Fraction(1), secure_noise())
    chance = chance_units(offers[0], Fraction(1)) / CHANCE_UNITS
    assert found[1] == 5
    for count, expected in ((found[0] - 7, 40_000), (found[2], 10_000)):
        assert abs(count - expected * chance) < 6 * np.sqrt(expected * chance * (1 - chance))
        # control: nobody left out, or a plain share of the epsilons
        assert abs(count - expected * 0.25) > 6 * np.sqrt(expected * 0.25 * 0.75)


def test_what_is_answered_is_of_the_sample_with_noise_of_the_threshold():
    noise, certain = SilentNoise(), [Fraction(1, 3), Fraction(1)]
    given = counts([3, 1], [10, 0])
    assert noisy_counts(given, certain, Fraction(1, 3), noise).tolist() == [13, 1]
    assert noisy_distance(given, np.array([10, 5]), certain, Fraction(1, 3), noise) == 3 + 4
    assert all(scale >= 3 and scale == pytest.approx(3) for scale, _ in noise.asked)


BOTH = (PersonalisedBudgetDistribution, PersonalisedBudgetAbsorption)
UNIFORM = {PersonalisedBudgetDistribution: BudgetDistribution, PersonalisedBudgetAbsorption: BudgetAbsorption}
CLASSES = (
    CustomerClass("shy", 40, "1/5", 12),
    CustomerClass("usual", 200, "1", 7),
    CustomerClass("open", 100, "4", 30),
)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", range(8))
def test_no_window_of_a_class_is_charged_more_than_its_epsilon_by_brute_force(kind, seed):
    generator = np.random.default_rng(seed)
    share = Fraction(int(generator.integers(1, 10)), 10)
    jumping = np.repeat(generator.integers(0, 60, (len(CLASSES), 2, 10)), 6, axis=2)
    found = kind(CLASSES, share).release(jumping, noise=simulated_noise(seed))
    assert found.published
    for own, spends in zip(CLASSES, found.spends, strict=True):
        charges = [a + b for a, b in zip(*(spend.charges for spend in spends), strict=True)]
        windows = [sum(charges[at : at + own.window_length]) for at in range(len(charges))]
        assert 0 < max(windows) == worst_window(spends, own.window_length).epsilon <= own.epsilon


@pytest.mark.parametrize("kind", BOTH)
def test_with_one_class_it_charges_as_the_mechanism_for_all_does(kind):
    """The same rule, but for when it is worth publishing: the paper takes the root of the square error."""
    model, stream = PrivacyModel("8", 4, 1, "1"), np.arange(1, 13) * 1000
    own = kind((CustomerClass("all", 12_000, "8", 4),)).release(stream[None, None], noise=SilentNoise())
    known = UNIFORM[kind](model).release(stream[None], noise=SilentNoise())
    assert [spend.charges for spend in own.spends[0]] == [spend.charges for spend in known.spends]
    assert own.values.tolist() == known.values.tolist()

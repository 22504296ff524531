"""The chance with which a customer takes part: against exact figures, and what an answer then loses."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb, exp, log

import pytest

from studies.personalised.personal_epsilon import (
    CHANCE_UNITS,
    chance_units,
)

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


def test_control_a_chance_of_epsilon_over_threshold_loses_more():
    """The sample of a plain share is the mistake that lies nearest: it is enough for small epsilons only."""
    epsilon, threshold = 1 / 3, 1.0
    assert loss(law(2, 0, 0, 1), law(2, 1, epsilon / threshold, 1)) > epsilon * 1.3

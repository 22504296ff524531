"""The window-by-window prices against the accountant's, and `covers` against brute force."""

from fractions import Fraction
from random import Random

import pytest

from optstream.ledger.accounts import covers
from optstream.privacy import PeriodSpend, StepSpend, charged_to_windows, worst_window


def random_spend(random, first_step, n_steps):
    if random.random() < 0.5:
        weights = tuple(Fraction(random.randrange(4), random.randrange(1, 5)) for _ in range(n_steps))
        return StepSpend(0, "samples", first_step, weights, Fraction(random.randrange(1, 4)), 2)
    rises = sorted(Fraction(random.randrange(5), 3) for _ in range(n_steps))
    return PeriodSpend(0, "joint", first_step, (Fraction(0), *rises))


@pytest.mark.parametrize("window_length", [1, 3, 7, 12])
def test_prices_agree_with_the_accountant(window_length):
    random = Random(window_length)
    for _ in range(30):
        plan = [random_spend(random, random.randrange(-9, 9), random.randrange(1, 9)) for _ in range(3)]
        prices = charged_to_windows(plan, window_length, range(-30, 30))
        worst = worst_window(plan, window_length)
        assert max(prices) == worst.epsilon
        assert prices[worst.first_step + 30] == worst.epsilon


@pytest.mark.parametrize("windows", ["sliding", "aligned"])
def test_covers_is_what_the_accountant_says_of_any_company(windows):
    """Covered: no spend beside them makes the settled ones dearer. A probe picks out each window in turn."""
    random = Random(7)
    window_length, seen = 3, set()
    for _ in range(60):
        reserved = [random_spend(random, 0, 5) for _ in range(2)]
        settled = [random_spend(random, 0, 5)]
        dearer = False
        # a probe's spend must belong to the same period to be added under "aligned"
        period = range(-2, 7) if windows == "sliding" else range(5)
        for start in range(-2, 5) if windows == "sliding" else range(3):
            inside = tuple(Fraction(100 * (start <= step < start + window_length)) for step in period)
            probe = StepSpend(0, "probe", period.start, inside, Fraction(1), 1)
            before = worst_window([*reserved, probe], window_length, windows)
            after = worst_window([*settled, probe], window_length, windows)
            dearer |= after.epsilon > before.epsilon
        covered = covers(reserved, settled, window_length, windows)
        assert covered != dearer
        seen.add(covered)
    assert seen == {True, False}


def test_covers_looks_beyond_the_plan(kit):
    plan = kit.plan(0, "1")
    assert covers(plan, plan, 4, "sliding")
    assert covers(plan, (), 4, "sliding")
    assert not covers(plan, kit.plan(1, "1"), 4, "sliding")
    assert not covers(plan, kit.plan(1, "1", n_steps=3), 4, "aligned")
    assert covers(plan, kit.plan(1, "1", n_steps=3), 4, "sliding")

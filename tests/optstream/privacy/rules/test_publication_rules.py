"""What a publication is offered, against brute force over windows, and what spends say was taken."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.privacy import CappedSpend, PeriodSpend, StepSpend
from optstream.privacy.rules import Absorption, Halving, WindowBudget, grains_of

FIRST, STEPS = 20, 9


def random_taken(generator, window, n_grains):
    """Other periods, before and after, that no window overspends."""
    budget = WindowBudget(n_grains, window, 0, 50, [])
    for step in (*range(FIRST), *range(FIRST + STEPS, 50)):
        if generator.random() < 0.5:
            budget.take(step, int(generator.integers(0, budget.headroom(step) + 1)))
    return {step: int(amount) for step, amount in enumerate(budget._spent[window - 1 :][:50]) if amount}


def headroom_by_brute_force(taken, window, n_grains, step):
    starts = range(step - window + 1, step + 1)
    return n_grains - max(sum(taken.get(at, 0) for at in range(s, s + window)) for s in starts)


@pytest.mark.parametrize("window", [1, 2, 6])
@pytest.mark.parametrize("kind", [Halving, Absorption])
def test_offers_leave_every_window_within_its_budget(kind, window):
    generator = np.random.default_rng(window)
    offered = 0
    for _ in range(60):
        n_grains = window if kind is Absorption else 64
        taken = random_taken(generator, window, n_grains)
        budget = WindowBudget(n_grains, window, FIRST, STEPS, taken.items())
        late = (FIRST, FIRST - int(generator.integers(0, 4))) if kind is Absorption else ()
        rule = kind(budget, n_grains, 0, *late)
        free_from = late[1] if late else None
        for step in range(STEPS):
            headroom = headroom_by_brute_force(taken, window, n_grains, FIRST + step)
            shares = FIRST + step - free_from + 1 if late else None
            expected = max(min(shares, n_grains, headroom), 0) if late else headroom // 2
            assert rule.offer(step) == expected
            if expected and generator.random() < 0.5:
                rule.publish(step, expected)
                taken[FIRST + step] = expected
                free_from, offered = FIRST + step + expected, offered + expected
    assert offered > 100


def test_an_offer_whose_noise_would_not_fit_is_none():
    rule = Absorption(WindowBudget(4, 4, 0, 4, []), 4, 3, 0, 0)
    assert [rule.offer(step) for step in range(4)] == [0, 0, 3, 4]


def step_spend(weights, scale=2, first_step=10):
    return StepSpend(0, "publications", first_step, tuple(weights), Fraction(scale), 1)


def test_what_was_spent_under_the_same_budget_is_read_exactly():
    spend = step_spend([0, Fraction(1, 2**16), Fraction(3, 7), 1])
    assert grains_of([spend], Fraction(1, 2), 7 * 2**16) == [(11, 7), (12, 3 * 2**16), (13, 7 * 2**16)]


def test_another_budgets_spends_are_rounded_up_and_no_more_than_all():
    spends = [step_spend([Fraction(1, 3), 0, Fraction(1, 10**9)]), step_spend([1], 1, 40)]
    assert grains_of(spends, Fraction(1, 2), 10) == [(10, 4), (12, 1), (40, 10)]


def test_two_measurements_of_a_step_add_up_and_what_published_nothing_is_passed_over():
    others = [
        StepSpend(0, "distance", 10, (1,), Fraction(2), 1),
        PeriodSpend(0, "publications", 10, (Fraction(0), Fraction(1))),
    ]
    spend = step_spend([Fraction(1, 5)])
    assert grains_of([spend, *others, spend], Fraction(1, 2), 10) == [(10, 4)]


def test_a_plan_that_was_never_settled_counts_whole():
    plan = CappedSpend(0, "publications", 30, 2, 1, (), Fraction(2), 1)
    assert grains_of([plan], Fraction(1, 2), 10) == [(30, 10), (31, 10)]

"""The window-by-window prices against the accountant's, and `covers` against brute force."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from optstream.ledger.accounting import Guarantees, History, covers, rows_hash, spend_rows
from optstream.privacy import (
    CappedSpend,
    PeriodSpend,
    PrivacyModel,
    StepSpend,
    charged_to_windows,
    worst_window,
)


def random_spend(random, first_step, n_steps):
    if random.random() < 0.5:
        weights = tuple(Fraction(random.randrange(4), random.randrange(1, 5)) for _ in range(n_steps))
        return StepSpend(0, "samples", first_step, weights, Fraction(random.randrange(1, 4)), 2)
    rises = sorted(Fraction(random.randrange(5), 3) for _ in range(n_steps))
    return PeriodSpend(0, "joint", first_step, (Fraction(0), *rises))


def guarantee_of(window_length):
    return Guarantees({0: PrivacyModel("1", window_length, "1")}, 0)


@pytest.mark.parametrize("window_length", [1, 3, 7, 12])
def test_prices_agree_with_the_accountant(window_length):
    random = Random(window_length)
    for _ in range(30):
        plan = [random_spend(random, random.randrange(-9, 9), random.randrange(1, 9)) for _ in range(3)]
        prices = charged_to_windows(plan, window_length, range(-30, 30))
        worst = worst_window(plan, window_length)
        assert max(prices) == worst.epsilon
        assert prices[worst.first_step + 30] == worst.epsilon


def random_history(random):
    """Days that repeat themselves, capped plans that look back, some of them twice."""
    days = [random_spend(random, 0, 5) for _ in range(2)]
    for first_step in random.sample(range(-20, 20, 5), 4):
        for day in random.choices(days, k=2):
            yield replace(day, first_step=first_step)
        taken = tuple(sorted(random.sample(range(first_step - 6, first_step), 2)))
        yield CappedSpend(0, "points", first_step, 5, Fraction(random.randrange(1, 4)), taken, Fraction(1), 2)


def test_a_history_goes_by_the_documents(kit):
    """A row's own step may be wrong, or the document written in another way."""
    day, later = (row[3] for row in spend_rows([*kit.plan(0, "1/4"), *kit.plan(2, "1/4")]))
    spaced = later.replace('"first_step":2,', '"first_step" : 2,')
    for first_step, document in ((2, spaced), (400, later)):
        history = History()
        history.add(0, 0, day)
        history.add(0, first_step, document)
        assert history.cost(guarantee_of(4)).epsilon == Fraction(3, 2)
    history = History()
    history.add(0, 400, day)
    history.add(0, 2, later)
    assert history.cost(guarantee_of(4)).epsilon == Fraction(3, 2)


def add_plan(history, plan):
    for position, first_step, _, document in plan:
        history.add(position, first_step, document)


def test_plans_that_recur_cost_what_their_spends_do():
    """Plans alike but for their steps, plans of several first steps, capped ones, and their mixtures."""
    random = Random(1)
    for _ in range(60):
        shapes = [[random_spend(random, 0, 5) for _ in range(random.randrange(1, 4))] for _ in range(2)]
        history, everything = History(), []
        for first_step in random.sample(range(-20, 120, 5), 9):
            plan = [replace(spend, first_step=first_step) for spend in random.choice(shapes)]
            if random.random() < 0.2:
                plan.append(replace(plan[0], first_step=first_step + 5))
            if random.random() < 0.2:
                plan.append(next(spend for spend in random_history(random) if isinstance(spend, CappedSpend)))
            add_plan(history, spend_rows(plan))
            everything += plan
        assert history.cost(guarantee_of(3)).epsilon == worst_window(everything, 3).epsilon


def test_a_plan_recurs_only_with_every_word_of_it(kit):
    """Whatever is changed in a plan is charged as it stands, not as the plan before it."""
    first = spend_rows([*kit.plan(0, "1/8"), *kit.plan(0, "1/8")])
    again = spend_rows([*kit.plan(40, "1/8"), *kit.plan(40, "1/8")])
    dearer = again[1][3].replace('"1/8"', '"9/8"')
    other_step = again[1][3].replace('"first_step":40,', '"first_step":0,')
    spends = [*kit.plan(0, "1/8"), *kit.plan(0, "1/8"), *kit.plan(40, "1/8")]
    for changed, second in ((dearer, kit.plan(40, "9/8")), (other_step, kit.plan(0, "1/8"))):
        assert changed != again[1][3]
        history, plan = History(), [again[0], (*again[1][:3], changed)]
        add_plan(history, first)
        add_plan(history, plan)
        assert history.cost(guarantee_of(4)).epsilon == worst_window([*spends, *second], 4).epsilon
    line = " ".join(map(str, again[1]))
    history, joined = History(), [(*again[0][:3], f"{again[0][3]}\n{line}")]
    assert rows_hash(1, joined) == rows_hash(1, again)
    add_plan(history, first)
    add_plan(history, joined)
    with pytest.raises(ValueError, match=r"delimiter|Extra data"):
        history.cost(guarantee_of(4))


def test_covers_is_what_the_accountant_says_of_any_company():
    """Covered: no spend beside them makes the settled ones dearer. A probe picks out each window in turn."""
    random = Random(7)
    window_length, seen = 3, set()
    for _ in range(60):
        reserved = [random_spend(random, 0, 5) for _ in range(2)]
        settled = [random_spend(random, 0, 5)]
        dearer = False
        period = range(-2, 7)
        for start in range(-2, 5):
            inside = tuple(Fraction(100 * (start <= step < start + window_length)) for step in period)
            probe = StepSpend(0, "probe", period.start, inside, Fraction(1), 1)
            before = worst_window([*reserved, probe], window_length)
            after = worst_window([*settled, probe], window_length)
            dearer |= after.epsilon > before.epsilon
        covered = covers(reserved, settled, window_length)
        assert covered != dearer
        seen.add(covered)
    assert seen == {True, False}

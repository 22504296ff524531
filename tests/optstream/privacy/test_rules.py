"""Public rules: Lemma 16b for joint noise, headroom, noise by a span's price, publications."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.mechanisms import HistoryInformed, HistoryInformedTree, Laplace
from optstream.mechanisms.history_informed import tree_figures
from optstream.noise import simulated_noise
from optstream.privacy import CappedSpend, OrderSpend, PeriodSpend, PrivacyModel, StepSpend, rules
from optstream.privacy.accountant import composed, repriced, worst_window
from optstream.privacy.horizon import loss_over
from optstream.privacy.rules import Absorption, Halving, Layer, WindowBudget, grains_of, parts_with_headroom
from optstream.privacy.spends import groups_from_document
from optstream.stream import AggregationTree
from tests.optstream.privacy.test_accounting import brute_force


@pytest.mark.parametrize("document", ["x", [["x"]], [[[0, 1, 2]]], [[[0, "1"]]], [[[0, True]]], {}])
def test_documents_that_hold_no_groups_are_refused(document):
    with pytest.raises((TypeError, ValueError)):
        groups_from_document(document)


# Headroom of several layers at once: no window exceeds its limit, nothing is left out without need.

AT, MOST = 40, Fraction(1)


def spent(parts, first_step, n_steps, unit_charge):
    measured = {step for part in parts for step in part}
    weights = tuple(int(step in measured) for step in range(n_steps))
    return StepSpend(0, "blocks", first_step, weights, 1 / unit_charge, 1)


@st.composite
def cases(draw):
    n_steps = draw(st.integers(1, 9))
    layers = []
    for _ in range(draw(st.integers(1, 3))):
        edges = draw(st.lists(st.integers(0, n_steps), max_size=8, unique=True).map(sorted))
        parts = [range(*ends) for ends in zip(edges[::2], edges[1::2], strict=False)]
        layers.append((parts, Fraction(draw(st.integers(1, 12)), 24)))
    weights = st.lists(st.integers(0, 1), min_size=6, max_size=6).map(tuple)
    units = st.integers(1, 12).map(lambda number: Fraction(24, number))
    others = [
        StepSpend(0, "samples", first, draw(weights), draw(units), 1) for first in (AT - 6, AT + n_steps)
    ]
    return n_steps, layers, others, draw(st.integers(1, 8))


@settings(max_examples=120, deadline=None)
@given(cases())
def test_no_window_exceeds_its_limit_and_what_is_left_out_has_no_headroom(case):
    """By brute force over windows and steps; greedy in the order of time, in fractions."""
    n_steps, layers, others, window_length = case
    if brute_force(others, window_length) > MOST:
        return
    asked = [Layer(parts, unit) for parts, unit in layers]
    found = parts_with_headroom(asked, AT, others, window_length, MOST)
    order = sorted((part.start, number, part) for number, (parts, _) in enumerate(layers) for part in parts)
    spends, wanted = list(others), [[] for _ in layers]
    for _, number, part in order:
        tried = spent([part], AT, n_steps, layers[number][1])
        if brute_force([*spends, tried], window_length) <= MOST:
            spends.append(tried)
            wanted[number].append(part)
    assert [list(one) for one in found] == wanted
    assert worst_window(spends, window_length).epsilon <= MOST


# Noise of a whole stream: what a window is charged (Lemma 16b), headroom, and the price of a span.


def order(first_step, n_steps, parts, **given):
    given = {"n_blocks": 3, "orders": 1, "order": 0} | given
    return OrderSpend(
        0, "blocks", first_step, n_steps, tuple(parts), Fraction(8), 2, 1, 2, given.pop("window_length", 5),
        **given,
    )  # fmt: skip


def test_a_window_pays_once_for_the_orders_that_it_meets_and_a_longer_one_for_each_of_its_windows():
    """By a look at each window, for parts, claims and lengths of all kinds."""
    for parts in ([], [range(1, 3)], [range(0, 1), range(4, 6)]):
        for earlier, later, window in product((0, 1, 4), (0, 1, 3), (2, 5, 6, 11)):
            spend = order(20, 7, parts, earlier=earlier, later=later)
            units, price = spend.charged(window)
            assert price == Fraction(2 * 2, 8) + Fraction(1, 2**24) == spend.unit_charge
            claimed = {20 - earlier} if earlier else set()
            claimed |= {26 + later} if later else set()
            for number, charged in enumerate(units.tolist()):
                held = set(range(20 + number - window + 1, 20 + number + 1))
                meets = any(20 + step in held for part in parts for step in part)
                assert charged == (-(-window // 5) if meets and not held & claimed else 0)
    assert order(0, 11, [range(0, 1)], orders=2).whole_charge == 3 * 2 * (Fraction(1, 2) + Fraction(1, 2**24))


def test_a_customer_who_may_now_move_pays_for_each_step_of_each_leaf():
    """A step that moves two leaves' blocks meets two orders, and the price was of one."""
    spend = replace(order(0, 7, [range(0, 2), range(4, 6)]), n_nodes=2)
    customer, roaming = (PrivacyModel(1, 5, 2, 1, unit=unit) for unit in ("customer", "roaming"))
    moved = repriced(spend, customer, roaming)
    assert moved.unit_charge == Fraction(2, 8) + Fraction(1, 2**24)
    assert moved.weights == (1, 1, 0, 0, 1, 1, 0)
    assert repriced(replace(spend, n_nodes=1), customer, roaming).unit_charge == spend.unit_charge


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 6), st.integers(0, 6))
def test_headroom_counts_a_windows_orders_once_and_the_night_befores_not_at_all(case, earlier, later):
    n_steps, layers, others, window_length = case
    if brute_force(others, window_length) > MOST:
        return
    parts, unit = layers[0]
    mine = OrderSpend(
        0, "blocks", AT, n_steps, (), Fraction(8), 2, 1, 9, window_length, 3, 1, AT, earlier, later
    )
    (found,) = parts_with_headroom([Layer(parts, unit, [mine])], AT, others, window_length, MOST)
    taken, wanted = list(others), []
    for part in parts:
        tried = [spent([*wanted, part], AT, n_steps, unit), replace(mine, parts=(*wanted, part))]
        if worst_window([*taken, *tried], window_length).epsilon <= MOST:
            wanted.append(part)
    assert list(found) == wanted


WINDOW, DELTA = 48, Fraction(1, 10**6)


def laplace(epsilon="1", **given):
    return Laplace(PrivacyModel(epsilon, WINDOW, 1), period_lengths=(WINDOW,), n_nodes=1, **given)


def span(days):
    return rules.Horizon(WINDOW * days, DELTA)


def test_over_a_span_each_window_and_order_is_a_draw_of_laplace_noise():
    mechanism = laplace("1/10", noise="joint")
    spends, state = [], None
    for day in range(20):
        measured = mechanism.measure(
            np.zeros((1, WINDOW)), noise=simulated_noise(1), first_step=WINDOW * day, state=state
        )
        state, spends = measured.state, [*spends, *measured.spends]
    found = loss_over(spends, DELTA, adaptive=False, window=None)
    (scale,) = {spend.scale for spend in spends}
    wanted = composed(frozenset({((1000, scale), 3 * 20)}), frozenset(), float(DELTA))
    assert found.epsilon == pytest.approx(wanted, abs=1e-5)
    assert found.epsilon < 1.5
    assert found.plain == pytest.approx(2)


def test_a_window_prefers_joint_noise_and_a_year_laplace_noise():
    assert laplace().order_terms is not None
    assert laplace("10", horizon=span(1)).order_terms is not None
    assert laplace("10", horizon=span(30)).order_terms is None
    assert laplace(horizon=span(365)).order_terms is None


def test_blocks_are_chosen_for_the_noise_that_they_will_have():
    model = PrivacyModel("0.1", WINDOW, 1)
    given = {"n_blocks": 16, "block_length": 1, "scale": 5000.0, "period_lengths": (WINDOW,), "n_nodes": 1}
    window, month = (HistoryInformed(model, **given, horizon=one) for one in (None, span(30)))
    assert window.order_terms is not None
    assert month.order_terms is None
    joint, plain = (one.figures([1]).noises((16, 1), [1.0])[0].scale for one in (window, month))
    assert joint == pytest.approx(plain * window.order_terms.deviation / 16)
    # what was asked for is not compared
    assert replace(month, noise="joint").order_terms == window.order_terms


def test_each_level_of_a_tree_expects_the_noise_that_it_draws():
    """Half of epsilon each: the span decides for each level by itself."""
    tree = AggregationTree(("FR", *map(str, range(12))), (-1, *([0] * 12)))
    given = {"scale": 5000.0, "n_blocks": 32, "block_length": 1, "period_lengths": (46, 48, 50)}
    for days, kinds in ((1, [True, True]), (30, [False, False])):
        pattern = HistoryInformed(
            PrivacyModel("5", WINDOW, 10), **given, declared_leaves=1, horizon=span(days)
        )
        shares = [Fraction(19, 20), Fraction(1, 20)]
        mechanism, figures = HistoryInformedTree(pattern, tree, shares), tree_figures(pattern, tree)
        apart = replace(figures, joint=())
        pairs = zip(figures.noises((32, 1), shares), apart.noises((32, 1), shares), strict=True)
        assert [one.scale < other.scale for one, other in pairs] == kinds
        assert [isinstance(spend, OrderSpend) for spend in mechanism.plan(48, 0)] == kinds


# What a publication is offered, against brute force over windows, and what spends say was taken.

FIRST, STEPS = 20, 9


def random_taken(generator, window, n_grains):
    """Other periods, before and after, that no window overspends."""
    budget = WindowBudget(n_grains, window, 0, 50, [])
    for step in (*range(FIRST), *range(FIRST + STEPS, 50)):
        if generator.random() < 0.5:
            budget.take(step, int(generator.integers(0, budget.headroom(step) + 1)))
    return {step: int(amount) for step, amount in enumerate(budget._spent[window - 1 :][:50]) if amount}


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
            starts = range(FIRST + step - window + 1, FIRST + step + 1)
            headroom = n_grains - max(sum(taken.get(at, 0) for at in range(s, s + window)) for s in starts)
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


FIFTH, NEAR = step_spend([Fraction(1, 5)]), step_spend([Fraction(1, 3), 0, Fraction(1, 10**9)])
FINE = step_spend([0, Fraction(1, 2**16), Fraction(3, 7), 1])
NOTHING = [
    StepSpend(0, "distance", 10, (1,), Fraction(2), 1),
    PeriodSpend(0, "publications", 10, (Fraction(0), Fraction(1))),
]


@pytest.mark.parametrize(
    ("spends", "n_grains", "taken"),
    [
        ([FINE], 7 * 2**16, [(11, 7), (12, 3 * 2**16), (13, 7 * 2**16)]),
        ([NEAR, step_spend([1], 1, 40)], 10, [(10, 4), (12, 1), (40, 10)]),
        ([FIFTH, *NOTHING, FIFTH], 10, [(10, 4)]),
        ([CappedSpend(0, "publications", 30, 2, 1, (), Fraction(2), 1)], 10, [(30, 10), (31, 10)]),
    ],
    ids=["exactly", "rounded up, no more than all", "added up", "never settled"],
)
def test_what_was_spent_is_read_in_grains(spends, n_grains, taken):
    assert grains_of(spends, Fraction(1, 2), n_grains) == taken

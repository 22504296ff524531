"""What a long span loses: against exact enumeration in fractions, and against figures known beforehand."""

from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from math import exp

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement.grouping import GROUPER
from optstream.measurement.sums import SAMPLES
from optstream.mechanisms.w_event import DISTANCE
from optstream.privacy import CappedSpend, GaussianSpend, JointSpend, PeriodSpend, StepSpend, worst_window
from optstream.privacy.horizon import loss_over, losses_of_days, windows_of_parts
from optstream.privacy.rules import PUBLICATIONS
from optstream.privacy.zero_concentrated import epsilon_of

DELTA = Fraction(1, 10**6)


def one_draw(shift, q):
    """P(loss = n / b) of discrete Laplace noise moved by `shift`, q = exp(-1 / b), in fractions: {n: p}."""
    ends = {shift: 1 / (1 + q), -shift: q**shift / (1 + q)}
    return ends | {shift - 2 * j: (1 - q) / (1 + q) * q**j for j in range(1, shift)}


def together(first, second):
    found = {}
    for n, p in first.items():
        for m, r in second.items():
            found[n + m] = found.get(n + m, 0) + p * r
    return found


def exact_delta(losses, level, q):
    """The hockey-stick divergence at epsilon = level / b; a probability times 1 - e^(epsilon - loss)."""
    return sum(p * (1 - q ** (n - level)) for n, p in losses.items() if n > level)


def randomised_response(epsilon):
    """P(loss = n * epsilon): no mechanism of this epsilon loses more."""
    truth = exp(epsilon) / (1 + exp(epsilon))
    return {1: truth, -1: 1 - truth}


def lost_over(spends, delta=DELTA, adaptive=False, window=None):
    return loss_over(spends, delta, adaptive=adaptive, window=window)


def loss_of_days(plans, n_days, window=None):
    (found,) = losses_of_days(plans, [n_days], DELTA, window=window)
    return found


def step(stage, weights, scale, shift, first_step=0):
    return StepSpend(0, stage, first_step, weights, scale, shift)


@pytest.mark.parametrize("q", [Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("whole", [2, 3, 6])
def test_a_change_spread_over_several_answers_loses_no_more_than_in_one(q, whole):
    """Lemma 14, exact: every way to split the change, every level of the loss."""
    single = one_draw(whole, q)
    for parts in (parts for n in (2, 3) for parts in combinations_with_replacement(range(1, whole), n)):
        if sum(parts) != whole:
            continue
        split = reduce(together, (one_draw(part, q) for part in parts))
        for level in range(-whole - 1, whole + 1):
            assert exact_delta(split, level, q) <= exact_delta(single, level, q)
        assert exact_delta(split, 0, q) < exact_delta(single, 0, q)


@pytest.mark.parametrize(("shift", "scale", "count"), [(1, 4, 3), (3, 20, 5), (10, 7, 2), (1, 1, 20)])
def test_a_few_draws_compose_to_what_enumeration_says(shift, scale, count):
    """Never below the exact epsilon, and above it by less than 1 %."""
    q = Fraction(exp(-1 / scale))
    losses = reduce(together, [one_draw(shift, q)] * count)
    delta = Fraction(1, 1000)
    found = lost_over([step(SAMPLES, (1,) * count, Fraction(scale), shift)], delta).epsilon
    assert _delta_at(losses, found, scale) <= delta
    assert _delta_at(losses, found * 0.99, scale) > delta


def _delta_at(losses, epsilon, scale):
    return sum(p * (1 - exp(epsilon - n / scale)) for n, p in losses.items() if n > epsilon * scale)


@pytest.mark.parametrize(
    ("epsilon", "blocks", "days", "lost"),
    [("1/10", 8, 30, 0.80), ("1/10", 8, 365, 3.1), ("1", 32, 30, 4.7), ("1", 32, 365, 21.0)],
)
def test_a_month_and_a_year_lose_what_was_measured_beforehand(epsilon, blocks, days, lost):
    scale = 10_000 * blocks / Fraction(epsilon)
    spends = [step(SAMPLES, (1,) * blocks, scale, 10_000, 48 * day) for day in range(days)]
    found = lost_over(spends, window=(48, Fraction(epsilon)))
    assert found.composed == "draws"
    assert found.plain == days * Fraction(epsilon)
    assert lost_over([]).epsilon == 0
    assert found.epsilon == pytest.approx(lost, rel=0.02)


def test_steps_and_parts_that_share_a_draw_are_one_change_of_it():
    """Control: as draws of their own they would seem to lose half, and the sum of a block is one draw."""
    scale = Fraction(160)
    block = [step("blocks", (1,) * 8, scale, 10, 8 * n) for n in range(20)]
    apart = [step(SAMPLES, (1,) * 8, scale, 10, 8 * n) for n in range(20)]
    whole = [step(SAMPLES, (8,), scale, 10, n) for n in range(20)]
    shared, naive, once = (lost_over(some).epsilon for some in (block, apart, whole))
    assert shared == once
    assert naive < 0.6 * shared
    # and a group is one draw of its largest part
    parts = ((range(0, 2), range(2, 5)), (range(5, 6),))
    groups = [JointSpend(0, "blocks", 6 * day, 6, parts, Fraction(40), 2, 1, 3) for day in range(30)]
    draws = [step(SAMPLES, (3, 1), Fraction(40), 6, 2 * day) for day in range(30)]
    found, wanted = (lost_over(some) for some in (groups, draws))
    assert (found.epsilon, found.plain) == (wanted.epsilon, wanted.plain)


def of_group(moved, q, most):
    """P(loss = n / b) of joint noise moved so, over max|x| <= most, and the probability that it is larger."""
    weights = {x: q ** max(map(abs, x)) for x in product(range(-most, most + 1), repeat=len(moved))}
    size = len(moved)
    whole = sum(((2 * r + 1) ** size - (2 * r - 1) ** size) * q**r for r in range(1, 200)) + 1
    found = {}
    for x, weight in weights.items():
        n = max(abs(a + b) for a, b in zip(x, moved, strict=True)) - max(map(abs, x))
        found[n] = found.get(n, 0) + weight / whole
    return found, 1 - sum(found.values())


def test_a_group_moved_inside_its_cube_loses_no_more_than_one_draw():
    """Lemma 17, exact: every move, every level of the loss. Control: a draw moved by one less loses less."""
    q, shift, most = Fraction(1, 8), 2, 8
    levels = range(-shift - 1, shift + 1)
    single, less = one_draw(shift, q), one_draw(shift - 1, q)
    corner, beyond = of_group((shift, shift), q, most)
    assert beyond < Fraction(1, 10_000)
    for moved in product(range(shift + 1), repeat=2):
        found, _ = of_group(moved, q, most)
        for level in levels:
            assert exact_delta(found, level, q) <= exact_delta(single, level, q)
            assert exact_delta(found, level, q) <= exact_delta(corner, level, q) + beyond * q ** -(shift + 1)
    assert any(exact_delta(corner, level, q) > exact_delta(less, level, q) for level in levels)


def test_a_choice_by_what_was_released_leaves_whole_windows_only():
    """The number of draws, or their noise, is then an outcome: no composition of the outcome itself holds."""
    fixed = [step(SAMPLES, (1,) * 4, Fraction(40), 1, 4 * n) for n in range(100)]
    window = (4, Fraction(1, 10))
    by_draws = lost_over(fixed, window=window)
    by_windows = lost_over(fixed, adaptive=True, window=window)
    assert (by_draws.composed, by_windows.composed) == ("draws", "windows")
    assert by_draws.epsilon < by_windows.epsilon < float(by_windows.plain) == 10
    chosen = [
        step(PUBLICATIONS, (Fraction(1, 2),), Fraction(10), 1),
        step(DISTANCE, (1,), Fraction(10), 1),
        CappedSpend(0, SAMPLES, 0, 4, 1, (), Fraction(10), 1),
    ]
    for spend in chosen:
        found = lost_over([*fixed, spend])
        assert found.composed == "plain"
        assert found.epsilon == float(found.plain)
    plans = [[replace(step(DISTANCE, (1,), Fraction(10), 1), first_step=day)] for day in range(40)]
    assert loss_of_days(plans, 30, (1, Fraction(1, 10))).composed == "windows"
    with pytest.raises(ParameterError, match=r"n_days must be in 1 \.\. 40"):
        loss_of_days(plans, 41)


@pytest.mark.parametrize("n_windows", [4, 12])
@pytest.mark.parametrize("adaptive", [False, True])
def test_a_sum_that_windows_share_loses_more_than_their_composition(n_windows, adaptive):
    """All of a day moved is one change by 12; as responses of its windows it would seem to lose less."""
    n_days, scale = 3, Fraction(48, n_windows)
    days = [step("features/day", (1,) * 12, scale, 1, 12 * day) for day in range(n_days)]
    window = (12 // n_windows, Fraction(1, 4))
    assert worst_window(days, window[0]).epsilon == window[1]
    found = lost_over(days, Fraction(1, 1000), adaptive=adaptive, window=window).epsilon
    losses = reduce(together, [one_draw(12, Fraction(exp(-1 / scale)))] * n_days)
    assert _delta_at(losses, found, scale) <= Fraction(1, 1000)
    losses_of_windows = reduce(together, [randomised_response(0.25)] * (n_days * n_windows))
    assert _delta_at(losses_of_windows, found * 0.9, 4) < Fraction(1, 1000)  # control


@pytest.mark.parametrize(
    ("periods", "window_length", "n_windows"),
    [
        ([(0, 4), (4, 4)], 4, [1, 1]),
        ([(0, 4), (4, 4), (8, 4)], 8, [1, 1]),
        ([(0, 4), (4, 4)], 3, [2, 2]),
        ([(0, 4), (4, 3), (7, 5)], 4, [1, 1, 2]),
        ([(0, 4), (2, 4), (6, 2)], 4, [2, 1]),
        ([(0, 8), (2, 2), (4, 4)], 4, [2]),
        ([(0, 4), (40, 4)], 8, [1, 1]),
        ([], 8, []),
    ],
)
def test_a_span_is_cut_where_no_measurement_reaches_across(periods, window_length, n_windows):
    spent = [range(first, first + length) for first, length in periods]
    assert windows_of_parts(spent, window_length) == n_windows


def test_groups_that_go_on_from_window_to_window_leave_the_plain_sum():
    """A group's threshold may serve any number of windows, so these are no composition of their own."""
    spends = [step(GROUPER, (1,) * 4, Fraction(40), 1, 4 * n) for n in range(200)]
    chosen = [*spends, step(DISTANCE, (1,), Fraction(1000), 1, 800)]
    for some in (spends, chosen):
        assert lost_over(some, window=(4, Fraction(1, 10))).epsilon >= 20


def test_noise_that_serves_several_steps_is_added_up_and_a_joint_measurement_is_pure():
    grouper = [step(GROUPER, (1,) * 4, Fraction(40), 1, 4 * n) for n in range(10)]
    assert lost_over(grouper).epsilon == pytest.approx(1)
    pure = lost_over([PeriodSpend(0, "sampling", n, (Fraction(0), Fraction(1, 10))) for n in range(100)])
    fresh = lost_over([step(SAMPLES, (1,), Fraction(100), 10, n) for n in range(100)])
    assert fresh.epsilon < pure.epsilon < float(pure.plain) == 10
    assert _delta_at(reduce(together, [randomised_response(0.1)] * 100), pure.epsilon, 10) <= DELTA


def test_a_change_of_many_units_is_covered_by_continuous_noise():
    """Of a hundredth of the units all losses are listed."""
    listed, covered = (lost_over([step(SAMPLES, (1,) * 10, Fraction(4000 * n), 300 * n)]) for n in (1, 100))
    assert listed.epsilon <= covered.epsilon <= listed.epsilon * 1.02


def test_the_loss_of_any_days_in_a_row_is_none_of_their_spans_below():
    """Days of three lengths, two scales and a joint measurement: every span, by itself, loses no more."""
    plans = []
    for day in range(24):
        length = {5: 3, 17: 5}.get(day, 4)
        own = [
            step("blocks", (1,) * length, Fraction(50), 1),
            step(SAMPLES, (1,) * (day % 3), Fraction(20), 1),
        ]
        if day % 5 == 0:
            own.append(PeriodSpend(0, "sampling", 0, (Fraction(0), Fraction(1, 10 + day))))
        plans.append([*own, step(GROUPER, (1,), Fraction(200 + day), 1)])
    for n_days in (1, 7, 24):
        bound = loss_of_days(plans, n_days)
        spans = [
            lost_over([s for plan in plans[first : first + n_days] for s in plan])
            for first in range(25 - n_days)
        ]
        assert max(one.epsilon for one in spans) <= bound.epsilon + 1e-9
        assert max(one.plain for one in spans) == bound.plain
        assert bound.epsilon <= 1.15 * max(one.epsilon for one in spans)
        # control: another span alone would have said too little
        assert n_days == 24 or min(one.epsilon for one in spans) < max(one.epsilon for one in spans)
    same = [plans[1]] * 9
    assert loss_of_days(same, 6) == lost_over([s for plan in same[:6] for s in plan])


def gaussian(first_step, *lengths):
    """Sums over so many steps each, one after the other, of sigma 10 and a change of 1."""
    stops = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    parts = tuple(range(stop - length, stop) for stop, length in zip(stops, lengths, strict=True))
    return GaussianSpend(0, "blocks", first_step, stops[-1], parts, Fraction(10), 1)


@pytest.mark.parametrize("adaptive", [False, True])
def test_rho_adds_up_over_a_span_by_all_steps_of_each_measurement(adaptive):
    found = lost_over([gaussian(0, 1, 1, 2), gaussian(4, 3)], adaptive=adaptive)
    assert (found.plain, found.composed) == (Fraction(1 + 1 + 4 + 9, 200), "rho")
    assert epsilon_of(found.plain, DELTA) <= Fraction(found.epsilon)
    assert found.epsilon == pytest.approx(float(epsilon_of(found.plain, DELTA)))


def test_days_in_rho_lose_what_the_dearest_in_a_row_do_and_sums_all_that_they_change():
    """A sum over two windows costs four times what it costs one: whole windows are no bound in rho."""
    days = [[gaussian(0, 1)], [gaussian(1, 2)], [gaussian(3, 1)], [gaussian(4, 2)], [gaussian(6, 2)]]
    assert loss_of_days(days, 2).plain == Fraction(8, 200)
    spend = gaussian(0, 4)
    window = (2, worst_window([spend], 2).epsilon)
    found = lost_over([spend], window=window)
    assert found.plain == 4 * window[1]
    assert loss_of_days([[spend], [replace(spend, first_step=4)]], 1, window) == found


# Lemma 17a: noise of a whole stream over a span, against the densities themselves on a grid.


def phi(values, window):
    """The largest sum of sizes over chains of blocks no two of which share a window, (...,)."""
    sums = []
    for block, value in enumerate(values):
        before = [sums[earlier] for earlier in range(block - window + 1)]
        sums.append(np.abs(value) + (reduce(np.maximum, before) if before else 0))
    return reduce(np.maximum, sums)


@pytest.mark.parametrize(
    ("window", "moved", "n_windows"), [(2, (1, 1, 1), 2), (1, (1, 1), 2), (2, (1, 1), 1)]
)
def test_blocks_of_k_windows_are_told_apart_no_better_than_k_laplace_draws(window, moved, n_windows):
    """Densities on a grid of b / 8, which errs by less than 1e-4; a twin counts a draw too few."""
    scale, reach = 8, 8 * 13
    axis = np.arange(-reach, reach + 1)
    grid = np.meshgrid(*[axis] * len(moved), indexing="ij", sparse=True)
    one = np.exp(-phi(grid, window) / scale)
    other = np.exp(-phi([at - scale * by for at, by in zip(grid, moved, strict=True)], window) / scale)
    laplace = np.exp(-np.abs(axis) / scale)
    pair = laplace / laplace.sum(), np.exp(-np.abs(axis - scale) / scale) / laplace.sum()

    def delta(p, q, epsilon):
        return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())

    def draws(number, epsilon):
        p, q = np.ones(1), np.ones(1)
        for _ in range(number):
            p, q = np.multiply.outer(p, pair[0]), np.multiply.outer(q, pair[1])
        return delta(p, q, epsilon)

    total = one.sum()
    for epsilon in (0.25, 0.75, 1.5):
        found = delta(one / total, other / total, epsilon)
        assert found <= draws(n_windows, epsilon) + 1e-4
        if n_windows > 1:
            assert found > draws(n_windows - 1, epsilon) + 0.01, "the twin"

"""Equally spaced points: exactly k in every window, whatever the days are like."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sampling import (
    Choice,
    _scores,
    choose_points,
    l1_score_change,
    sparse_vector_scales,
)
from optstream.noise import simulated_noise
from optstream.privacy.rules import WindowBudget
from optstream.stream.private_period import LARGEST_UNITS, LONGEST_IN_INT64
from tests.optstream.mechanisms.silent_noise import SilentNoise


@pytest.mark.parametrize(("window", "count"), [(48, 10), (48, 2), (48, 48), (7, 3), (2, 2), (336, 20)])
def test_every_window_holds_exactly_k_points_over_days_of_46_48_and_50_steps(window, count):
    sampled, at = set(), 0
    for length in [48, 46, 48, 50, 48, 48, 50, 46] * 3:
        sampled |= {at + step for step in EquallySpaced(count).positions(length, at, window)}
        at += length
    for start in range(at - window + 1):
        assert len(sampled & set(range(start, start + window))) == count


def test_a_whole_window_has_points_at_both_ends():
    assert EquallySpaced(10).positions(48, 0, 48) == (0, 5, 10, 16, 21, 26, 31, 37, 42, 47)


SCALES = sparse_vector_scales(10, 4, Fraction(1))


def score(series, start, end):
    """The L1 score of one node, straight from its definition, as a fraction."""
    return sum(
        (
            abs(
                Fraction(int(series[step]))
                - Fraction(int(series[start]) * (end - step) + int(series[end]) * (step - start), end - start)
            )
            for step in range(start + 1, end)
        ),
        Fraction(0),
    )


def rule(cap=48, window=48, n_steps=12, taken=(), first_step=0):
    return WindowBudget(cap, window, first_step, n_steps, [(step, 1) for step in taken])


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.integers(-1000, 1000), min_size=9, max_size=9), min_size=1, max_size=3),
    st.booleans(),
)
def test_scores_are_those_of_the_definition_also_beyond_64_bits(rows, huge):
    exact = np.array(rows, dtype=np.int64) * (2**47 if huge else 1)
    for start in range(8):
        ends = list(range(start + 1, 9))
        expected = [sum(score(row, start, end) for row in exact) * (end - start) for end in ends]
        assert list(_scores(exact, start, ends)) == expected


@pytest.mark.parametrize("n_steps", [LONGEST_IN_INT64, LONGEST_IN_INT64 + 1])
def test_scores_of_the_largest_readings_and_the_longest_periods_are_exact(n_steps):
    exact = np.full((3, n_steps), LARGEST_UNITS // 3)
    exact[:, ::2] *= -1
    ends = [2, n_steps - 2, n_steps - 1]
    expected = [sum(score(row, 0, end) for row in exact) * end for end in ends]
    assert list(_scores(exact, 0, ends)) == expected


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_change_of_n_steps_moves_a_score_by_more_than_lemma_6_says(data):
    length, alpha = data.draw(st.integers(2, 8)), 3
    before = np.array(data.draw(st.lists(st.integers(-20, 20), min_size=length + 1, max_size=length + 1)))
    changed = data.draw(st.sets(st.integers(0, length), min_size=1))
    after = before.copy()
    for step in changed:
        after[step] += data.draw(st.integers(-alpha, alpha))
    moved = abs(score(after, 0, length) - score(before, 0, length))
    assert moved <= alpha * l1_score_change(len(changed), length)


@pytest.mark.parametrize("length", [2, 3, 5, 8, 38])
def test_lemma_6_is_attained_by_one_end_both_ends_and_all_steps(length):
    """So a smaller sensitivity would be wrong: the paper's, for periods longer than the window, is."""
    alpha, low = 1, np.zeros(length + 1, dtype=int)
    low[1:-1] = -1000
    one, both, every = low.copy(), low.copy(), low.copy()
    one[0] += alpha
    both[[0, -1]] += alpha
    every[[0, -1]] += alpha
    every[1:-1] -= alpha
    base = score(low, 0, length)
    assert score(one, 0, length) - base == Fraction(length - 1, 2) <= l1_score_change(1, length)
    assert score(both, 0, length) - base == length - 1 <= l1_score_change(2, length)
    assert score(every, 0, length) - base == 2 * (length - 1) == l1_score_change(length + 1, length)


def test_without_noise_a_line_needs_its_ends_only_and_a_corner_becomes_a_point():
    line = np.arange(12, dtype=np.int64)[None] * 10
    # no step is taken unasked
    assert choose_points(line, Choice(0, 3, 5, rule(), SCALES), SilentNoise()) == (0,)
    corner = np.array([[0, 0, 0, 0, 0, 50, 100, 150, 200, 250, 300, 350]])
    chosen = choose_points(corner, Choice(0, 4, 5, rule(), SCALES), SilentNoise())
    assert chosen[:2] == (0, 5)


def test_no_window_ever_holds_one_point_more_over_days_of_any_length():
    sampling, window = L1Sampling(10, 0), 48
    for seed, kind in [(0, "early"), (1, "late"), (2, "random")]:
        taken, at = [], 0
        for number, length in enumerate([48, 46, 48, 50, 48, 24, 48, 1, 2, 100, 48] * 3):
            generator = np.random.default_rng((seed, number))
            exact = generator.integers(-500, 500, (2, length)) * (kind != "late")
            n_points = sampling.points_of_period(length, window)
            threshold, noise = 10**6 if kind == "late" else 0, SilentNoise()
            choice = Choice(0, n_points, threshold, rule(10, window, length, taken, at), SCALES)
            own = choose_points(exact, choice, simulated_noise(number) if kind == "random" else noise)
            assert len(own) <= n_points
            assert sorted(set(own)) == list(own)
            taken += [at + step for step in own]
            at += length
        for start in range(-window, at):
            assert len([step for step in taken if start <= step < start + window]) <= 10


def test_the_rule_looks_at_later_periods_too():
    """Late data: a day released after its neighbours on both sides."""
    taken = [*range(38, 48), *range(96, 106)]
    allowed = rule(10, 48, 48, taken, 48).allowed()
    assert not allowed.any()
    assert rule(10, 48, 48, taken[:10], 48).allowed().nonzero()[0].tolist() == list(range(38, 48))


@pytest.mark.parametrize("allocation", ["even", "optimal"])
@pytest.mark.parametrize("n_positive", [1, 9, 50])
def test_the_sparse_vector_costs_at_most_its_epsilon_and_no_less_than_rounding(allocation, n_positive):
    scales = sparse_vector_scales(740_000, n_positive, Fraction(1, 6), allocation)
    assert Fraction(1, 6) * (1 - Fraction(1, 2**50)) < scales.loss(Fraction(740_000)) <= Fraction(1, 6)
    if allocation == "even":
        assert float(scales.threshold) == pytest.approx(2 * 740_000 * 6)
        assert float(scales.query) == pytest.approx(4 * n_positive * 740_000 * 6)

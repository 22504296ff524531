"""PeGaSus' grouper: hand-worked groups, and its sensitivity by brute force."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from optstream.measurement.grouping import GroupingTerms, draw_groups, scaled_deviation
from tests.optstream.mechanisms.silent_noise import ListedNoise

TERMS = GroupingTerms(Fraction(1), Fraction(10), 6)
"""Noise of scale 1 on values, 40 on thresholds, 80 on comparisons; groups may deviate by 6 units."""


def groups_of(values, thresholds, deviations, first_step=0, groups=None):
    noise = ListedNoise({40.0: thresholds, 80.0: deviations})  # values' noise is none
    exact = np.atleast_2d(np.array(values, dtype=np.int64))
    _, starts, left = draw_groups(exact, first_step, TERMS, groups or [None] * len(exact), noise)
    assert noise.stock == {40.0: [], 80.0: []}  # no more and no less was drawn than written down
    return starts.tolist(), left


def test_steps_by_hand():
    """dev of {0,0} is 0, of {0,0,3} 4, of {0,0,3,9} 12, of {9,9} 0, of {9,9,1} 32/3."""
    # step 0 opens with limit 6; 0 < 6 and 4 < 6 join; 12 does not: step 3 is closed, alone; step 4 opens
    # with limit 6; step 5 joins; step 6 (32/3) does not
    starts, left = groups_of([0, 0, 3, 9, 9, 9, 1], [0, 0], [0, 0, 0, 0, 0])
    assert starts == [[0, 0, 0, 3, 4, 4, 6]]
    assert left == [None]


@pytest.mark.parametrize(
    ("values", "thresholds", "deviations", "starts"),
    [
        # dev {0,6} is 6: not below 6; below 7
        ([0, 6], [0], [0], [0, 1]),
        ([0, 6], [1], [0], [0, 0]),
        ([0, 6], [0], [-1], [0, 0]),
        # dev {0,0,5} is 20/3, without rounding: below 7 and not below 6; {0,0,4} is 16/3
        ([0, 0, 5], [0], [0, 0], [0, 0, 2]),
        ([0, 0, 5], [1], [0, 0], [0, 0, 0]),
        ([0, 0, 4], [0], [0, 0], [0, 0, 0]),
        # one threshold a group, and for each comparison noise of its own
        ([0, 0, 0, 0, 0], [4], [9, 9, 9, 10], [0, 0, 0, 0, 4]),
    ],
)
def test_comparisons_by_hand(values, thresholds, deviations, starts):
    assert groups_of(values, thresholds, deviations)[0] == [starts]


def test_each_series_has_groups_of_its_own_and_noise_in_a_fixed_order():
    values = [[0, 0, 9, 9], [7, 7, 7, 7]]
    # thresholds: step 0 both series (limits 6 and 10), step 3 series 0; comparisons: step 1 both, step 2
    # both (the second meets its limit of 10), step 3 none, for series 1 opens again
    starts, left = groups_of(values, [0, 4, 0, 5], [0, 0, 0, 10])
    assert starts == [[0, 0, 2, 3], [0, 0, 2, 3]]
    assert [group.limit for group in left] == [6, 11]


def test_a_group_goes_on_where_it_was_left():
    whole, left_whole = groups_of([0, 1, 2, 1, 0, 9], [0], [0, 0, 0, 0, 0], first_step=10)
    first, left = groups_of([0, 1, 2], [0], [0, 0], first_step=10)
    second, left_second = groups_of([1, 0, 9], [], [0, 0, 0], first_step=13, groups=left)
    assert [first[0] + second[0]] == whole == [[10, 10, 10, 10, 10, 15]]
    assert left_whole == left_second == [None]


@pytest.mark.parametrize("largest", [1, 10**4, 2**50, 2**70])
def test_the_deviation_is_that_of_its_definition(largest):
    generator = np.random.default_rng(largest % 1000)
    for size in (1, 2, 3, 10, 57):
        values = sorted(int(value) * largest for value in generator.integers(-50, 50, size))
        mean = Fraction(sum(values), size)
        by_definition = size * sum(abs(value - mean) for value in values)
        assert scaled_deviation(values, sum(values)) == by_definition


def test_a_changed_value_moves_the_deviation_by_at_most_twice_its_change_and_nearly_so_much():
    """Every group of up to 4 values in 0..4, every change of one value by up to 2 units."""

    def dev(values):
        return Fraction(scaled_deviation(sorted(values), sum(values)), len(values))

    for size in range(1, 5):
        largest = Fraction(0)
        for values in product(range(5), repeat=size):
            for change in (-2, -1, 1, 2):
                moved = abs(dev((values[0] + change, *values[1:])) - dev(values)) / abs(change)
                largest = max(largest, moved)
        assert largest == 2 * (1 - Fraction(1, size)) < 2
    many = [0] * 999
    assert dev([*many, 1]) - dev([*many, 0]) == 2 * (1 - Fraction(1, 1000))

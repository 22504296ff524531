"""PeGaSus' grouper: hand-worked groups, and its sensitivity by brute force."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from optstream.measurement.grouping import GroupingTerms, draw_groups, scaled_deviation
from optstream.noise import simulated_noise
from tests.optstream.mechanisms.silent_noise import ListedNoise

TERMS = GroupingTerms(Fraction(1), Fraction(10), 6)
"""Noise of scale 1 on values, 40 on thresholds, 80 on comparisons; groups may deviate by 6 units."""


def groups_of(values, thresholds, deviations, first_step=0, groups=None):
    noise = ListedNoise({40.0: thresholds, 80.0: deviations})  # values' noise is none
    exact = np.atleast_2d(np.array(values, dtype=np.int64))
    _, starts, left = draw_groups(exact, first_step, TERMS, groups or [None] * len(exact), noise)
    assert noise.stock == {40.0: [], 80.0: []}  # no more and no less was drawn than written down
    return starts.tolist(), left


@pytest.mark.parametrize(
    ("values", "thresholds", "deviations", "starts"),
    [
        # dev {0,0} is 0, {0,0,3} 4, {0,0,3,9} 12, which closes step 3 alone; {9,9} 0, {9,9,1} 32/3
        ([0, 0, 3, 9, 9, 9, 1], [0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 3, 4, 4, 6]),
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
    found, left = groups_of(values, thresholds, deviations)
    assert found == [starts]
    # a last step that does not join is a closed group of its own
    assert [group is None for group in left] == [starts[-1] == len(values) - 1]


def test_each_series_has_groups_of_its_own_and_noise_in_a_fixed_order():
    values = [[0, 0, 9, 9], [7, 7, 7, 7]]
    # thresholds: step 0 both series (limits 6 and 10), step 3 series 0; comparisons: step 1 both, step 2
    # both (the second meets its limit of 10), step 3 none, for series 1 opens again
    starts, left = groups_of(values, [0, 4, 0, 5], [0, 0, 0, 10])
    assert starts == [[0, 0, 2, 3], [0, 0, 2, 3]]
    assert [group.limit for group in left] == [6, 11]


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


ALPHA, EPSILON = 2, 1.0
SCALES = 4 * ALPHA / EPSILON, 8 * ALPHA / EPSILON
THRESHOLD = 5
REACH = 40
"""Noise beyond so many scales is left out: e^-40, far below any probability compared here."""


def laplace(scale):
    values = np.arange(-int(REACH * scale), int(REACH * scale) + 1)
    return values, np.exp(-np.abs(values) / scale) * np.tanh(0.5 / scale)


def below(scale, limits):
    """P(noise < limit) for each integer limit."""
    tail = np.exp(-np.where(limits >= 1, limits, 1 - limits) / scale) / (1 + np.exp(-1 / scale))
    return np.where(limits >= 1, 1 - tail, tail)


def floored_deviations(values):
    """Of the first 2, 3, … values: integer noise is below limit - dev if it is below limit - floor(dev)."""
    return [
        sum(abs(value - Fraction(sum(values[:size]), size)) for value in values[:size]) // 1
        for size in range(2, len(values) + 1)
    ]


def group(values, closes, scales=SCALES, kind="ours"):
    """P(a group that begins with these values takes them all; or, `closes`, all but the last)."""
    noise, mass = laplace(scales[0])
    deviations = [int(deviation) for deviation in floored_deviations(values)]
    if not deviations:
        return 1.0
    if kind == "one noise for all comparisons":
        stays = [(mass * below(scales[1], THRESHOLD + noise - max(deviations[:size]))).sum() if size else 1.0
                 for size in range(len(deviations) + 1)]  # fmt: skip
        return stays[-2] - stays[-1] if closes else stays[-1]
    joins = np.array([below(scales[1], THRESHOLD + noise - deviation) for deviation in deviations])
    if closes:
        joins[-1] = 1 - joins[-1]
    if kind == "threshold drawn for each comparison":
        return float(np.prod(joins @ mass))
    return float(mass @ np.prod(joins, axis=0))


def groupings(values, at=0, **how):
    """{first step of each step's group: its probability}, over all that can come out."""
    if at == len(values):
        return {(): 1.0}
    found = {(at,) * (len(values) - at): group(values[at:], False, **how)}
    for end in range(at + 1, len(values)):
        chance = group(values[at : end + 1], True, **how)
        for rest, after in groupings(values, end + 1, **how).items():
            found[(at,) * (end - at) + (end, *rest)] = chance * after
    return found


def loss(one, other):
    return max(abs(np.log(one[outcome] / other[outcome])) for outcome in one)


@pytest.mark.nightly
def test_the_groups_come_out_as_often_as_enumerated():
    """Within 5.5 standard deviations, 2 x 8 outcomes: a false alarm in 1e6."""
    runs = 60_000
    for values in ([0, 1, 9, 9, 0], [4, 0, 0, 0, 30]):
        exact = np.tile(np.array(values, dtype=np.int64), (runs, 1))
        terms = GroupingTerms(Fraction(1), Fraction(ALPHA), THRESHOLD)
        _, starts, _ = draw_groups(exact, 0, terms, [None] * runs, simulated_noise(3))
        drawn, counts = np.unique(starts, axis=0, return_counts=True)
        found = {tuple(int(step) for step in row): count for row, count in zip(drawn, counts, strict=True)}
        expected = groupings(values)
        assert sum(expected.values()) == pytest.approx(1.0, abs=1e-12)
        assert set(found) <= set(expected)

        def agrees(chances, found=found):
            return all(
                abs(found.get(outcome, 0) - runs * p) <= 5.5 * np.sqrt(runs * p * (1 - p)) + 1e-6
                for outcome, p in chances.items()
            )

        assert agrees(expected)
        assert not agrees(groupings(values, scales=(SCALES[0] / 2, SCALES[1] / 2)))
        assert not agrees(groupings(values, kind="threshold drawn for each comparison"))


@pytest.mark.slow
def test_a_change_loses_at_most_epsilon_for_each_step_in_any_groups():
    """All streams of three steps on a grid, all changes of one and of several steps by up to alpha."""
    largest = dict.fromkeys(range(1, 4), 0.0)
    known = {}

    def chances(values):
        if values not in known:
            known[values] = groupings(list(values))
        return known[values]

    for values in product((0, 4, 40), repeat=3):
        for changes in product((-ALPHA, 0, ALPHA), repeat=3):
            changed = sum(change != 0 for change in changes)
            if changed:
                other = tuple(value + change for value, change in zip(values, changes, strict=True))
                largest[changed] = max(largest[changed], loss(chances(values), chances(other)))
    for changed, found in largest.items():
        assert 0.1 * EPSILON < found <= changed * EPSILON
    # a smaller change costs less, in proportion: what one customer spreads over series adds up
    assert loss(chances((0, 4, 0, 4)), chances((1, 4, 0, 4))) <= EPSILON / 2


LONG, CHANGED = [0] * 40, [ALPHA] + [0] * 39


def stays(values, **how):
    return np.log(group(values, False, **how))


def test_a_change_at_the_start_of_a_long_group_loses_no_more_and_broken_groupers_do():
    def lost(**how):
        return abs(stays(LONG, **how) - stays(CHANGED, **how))

    assert lost() <= EPSILON
    assert lost(kind="threshold drawn for each comparison") > 2 * EPSILON
    assert lost(scales=(SCALES[0] / 8, SCALES[1] / 8)) > EPSILON
    # equal values have deviation 0: with the same noise for all comparisons, what joined once never fails
    values, other = [0, 0, 0], [0, 0, ALPHA]
    broken = [group(side, True, kind="one noise for all comparisons") for side in (values, other)]
    assert broken[0] == 0 < broken[1]
    assert abs(np.log(group(values, True) / group(other, True))) <= EPSILON


def known_outcomes(values, comparisons, n_first, thresholds=()):
    """{groups: probability} of two days' values over one threshold, after `thresholds`; the rest is known."""
    terms, found = GroupingTerms(Fraction(1), Fraction(ALPHA / EPSILON), THRESHOLD), {}
    days = (np.array([values[:n_first]]), 0), (np.array([values[n_first:]]), n_first)
    for threshold, mass in zip(*laplace(SCALES[0]), strict=True):
        stock = {SCALES[0]: [*thresholds, threshold, *[0] * len(values)], SCALES[1]: comparisons}
        noise, groups, starts = ListedNoise(stock), [None], []
        for exact, first_step in days:
            _, own, groups = draw_groups(exact, first_step, terms, groups, noise)
            starts += own[0].tolist()
        found[tuple(starts)] = found.get(tuple(starts), 0.0) + mass
    return found


def test_a_day_whose_comparisons_are_known_gives_away_the_group_that_ran_into_it_and_no_more():
    """One step of 0 or alpha on the day before: an outcome that the one never gives, the other does."""
    one, other = (known_outcomes([first, 0, ALPHA], [0, 0], n_first=1) for first in (0, ALPHA))
    assert one[0, 0, 2] > 0.05
    assert other.get((0, 0, 2), 0.0) == 0.0
    # with fresh comparisons the same change loses no more than epsilon
    assert loss(*(groupings([first, 0, ALPHA]) for first in (0, ALPHA))) <= EPSILON
    # a step whose group closed before the leaked day: all outcomes keep their odds; the step of 50 does not
    # join, and the next one opens the group that runs into the second day
    one, other = (
        known_outcomes([first, 50, 0, 0, ALPHA], [0, 0, 0], n_first=3, thresholds=[0]) for first in (0, ALPHA)
    )
    assert {groups[:3] for groups in one} == {(0, 1, 2)}
    assert len(one) > 1
    assert one == other


def test_a_known_threshold_gives_away_the_steps_that_it_is_compared_with_later():
    """One value of the day after, forty comparisons with a threshold of the day before: each tells of it."""
    deviations = [np.array([int(each) for each in floored_deviations(values)]) for values in (LONG, CHANGED)]
    chances = [below(SCALES[1], THRESHOLD - own).prod() for own in deviations]
    assert abs(np.log(chances[0] / chances[1])) > 2 * EPSILON
    assert abs(stays(LONG) - stays(CHANGED)) <= EPSILON

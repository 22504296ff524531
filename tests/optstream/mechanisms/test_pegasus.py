"""PeGaSus: groups by hand and by enumeration, what it costs, raw state that stays in."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement.grouping import GroupingTerms, draw_groups, measure_groups, scaled_deviation
from optstream.mechanisms import Hierarchical, PeGaSus
from optstream.mechanisms.pegasus import NOISE_LEFT, SMOOTHERS
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Measured, PrivatePeriod
from optstream.stream.private_period import public_part, raw_bytes, with_raw
from tests.optstream.mechanisms.planned_days import released
from tests.optstream.mechanisms.silent_noise import ListedNoise, SilentNoise, Undrawn

TERMS = GroupingTerms(Fraction(1), Fraction(10), 6)
"""Noise of scale 1 on values, 40 on thresholds, 80 on comparisons; groups may deviate by 6 units."""
ALPHA, EPSILON = 2, 1.0
SCALES = 4 * ALPHA / EPSILON, 8 * ALPHA / EPSILON
THRESHOLD = 5
REACH = 40
"""Noise beyond so many scales is left out: e^-40, far below any probability compared here."""
LONG, CHANGED = [0] * 40, [ALPHA] + [0] * 39
MODEL = PrivacyModel("1", 4, 1, "1")
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
CHAIN = AggregationTree.from_parents({"all": None, "A": "all", "a": "A", "b": "A"})
NOISY = np.random.default_rng(2).integers(-100, 100, (2, 12))
GROUPS = [[0, 0, 0, 0, 4, 5, 5, 5, 5, 9, 9, 9], [0] * 12]
DIRECT = {
    "average": lambda groups: groups.mean(axis=-1),
    "median": lambda groups: np.median(groups, axis=-1),
    "james_stein": lambda groups: (
        groups.mean(axis=-1) + (groups[..., -1] - groups.mean(axis=-1)) / groups.shape[-1]
    ),
}


def grouped(values, thresholds, deviations, first_step=0, groups=None):
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
    found, left = grouped(values, thresholds, deviations)
    assert found == [starts]
    # a last step that does not join is a closed group of its own
    assert [group is None for group in left] == [starts[-1] == len(values) - 1]


def test_each_series_has_groups_of_its_own_and_noise_in_a_fixed_order():
    # thresholds: step 0 both series (limits 6 and 10), step 3 series 0; comparisons: step 1 both, step 2
    # both (the second meets its limit of 10), step 3 none, for series 1 opens again
    starts, left = grouped([[0, 0, 9, 9], [7, 7, 7, 7]], [0, 4, 0, 5], [0, 0, 0, 10])
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


def groups_of(parts, level=None):
    measured = [part.measured if level is None else part.measured.parts[level] for part in parts]
    return np.concatenate([one.choices["groups"] for one in measured], axis=1)


def closed_at(mechanism, values, cut, keep):
    parts = released(mechanism, values, [cut], keep=keep)
    groups = groups_of(parts)[:, cut:]
    if not np.all(groups[:, 0] == cut):
        return False
    return np.array_equal(mechanism.fitted(replace(parts[1].measured, before=None)).values, parts[1].values)


def test_lost_raw_state_closes_every_group_and_nothing_is_smoothed_on():
    values, mechanism = np.full((3, 40), 100), PeGaSus(MODEL, threshold=10**6)
    other = PeGaSus(replace(MODEL, epsilon=Fraction(2)), threshold=10**6)
    later = mechanism.measure(values[:, :20], noise=simulated_noise(2), first_step=100)
    (elsewhere,) = released(other, values[:, :20], [])
    assert not closed_at(mechanism, values, 20, lambda state: state)  # as a control: one group, all along
    for keep in (
        public_part,
        lambda state: None,
        lambda state: {**state, "next_step": 19},
        lambda state: {**state, "noisy": [[1]] * 3},
        lambda state: mechanism.recall([], {"mechanism": "Sample"}),
        lambda state: {**state, "raw": later.state["raw"]},
        lambda state: elsewhere.state,  # other terms
    ):
        assert closed_at(mechanism, values, 20, keep)


def test_raw_state_that_has_served_does_not_serve_again():
    """A second revision of a period begins its groups again. Control: raw state that was not used."""
    values = np.full((2, 10), 500)
    for mechanism in (PeGaSus(MODEL, threshold=10**6), on_tree(threshold=10**6)):
        first, second = released(mechanism, np.tile(values, 2), [10])
        for known, begin in ((second, 10), (first, 0)):
            state = with_raw(mechanism.recall(known.spends, public_part(first.state)), raw_bytes(first.state))
            drawn = mechanism.measure(values, noise=simulated_noise(3), first_step=10, state=state)
            for part in drawn.parts or (drawn,):
                assert np.all(np.array(part.choices["groups"]) == begin)


def test_spends_that_price_other_steps_are_refused_before_anything_is_drawn():
    mechanism = PeGaSus(MODEL)
    period = PrivatePeriod.from_values([[1, 2, 3]], resolution=MODEL.resolution, first_step=4)
    right, shorter, earlier = (mechanism.plan(*steps) for steps in ((3, 4), (2, 4), (3, 0)))
    for spends in (shorter, earlier, (right[0], shorter[1]), (earlier[0], right[1])):
        with pytest.raises(ParameterError, match="does not price the steps it is for"):
            measure_groups(period, spends, 5, None, Undrawn())


def exact_loss(scales, moved, n_states):
    """The most that two steps of `n_states` counts tell of a user in all of them at the second step."""
    groups = 0.0
    for first, second, change in product((0, 4, 9), (0, 4, 9, 30), (-moved, moved)):
        sides = (groupings([first, value], scales=scales[1:]) for value in (second, second + change))
        groups = max(groups, loss(*sides))
    return n_states * (moved / scales[0] + groups)


def scales_for(n_states, part=1):
    """Of a user who counts so much in each of several states: perturber, threshold and comparisons."""
    noise = SilentNoise()
    mechanism = PeGaSus(PrivacyModel("1", 1, part, part, unit="roaming", leaves_per_step=n_states))
    assert mechanism.model.alpha_units == 1
    mechanism.release(np.zeros((3, 4)), noise=noise)
    return noise.scales


@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_m_times_the_noise_covers_a_user_in_m_states(n_states):
    """Counted whole or in m-ths, by as many units of noise: a user's is then that of one state."""
    for part in (1, Fraction(1, n_states)):
        scales = scales_for(n_states, part)
        assert scales[0] == pytest.approx(n_states / 0.8)
        assert exact_loss(scales, 1, n_states) <= 1 + 1e-9
    # control: with one state's noise the perturber's part alone is m times 0.8
    assert exact_loss(scales_for(1), 1, n_states) > 0.8 * n_states


def on_tree(tree=TREE, shares=("1/2", "1/2"), model=MODEL, **parameters):
    return Hierarchical(PeGaSus(model, **parameters), tree, list(shares))


def blocks(n_steps, n_series=2, seed=0):
    generator = np.random.default_rng(seed)
    return np.repeat(generator.integers(50, 400, (n_series, n_steps // 10 + 1)), 10, axis=1)[:, :n_steps]


class ByScale:
    """Noise with a tape for each scale: what one level draws does not move another's."""

    simulated = True

    def __init__(self, seed):
        self._seed, self._tapes = seed, {}

    def discrete_laplace(self, scale, size):
        if scale not in self._tapes:
            self._tapes[scale] = simulated_noise([self._seed, round(scale * 1000)])
        return np.array(
            [self._tapes[scale].discrete_laplace(scale, (1,))[0] for _ in range(int(np.prod(size)))],
            dtype=np.int64,
        ).reshape(size)


def test_noise_is_drawn_at_the_scales_that_were_priced_and_spent_as_planned():
    roaming = PrivacyModel("1/2", 4, 3, "1", unit="roaming", leaves_per_step=2)
    for model, alpha in ((MODEL, 1), (roaming, 6)):
        mechanism, watched = on_tree(shares=["1/4", "3/4"], model=model), SilentNoise()
        assert mechanism.release(blocks(40), noise=watched).spends == mechanism.plan(40)
        step = float(model.epsilon) / 4
        levels = (step / 4, step * 3 / 4)
        scales = [scale for own in levels for scale in (1 / own / 0.8, 4 / own / 0.2, 8 / own / 0.2)]
        assert watched.scales == pytest.approx(sorted(alpha * scale for scale in scales), rel=1e-12)
        assert PeGaSus(model).threshold_units == 25 * alpha / step


@pytest.mark.parametrize("smoother", ["median", "average", "james_stein"])
@pytest.mark.parametrize("tree", [TREE, CHAIN], ids=["two levels", "three"])
def test_periods_in_a_row_are_one_long_period_and_single_steps_too(smoother, tree):
    shares = {2: ["2/7", "5/7"], 3: ["1/11", "3/11", "7/11"]}[tree.n_levels]
    values = 20 * blocks(40, len(tree.leaves))
    mechanism = on_tree(tree, shares, threshold=2000, smoother=smoother)
    (whole,) = released(mechanism, values, [], noise=ByScale(1))
    groups = groups_of([whole], 0)[0]
    assert any(groups[cut - 1] == groups[cut] < cut for cut in (2, 17, 30))  # a group crosses a cut
    assert 2 < len(np.unique(groups)) < 20
    for cuts in ([17], [1, 2, 30]):
        parts = released(mechanism, values, cuts, noise=ByScale(1))
        for level in range(tree.n_levels):
            assert np.array_equal(groups_of(parts, level), groups_of([whole], level))
        assert np.allclose(np.concatenate([p.values for p in parts], axis=1), whole.values)
    online = released(mechanism, values, range(1, values.shape[1]), noise=ByScale(1))
    assert np.allclose(np.concatenate([part.values for part in online], axis=1), whole.values)


def test_smoothing_pays_where_nothing_changes():
    """Mean squared error over 8,000 equal steps, against the noise alone."""
    values = np.full((4, 2000), 500)
    noise_alone = 2 * (4 / 0.8) ** 2
    for smoother in ("median", "average", "james_stein"):
        for threshold, least in ((None, 0.7), (10**6, 0.05)):
            mechanism = PeGaSus(MODEL, threshold=threshold, smoother=smoother)
            release = mechanism.release(values, noise=simulated_noise(5))
            assert np.mean((release.values - values) ** 2) < least * noise_alone


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
def test_each_step_is_smoothed_over_its_group_so_far(smoother):
    measured = Measured.from_public(NOISY, [], variances=[np.array([[8.0]] * 2)])
    estimate = PeGaSus(MODEL, smoother=smoother).fitted(replace(measured, choices={"groups": GROUPS}))
    for series in range(2):
        for step in range(12):
            group = NOISY[series, GROUPS[series][step] : step + 1].astype(float)
            assert estimate.values[series, step] == pytest.approx(DIRECT[smoother](group), abs=1e-9)
            left = NOISE_LEFT[smoother](np.array([len(group)]))[0]
            assert estimate.variances[series, step] == pytest.approx(8 * left)


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_the_noise_that_is_left_is_that_of_laplace_noise(smoother, size):
    """40,000 groups. A sample variance is off by 1.3 % (one standard deviation): 9 % is never met."""
    noise = np.random.default_rng(size).laplace(0, 1, (40_000, size))
    left = 2 * NOISE_LEFT[smoother](np.array([size]))[0]
    assert left == pytest.approx(np.var(DIRECT[smoother](noise)), rel=0.09)
    assert size == 1 or left != pytest.approx(2.0, rel=0.09)

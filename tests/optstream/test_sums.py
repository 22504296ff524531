"""Sums of points, parts of a day and blocks: their plan, draws as priced, and a price that is right."""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import date, time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.measurement import measure_points_and_sums
from optstream.measurement.blocks import BLOCKS, DriftingBlocks, measure_blocks
from optstream.measurement.ordered import draw_ordered
from optstream.measurement.sums import SAMPLES, feature_stage, measure_steps, query_weights
from optstream.noise import simulated_noise
from optstream.noise.order import VARIANCES
from optstream.privacy import GaussianSpend, OrderSpend, StepSpend
from optstream.stream import AggregationTree, Calendar, Feature, Measured, PrivatePeriod
from tests.optstream.mechanisms.silent_noise import SilentNoise, Undrawn

TREE = AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR", "S1": "S", "S2": "S"})
FEATURES = [Feature((range(0, 2), range(2, 6)), "parts"), Feature((range(0, 6),), "day")]
READINGS = st.lists(st.lists(st.integers(0, 50), min_size=6, max_size=6), min_size=3, max_size=3)
"""Of three leaves and six steps."""
PARTS = (range(0, 1), range(2, 4), range(4, 5), range(5, 8), range(8, 9))
IN_BLOCKS = OrderSpend(0, "blocks", 10, 9, PARTS, Fraction(50), 1, 2, 3, 9, 5, 1, 10)
STEPS = OrderSpend(
    0, SAMPLES, 10, 9, tuple(range(step, step + 1) for step in range(9)), Fraction(50), 1, 2, 1, 9, 9, 1, 10
)
APART = (range(0, 1), range(2, 3), range(3, 4), *PARTS[2:])
"""The same steps, one part of them as two."""
STEP = StepSpend(0, "blocks", 10, query_weights(PARTS, 9), Fraction(1, 2), 1)
NATION = AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR"})
DAY = Feature((range(0, 9),), "day")


def spends(scale=8, levels=(0, 1, 2)):
    queries = {
        "samples": [range(1, 2), range(4, 5)],
        "feature parts": FEATURES[0].parts,
        "feature day": FEATURES[1].parts,
    }
    return [
        StepSpend(level, stage, 0, query_weights(parts, 6), Fraction(scale), 1)
        for level in levels
        for stage, parts in queries.items()
    ]


def measure(units, noise, **changes):
    period = PrivatePeriod(np.asarray(units), resolution=Fraction(1), first_step=0)
    arguments = {
        "points": dict.fromkeys(range(3), (1, 4)),
        "features": FEATURES,
        "spends": spends(),
        "noise": noise,
    }
    return measure_points_and_sums(period, TREE, **(arguments | changes))


def answers(measured):
    return np.concatenate([measured.points, *measured.answers.values], axis=-1)


def test_points_and_sums_are_those_of_every_node():
    units = np.arange(18).reshape(3, 6)
    measured = measure(units, SilentNoise())
    nodes = TREE.add_up(units)
    assert np.array_equal(measured.points, nodes[:, [1, 4]])
    sums, *_ = measured.answers.values
    assert np.array_equal(sums, np.stack([nodes[:, :2].sum(1), nodes[:, 2:].sum(1)], axis=1))
    assert measured.simulated
    assert measured.spends == tuple(spends())


def test_every_answer_gets_noise_of_its_own_spends_scale():
    noise, drawn = SilentNoise(), Counter()
    priced = [replace(spend, scale=Fraction(number + 3)) for number, spend in enumerate(spends())]
    measure(np.zeros((3, 6), dtype=np.int64), noise, spends=priced)
    widths = {"samples": 2, "feature parts": 2, "feature day": 1}
    expected = {float(spend.scale): len(TREE.levels[spend.level]) * widths[spend.stage] for spend in priced}
    for scale, size in noise.asked:
        drawn[scale] += int(np.prod(size))
    assert drawn == expected


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_charge_bounds_the_l1_change_of_the_answers(data):
    """Lemma 3 by brute force, over changes of a set of steps in one leaf or two: the nation moves by both."""
    before, n_leaves = np.array(data.draw(READINGS)), data.draw(st.sampled_from([1, 2]))
    after = before.copy()
    changed = data.draw(st.sets(st.integers(0, 5), min_size=1))
    for step in changed:
        for leaf in data.draw(st.sets(st.integers(0, 2), min_size=n_leaves, max_size=n_leaves)):
            after[leaf, step] += data.draw(st.sampled_from([-5, 5]))
    priced = [replace(spend, alpha_units=5, leaves_changed=n_leaves) for spend in spends()]
    for level in range(3):
        own = [spend for spend in priced if spend.level == level]
        noiseless = [answers(measure(values, SilentNoise(), spends=own)) for values in (before, after)]
        moved = np.abs(noiseless[1] - noiseless[0]).sum() / Fraction(8)
        assert moved <= sum(spend.charges[step] for spend in own for step in changed)


def test_the_charge_is_attained():
    """All steps of one leaf up by alpha: the bound of Lemma 3 is met, so a smaller one would be wrong."""
    before, after = np.zeros((3, 6), dtype=np.int64), np.zeros((3, 6), dtype=np.int64)
    after[1] = 1
    difference = np.abs(answers(measure(after, SilentNoise())) - answers(measure(before, SilentNoise())))
    assert difference.sum() / Fraction(8) == sum(sum(spend.charges) for spend in spends())


def test_a_level_without_a_spend_keeps_its_values_to_itself():
    measured = measure(np.full((3, 6), 7777), simulated_noise(3), spends=spends(levels=(1, 2)))
    assert not measured.points[0].any()
    assert not measured.answers.values[0][0].any()
    assert np.isinf(measured.point_variances[0]).all()
    assert np.isfinite(measured.point_variances[1:]).all()


def test_a_spend_that_prices_another_query_draws_nothing():
    units = np.zeros((3, 6), dtype=np.int64)
    cheaper = [
        replace(spend, weights=tuple(Fraction(weight, 2) for weight in spend.weights)) for spend in spends()
    ]
    for wrong in (cheaper, [replace(spend, first_step=6) for spend in spends()]):
        with pytest.raises(ParameterError, match="does not price the query"):
            measure(units, Undrawn(), spends=wrong)
    with pytest.raises(ParameterError, match="3 leaves"):
        measure(units[:2], Undrawn())


def test_parts_that_overlap_have_no_price():
    for parts, message in (([range(0, 2), range(1, 3)], "disjoint"), ([range(3, 5)], "inside the period")):
        with pytest.raises(ParameterError, match=message):
            query_weights(parts, 4)


def period_of(units):
    return PrivatePeriod(np.asarray(units), resolution=Fraction(1), first_step=10)


def ordered_noise(spend, parts, noise):
    return draw_ordered(spend, lambda first, n_steps: parts, "here", None, noise)


def blocks_of(units, noise, spend=IN_BLOCKS, parts=PARTS):
    ordered = ordered_noise(IN_BLOCKS, PARTS, simulated_noise(1))
    return measure_blocks(period_of(units), parts, spend, noise, ordered)


def test_each_sum_gets_its_own_noise_of_the_stream():
    units = np.arange(18).reshape(2, 9)
    measured = blocks_of(units, simulated_noise(2))
    exact = np.stack([units[:, part.start : part.stop].sum(axis=1) for part in PARTS], axis=1)
    drawn = ordered_noise(IN_BLOCKS, PARTS, simulated_noise(1))
    assert np.array_equal(measured.answers.values[0] - exact, drawn.noise)
    assert measured.spends == (IN_BLOCKS,)
    assert measured.choices == {"blocks": [[part.start, part.stop] for part in PARTS], "like_group": 4}
    assert measured.answers.variances[0].tolist() == [[VARIANCES[4] * 2500.0]] * 2
    again = Measured.from_bytes(measured.to_bytes())
    assert again.to_bytes() == measured.to_bytes()
    assert again.spends == (IN_BLOCKS,)


@pytest.mark.parametrize(
    ("spend", "changes", "parts"),
    [
        (IN_BLOCKS, {"parts": PARTS[1:]}, PARTS),
        (IN_BLOCKS, {"parts": (range(0, 1), range(2, 3), *PARTS[2:])}, PARTS),
        (IN_BLOCKS, {"parts": APART}, PARTS),
        (GaussianSpend(0, "blocks", 10, 9, PARTS, Fraction(1, 2), 1), {"parts": APART}, PARTS),
        (IN_BLOCKS, {"first_step": 9}, PARTS),
        (IN_BLOCKS, {"scale": Fraction(1, 3)}, PARTS),
        (IN_BLOCKS, {"n_nodes": 1}, PARTS),
        (IN_BLOCKS, {"n_steps": 12}, PARTS),
        (IN_BLOCKS, {"parts": PARTS[:2]}, PARTS[:2]),
        (IN_BLOCKS, {}, PARTS[:2]),
        (STEP, {"weights": query_weights(PARTS[1:], 9)}, PARTS),
        (STEP, {"weights": (1,) * 9}, PARTS),
    ],
)
def test_a_spend_of_other_parts_and_noise_for_others_are_refused_before_the_draw(spend, changes, parts):
    match = "does not price"
    if changes.get("parts") == parts:
        match = "drawn before the measurement, for its parts"
    with pytest.raises(ParameterError, match=match):
        blocks_of(np.ones((2, 9), dtype=np.int64), Undrawn(), replace(spend, **changes), parts)


def test_laplace_noise_of_a_scale_that_is_no_float_is_refused_before_the_draw():
    """A float below it would be drawn, and lose more than is charged."""
    period, spend = period_of(np.ones((2, 9), np.int64)), replace(STEP, weights=(1,) * 9)
    assert Fraction(float(Fraction(7, 10))) < Fraction(7, 10)
    with pytest.raises(ParameterError, match="does not price"):
        measure_steps(period, range(9), replace(spend, scale=Fraction(7, 10)), Undrawn())
    measure_steps(period, range(9), spend, SilentNoise())


def of_tree(spends, noise):
    joint = [spend for spend in spends if isinstance(spend, OrderSpend)]
    ordered = {spend.level: ordered_noise(spend, STEPS.parts, noise) for spend in joint}
    return measure_points_and_sums(
        period_of(np.zeros((2, 9), dtype=np.int64)), NATION, points={0: tuple(range(9)), 1: (0, 3, 8)},
        features=[DAY], spends=spends, noise=noise, ordered=ordered,
    )  # fmt: skip


def test_joint_points_of_a_root_and_laplace_points_of_its_leaves_and_sums():
    weights = query_weights([range(step, step + 1) for step in (0, 3, 8)], 9)
    leaves = StepSpend(1, SAMPLES, 10, weights, Fraction(20), 1)
    sums = StepSpend(1, feature_stage(DAY), 10, (1,) * 9, Fraction(30), 1)
    measured = of_tree([replace(STEPS, n_nodes=1), leaves, sums], simulated_noise(1))
    assert measured.point_variances[0].tolist() == [VARIANCES[8] * 2500.0] * 9
    assert measured.point_variances[1:, [0, 3, 8]].tolist() == [[800.0] * 3] * 2
    assert measured.answers.variances[0].tolist() == [[np.inf], [1800.0], [1800.0]]


@pytest.mark.parametrize("spend", [replace(STEPS, level=1, parts=STEPS.parts[1:]), STEPS])
def test_joint_noise_of_other_points_is_refused(spend):
    with pytest.raises(ParameterError, match="does not price"):
        of_tree([spend], simulated_noise(1))


def covered(blocks, lengths, first_step):
    counts, at = np.zeros(sum(lengths), dtype=int), 0
    for length in lengths:
        for part in blocks.parts(first_step + at, length):
            counts[at + part.start : at + part.stop] += 1
        at += length
    return counts


def fullest(counts, window):
    return max(int(counts[start : start + window].sum()) for start in range(len(counts)))


def test_no_window_holds_more_than_its_blocks_and_some_window_holds_all_of_them():
    """Brute force over every window of every small plan, with awkward periods and origins."""
    plans = [
        DriftingBlocks(window, n_blocks, length, min(drift, window))
        for window, drift in itertools.product(range(1, 11), range(4))
        for n_blocks in range(1, window + 1)
        for length in range(1, window // n_blocks + 1)
    ]
    assert len(plans) > 350
    for blocks in plans:
        most = blocks.n_blocks * blocks.length
        for first_step in (-7, 0, 5):
            counts = covered(blocks, [3, 1, 7, 2, 11, 5, 1, 1, 13], first_step)
            assert counts.max(initial=0) <= 1
            assert fullest(counts, blocks.window_length) <= most
        if blocks.drift and blocks.cycle // blocks.n_blocks < blocks.length + blocks.drift:
            continue  # the gap between blocks is shorter than the drift: a little is given away
        counts = covered(blocks, [12 * blocks.cycle], 0)
        assert fullest(counts, blocks.window_length) == most


def test_each_part_is_a_sum_with_noise_of_the_spends_scale_and_no_part_survives_its_bytes():
    noise, period = SilentNoise(5), period_of(np.arange(12).reshape(2, 6))
    spend = StepSpend(0, BLOCKS, 10, (1, 0, 1, 1, 1, 0), Fraction(2), 1)
    measured = measure_blocks(period, (range(0, 1), range(2, 5)), spend, noise)
    assert measured.answers.values[0].tolist() == [[5, 14], [11, 32]]
    assert noise.asked == [(2.0, (2, 2))]
    assert np.all(measured.answers.variances[0] == 2 * 2.0**2)
    measured = measure_blocks(period, (), replace(spend, weights=(0,) * 6), simulated_noise(1))
    assert measured.answers.values[0].shape == (2, 0)
    again = Measured.from_bytes(measured.to_bytes())
    assert again.answers.values[0].shape == (2, 0)
    assert again.to_bytes() == measured.to_bytes()


def test_day_parts_are_those_of_the_paper():
    parts, day = Feature.day_parts(48)
    assert parts.parts == (range(0, 14), range(14, 24), range(24, 36), range(36, 48))
    assert day.parts == (range(0, 48),)
    for bad in (46, 50, 12, 0, 48.0):
        with pytest.raises(ParameterError, match="7, 12 and 18 h"):
            Feature.day_parts(bad)


@pytest.mark.parametrize("day", [date(2016, 3, 27), date(2016, 10, 30), date(2016, 2, 1)])
def test_clock_features_follow_the_wall_clock_on_every_day(day):
    times = Calendar(30, "Europe/Paris").local_times(day)
    feature = Feature.from_clock(["07:00", time(12), "18:00"], times)
    assert feature.n_steps == len(times)
    assert [times[part.start].time() for part in feature.parts] == [time(0), time(7), time(12), time(18)]


@pytest.mark.parametrize("times", [["12:00", "07:00"], ["07:00", "07:00"], ["7 h"], [7]])
def test_bad_clock_times_are_named(times):
    with pytest.raises(ParameterError, match="times of feature 'f'"):
        Feature.from_clock(times, Calendar(30, "UTC").local_times(date(2016, 1, 1)), "f")


@pytest.mark.parametrize(
    "parts", [(), (range(0, 2), range(1, 3)), (range(0, 2), range(3, 4)), (range(1, 2),)]
)
def test_parts_that_overlap_or_leave_a_gap_are_refused(parts):
    with pytest.raises(ParameterError, match="part"):
        Feature(parts)


def test_sums_of_the_papers_example_3():
    feature = Feature((range(0, 4), range(4, 9), range(9, 12)), "morning, afternoon, evening")
    connections = np.array([[10, 15, 20, 23, 41, 72, 55, 50, 88, 72, 40, 18]])
    assert feature.sums(connections).tolist() == [[68, 306, 130]]

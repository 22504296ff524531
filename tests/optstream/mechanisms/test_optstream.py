"""OptStream: its points and what they cost, releases that add up, and how far it is off between points."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.history.blocks import Blocks
from optstream.history.prior import TemporalPrior
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sampling import (
    Choice,
    _scores,
    choose_points,
    l1_score_change,
    sparse_vector_scales,
)
from optstream.measurement.sums import SAMPLES
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, PeriodSpend, PrivacyModel, StepSpend, worst_window
from optstream.privacy.accountant import repriced
from optstream.privacy.rules import WindowBudget
from optstream.stream import AggregationTree, Feature
from optstream.stream.private_period import LARGEST_UNITS, LONGEST_IN_INT64
from tests.optstream.mechanisms.planned_days import daily_noise, in_turn
from tests.optstream.mechanisms.silent_noise import SilentNoise

SCALES = sparse_vector_scales(10, 4, Fraction(1))
MODEL = PrivacyModel("1", 48, 1)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
ALMOST = 1 - Fraction(1, 2**40)
DEEP = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "a": "A", "b": "A", "c": "B"})
PARTS = Feature((range(0, 14), range(14, 24), range(24, 36), range(36, 48)), "parts")
SIZES = np.array([4000.0, 1500.0, 600.0])


@pytest.mark.parametrize(("window", "count"), [(48, 10), (48, 2), (48, 48), (7, 3), (2, 2), (336, 20)])
def test_every_window_holds_exactly_k_points_over_days_of_46_48_and_50_steps(window, count):
    sampled, at = set(), 0
    for length in [48, 46, 48, 50, 48, 48, 50, 46] * 3:
        sampled |= {at + step for step in EquallySpaced(count).positions(length, at, window)}
        at += length
    for start in range(at - window + 1):
        assert len(sampled & set(range(start, start + window))) == count
    assert EquallySpaced(10).positions(48, 0, 48) == (0, 5, 10, 16, 21, 26, 31, 37, 42, 47)


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
    assert choose_points(corner, Choice(0, 4, 5, rule(), SCALES), SilentNoise())[:2] == (0, 5)


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
    assert not rule(10, 48, 48, taken, 48).allowed().any()
    assert rule(10, 48, 48, taken[:10], 48).allowed().nonzero()[0].tolist() == list(range(38, 48))


@pytest.mark.parametrize("allocation", ["even", "optimal"])
@pytest.mark.parametrize("n_positive", [1, 9, 50])
def test_the_sparse_vector_costs_at_most_its_epsilon_and_no_less_than_rounding(allocation, n_positive):
    scales = sparse_vector_scales(740_000, n_positive, Fraction(1, 6), allocation)
    assert Fraction(1, 6) * (1 - Fraction(1, 2**50)) < scales.loss(Fraction(740_000)) <= Fraction(1, 6)
    if allocation == "even":
        assert float(scales.threshold) == pytest.approx(2 * 740_000 * 6)
        assert float(scales.query) == pytest.approx(4 * n_positive * 740_000 * 6)


def build_l1(n_steps=48, shortest=None, model=None, **changes):
    arguments = {
        "sampling": L1Sampling(10, "50"),
        "features": [Feature((range(n_steps),), "day")],
        "level_shares": ["1/3", "2/3"],
        "shortest_period": shortest,
    }
    return OptStream(model or PrivacyModel("1", 48, 1), TREE, **(arguments | changes))


@pytest.mark.parametrize("sampling", [EquallySpaced(48), EquallySpaced(10), L1Sampling(10, "50")])
@pytest.mark.parametrize("post_processing", [True, False])
def test_ablations_share_the_budget_equally_among_active_stages(sampling, post_processing):
    mechanism = build_l1(sampling=sampling, post_processing=post_processing)
    n_stages = 1 + isinstance(sampling, L1Sampling) + post_processing
    assert mechanism.stage_shares == (Fraction(1, n_stages),) * n_stages
    assert ALMOST < mechanism.epsilon <= 1
    release = mechanism.release(np.full((2, 48), 700), noise=simulated_noise(3))
    assert np.allclose(release.values[0], release.values[1:].sum(axis=0)) == post_processing


def test_without_post_processing_a_level_without_a_share_has_no_values_and_no_errors():
    plan = {"sampling": EquallySpaced(10), "features": [], "level_shares": ["0", "1"]}
    mechanism = OptStream(MODEL, TREE, post_processing=False, **plan)
    release = mechanism.release(np.full((2, 48), 700), noise=simulated_noise(3))
    assert not release.values[0].any()
    assert np.isnan(release.noise_standard_errors[0]).all()
    assert (release.noise_standard_errors[1:] > 0).all()


@pytest.mark.parametrize(
    ("window", "samples", "length"),
    [(4, 2, 4), (5, 4, 5), (48, 24, 4), (48, 46, 48), (48, 10, 1), (48, 10, 2), (48, 48, 48)],
)
def test_data_decide_nothing_that_was_not_charged(window, samples, length):
    """Segments of one and two steps: the sampler is charged, or all data give the same points."""
    model, sampling = PrivacyModel("1", window, 1, "1"), L1Sampling(samples, "1")
    mechanism = build_l1(length, length, model, sampling=sampling, features=[])
    charged = any(isinstance(spend, PeriodSpend) for spend in mechanism.plan(length))
    generator = np.random.default_rng(1)
    chosen = {
        mechanism.measure(generator.integers(0, 100, (2, length)), noise=SilentNoise()).positions
        for _ in range(40)
    }
    assert charged or len(chosen) == 1
    asked = mechanism.sampling.points_of_period(length, window) > 1 and length - samples >= 2
    assert charged or not asked


@pytest.mark.parametrize("features", [[], [Feature((range(6),), "day")]], ids=["points", "sums, too"])
def test_a_late_day_without_headroom_for_a_single_point_is_released_all_the_same(features):
    """The days around it took all points of its windows: its leaves share what the nation is, evenly."""
    tree = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
    plan = {"sampling": L1Sampling(3, "1"), "features": features, "level_shares": ["1/2", "1/2"]}
    mechanism = OptStream(PrivacyModel("1", 6, 1), tree, **plan)
    state = {"points": {"0": [], "1": [-3, -2, -1, 6, 7, 8]}}
    release = mechanism.release(np.full((2, 6), 1000.0), noise=simulated_noise(3), state=state)
    assert not any(
        weight
        for spend in release.spends
        if isinstance(spend, StepSpend) and (spend.level, spend.stage) == (1, "samples")
        for weight in spend.weights
    )
    assert np.allclose(release.values[1], release.values[2], rtol=0.3 if features else 1e-5)
    assert np.allclose(release.values[0], release.values[1:].sum(axis=0))
    assert release.values[0].mean() == pytest.approx(2000, rel=0.2)


@pytest.mark.parametrize(("epsilon", "changes"), [("1/2850", {}), ("1/4300", {"features": []})])
def test_a_longer_period_whose_noise_outgrows_the_integers_is_refused_before_it_is_planned(epsilon, changes):
    """At this epsilon a day of 46 steps fits, and one of 50 does not: its segments are longer."""
    model = PrivacyModel(epsilon, 48, 10)
    assert build_l1(46, 46, model, **changes).plan(46)
    with pytest.raises(ParameterError, match="noise of a period of 50 steps would outgrow the integers"):
        build_l1(50, 46, model, **changes).plan(50)


def joint(model=MODEL):
    return OptStream(
        model, TREE, sampling=EquallySpaced(10), features=[Feature((range(14), range(14, 48)), "parts")],
        level_shares=["1/2", "1/2"], period_lengths=(46, 48, 50), noise="joint", declared_leaves=1,
    )  # fmt: skip


def test_points_have_joint_noise_and_sums_have_not():
    mechanism = joint()
    assert [(spend.level, spend.stage, type(spend)) for spend in mechanism.plan(48)] == [
        (0, SAMPLES, OrderSpend), (0, "feature parts", StepSpend),
        (1, SAMPLES, OrderSpend), (1, "feature parts", StepSpend),
    ]  # fmt: skip
    assert [spend.n_nodes for spend in mechanism.plan(48)[::2]] == [1, 2]


def test_after_an_amendment_the_plan_before_leaves_no_headroom_and_nothing_goes_on():
    """To half of alpha and six tenths of epsilon: what days before cost is never divided."""
    wide, narrow = PrivacyModel("1", 48, 1), PrivacyModel("0.6", 48, "1/2")
    before, after = joint(wide), joint(narrow)
    measured = before.measure(np.zeros((2, 48)), noise=simulated_noise(1))
    spends = [repriced(spend, wide, narrow) for spend in measured.spends]
    plan = after.plan(48, 48, after.recall(spends, measured.state))
    points = [spend for spend in plan if isinstance(spend, OrderSpend)]
    assert all(spend.order == 48 and not spend.earlier for spend in points)
    full = after.plan(48, 48)
    assert len(points[0].parts) < len(full[0].parts), "what days before leave no headroom for"


def test_without_the_window_rule_a_straddling_window_costs_1_63():
    """By hand: the sampler whole in both days, 9 points at the end of one and 10 at the start of the next."""
    third = Fraction(1, 3)
    points = [[0, *range(39, 48)], range(10)]
    spends = []
    for day, chosen in enumerate(points):
        weights = tuple(int(step in chosen) for step in range(48))
        spends.append(PeriodSpend(0, "sampling", 48 * day, (Fraction(0), *[third] * 48)))
        spends.append(StepSpend(0, "samples", 48 * day, weights, Fraction(30), 1))
        spends.append(StepSpend(0, "feature day", 48 * day, (1,) * 48, Fraction(144), 1))
    assert float(worst_window(spends, 48).epsilon) == pytest.approx(1.6333, abs=1e-4)


def simulated_days(n_days, seed):
    """Days of the prior, at three fifths of its variances, with what the leaves share and their own."""
    draw, at = np.random.default_rng(seed), Blocks.at(np.arange(48))
    shared, own = (
        np.linalg.cholesky(0.6 * one + 1e-10 * np.eye(48))
        for one in TemporalPrior.broad(48).covariances(at, at)
    )
    for _ in range(n_days):
        together, apart = shared @ draw.normal(size=48), draw.normal(size=(3, 48)) @ own.T
        yield SIZES[:, None] * (1.0 + together + apart)


@pytest.mark.parametrize("features", [(), (PARTS,)], ids=["points", "points and sums"])
@pytest.mark.parametrize("epsilon", ["0.3", "1000"])
def test_errors_are_as_large_as_is_said(features, epsilon):
    """Over 60 days, at each level; a ratio below 0.6 or above 1.6 is 7 deviations of its logarithm off."""
    plan = {"sampling": EquallySpaced(10), "features": features, "level_shares": ["1/3"] * 3}
    one = OptStream(PrivacyModel(epsilon, 48, 1), DEEP, lower_bound=None, **plan)
    days = list(simulated_days(60, 1))
    releases = in_turn(one.release, days, daily_noise(0, 48))
    missed = np.square([release.values for release in releases] - DEEP.add_up(np.array(days)))
    expected = np.square([release.standard_errors for release in releases])
    for level in DEEP.levels:
        own = slice(level.start, level.stop)
        assert 0.6 < missed[:, own].mean() / expected[:, own].mean() < 1.6
    if epsilon == "1000":
        noise = np.square([release.noise_standard_errors for release in releases])
        assert missed.mean() > 10.0 * noise.mean(), "control: noise alone says next to nothing"

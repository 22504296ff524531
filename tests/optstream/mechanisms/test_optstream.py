"""The mechanism: its plan costs what it says, its releases add up, its parameters are checked."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sums import SAMPLES
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, PeriodSpend, PrivacyModel, StepSpend, worst_window
from optstream.privacy.accountant import repriced
from optstream.stream import AggregationTree, Feature
from tests.optstream.mechanisms.silent_noise import SilentNoise

MODEL = PrivacyModel("1", 48, 1)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})


ALMOST = 1 - Fraction(1, 2**40)


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
    consistent = np.allclose(release.values[0], release.values[1:].sum(axis=0))
    assert consistent == post_processing


def test_without_post_processing_a_level_without_a_share_has_no_values_and_no_errors():
    plan = {"sampling": EquallySpaced(10), "features": [], "level_shares": ["0", "1"]}
    mechanism = OptStream(MODEL, TREE, post_processing=False, **plan)
    release = mechanism.release(np.full((2, 48), 700), noise=simulated_noise(3))
    assert not release.values[0].any()
    assert np.isnan(release.noise_standard_errors[0]).all()
    assert (release.noise_standard_errors[1:] > 0).all()


LENGTHS = [(4, 2, 4), (5, 4, 5), (48, 24, 4), (48, 46, 48), (48, 10, 1), (48, 10, 2), (48, 48, 48)]


@pytest.mark.parametrize(("window", "samples", "length"), LENGTHS)
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


HALF_HOURS = (46, 48, 50)


def joint(model=MODEL):
    return OptStream(
        model, TREE, sampling=EquallySpaced(10), features=[Feature((range(14), range(14, 48)), "parts")],
        level_shares=["1/2", "1/2"], period_lengths=HALF_HOURS, noise="joint", declared_leaves=1,
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

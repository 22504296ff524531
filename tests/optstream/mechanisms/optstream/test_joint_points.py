"""OptStream with joint noise on its points: no window above epsilon, days of another plan, bit by bit."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sums import SAMPLES
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import JointSpend, PrivacyModel, StepSpend, worst_window
from optstream.privacy.amendment import repriced
from optstream.stream import AggregationTree, Feature

MODEL = PrivacyModel("1", 48, 1)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
HALF_HOURS = (46, 48, 50)


def build(model=MODEL, n_steps=48, **changes):
    parts = Feature((range(14), range(14, n_steps)), "parts")
    arguments = {
        "sampling": EquallySpaced(10),
        "features": [parts],
        "level_shares": ["1/2", "1/2"],
        "period_lengths": HALF_HOURS,
    }
    return OptStream(model, TREE, **(arguments | changes))


def joint(model=MODEL, n_steps=48, **changes):
    return build(model, n_steps, **({"noise": "joint", "declared_leaves": 1} | changes))


def plans(lengths, first_step=0, **changes):
    """Days in a row; a negative length is a gap."""
    found, at = [], first_step
    for length in lengths:
        if length > 0:
            found += joint(n_steps=length, **changes).plan(length, at)
        at += abs(length)
    return found


def test_no_window_costs_more_than_the_plan_says_over_days_in_any_order():
    random, dearest = Random(3), 0
    for _ in range(12):
        days = [random.choice([46, 48, 48, 50, -5, -48]) for _ in range(8)]
        cost = worst_window(plans(days, random.randrange(48)) or plans([48]), 48).epsilon
        dearest = max(dearest, cost)
    assert dearest <= joint().epsilon <= 1
    assert dearest > 1 - Fraction(1, 10**9), "and some order costs all of it"


@pytest.mark.parametrize("charges", [-1, 0])
def test_a_plan_that_pays_for_one_group_too_few_costs_more_than_it_says(charges):
    plan = joint().levels[0]
    twin = replace(plan, groups=replace(plan.groups, worst=plan.groups.worst + charges), features=())
    spends, at = [], 0
    for length in (48, 48, 46, 48, 50, 48):
        points = plan.sampling.positions(length, at, 48)
        spends += twin.spends(length, at, points, (), ())
        at += length
    assert (worst_window(spends, 48).epsilon > plan.epsilon_samples) == (charges < 0)


def test_points_have_joint_noise_and_sums_have_not():
    mechanism = joint()
    assert mechanism.reads_spends
    assert not mechanism.adaptive
    assert [(spend.level, spend.stage, type(spend)) for spend in mechanism.plan(48)] == [
        (0, SAMPLES, JointSpend), (0, "feature parts", StepSpend),
        (1, SAMPLES, JointSpend), (1, "feature parts", StepSpend),
    ]  # fmt: skip
    assert [spend.n_nodes for spend in mechanism.plan(48)[::2]] == [1, 2]
    # ten points in threes meet four groups of a window
    groups = mechanism.levels[0].groups
    assert (groups.least, groups.worst) == (3, 4)
    assert groups.error < 10
    release = mechanism.release(np.full((2, 48), 1e6), noise=simulated_noise(4))
    assert release.spends == mechanism.plan(48)
    assert np.allclose(release.values[0], release.values[1:].sum(axis=0))
    assert release.noise_standard_errors.min() > 0


def test_beside_days_of_another_plan_no_window_loses_more_than_epsilon():
    before, after = build(noise="laplace"), joint()
    spends = list(before.plan(48, 0))
    full = after.plan(48, 48)
    assert worst_window([*spends, *full], 48).epsilon > 1
    left_out = []
    for day in range(1, 4):
        state = after.recall(spends)
        plan = after.plan(48, 48 * day, state)
        measured = after.measure(
            np.full((2, 48), 1e5), noise=simulated_noise(day), first_step=48 * day, state=state
        )
        assert measured.spends == plan
        assert measured.state is None
        release = after.estimate(measured)
        assert np.isfinite(release.values).all()
        assert np.allclose(release.values[0], release.values[1:].sum(axis=0))
        spends += plan
        left_out.append(len(full[0].groups) - len(plan[0].groups))
        assert worst_window(spends, 48).epsilon <= 1
    assert left_out[0] > 0
    assert left_out[2] == 0


def test_the_plans_own_days_need_no_state():
    mechanism = joint()
    own = plans([48, 46, -48, 50])
    assert mechanism.recall([]) is None
    assert mechanism.recall(own) is None
    samples = next(spend for spend in own if isinstance(spend, JointSpend))
    assert mechanism.recall([replace(samples, groups=samples.groups[1:])]) is None
    for other in (
        replace(samples, scale=samples.scale / 2),
        replace(samples, first_step=1),
        replace(samples, groups=tuple((part,) for part in samples.parts)),
        *build(noise="laplace").plan(48)[:1],
        *build(noise="laplace", stage_shares=["1/4", "3/4"]).plan(48)[1:2],
    ):
        assert mechanism.recall([other]) is not None
    with pytest.raises(ParameterError, match="state of OptStream"):
        mechanism.plan(48, 0, {"mechanism": "Sample"})


def test_without_the_operators_word_the_root_alone_has_it_and_laplace_noise_is_as_before():
    default, laplace = build(noise=None), build()
    assert [type(spend) for spend in default.plan(48)[::2]] == [JointSpend, StepSpend]
    undeclared = build(period_lengths=None)
    values = np.arange(96.0).reshape(2, 48)
    one, other = (own.measure(values, noise=simulated_noise(3)).to_bytes() for own in (laplace, undeclared))
    assert one == other
    assert not laplace.reads_spends


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"declared_leaves": None}, "on a level of 2 nodes is for customers whose"),
        ({"sampling": L1Sampling(10, "1"), "features": []}, "is for equally spaced points"),
        (
            {"sampling": EquallySpaced(2), "period_lengths": (20, 48), "features": []},
            "two measurements or more",
        ),
        ({"noise": "loud"}, 'noise must be "joint" or "laplace"'),
        ({"period_lengths": (0,)}, "each of period_lengths"),
    ],
)
def test_joint_noise_that_cannot_be_had_is_refused_when_planning(given, message):
    with pytest.raises(ParameterError, match=message):
        joint(**given)


def test_a_period_with_fewer_points_than_a_group_is_refused():
    with pytest.raises(ParameterError, match="cannot be cut into groups of 3"):
        joint(features=[]).plan(6, 7)


def test_a_plan_of_the_same_scale_for_larger_changes_is_not_its_own():
    """An amendment to half of alpha and six tenths of epsilon: what days before cost is never divided."""
    wide, narrow = PrivacyModel("1", 48, 1), PrivacyModel("0.6", 48, "1/2")
    before, after = joint(wide), joint(narrow)
    spends = [repriced(spend, wide, narrow) for spend in before.plan(48)]
    assert all(old.scale >= new.scale for old, new in zip(spends, after.plan(48, 48), strict=True))
    alike = [spend for spend in spends if isinstance(spend, JointSpend)]
    for spend in (alike[0], next(spend for spend in spends if isinstance(spend, StepSpend))):
        assert after.recall([spend]) is not None
    first, full = (plan[0] for plan in (after.plan(48, 48, after.recall(alike)), after.plan(48, 48)))
    assert len(first.groups) < len(full.groups), "what days before leave no headroom for"

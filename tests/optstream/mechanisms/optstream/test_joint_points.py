"""OptStream with joint noise on its points: no window above epsilon, days of another plan, bit by bit."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced
from optstream.measurement.sums import SAMPLES
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import JointSpend, PrivacyModel, StepSpend
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

"""Laplace with independent and with joint noise: no window above epsilon, who may have which, bit by bit."""

import hashlib
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from optstream.mechanisms import Hierarchical, Laplace, Uniform
from optstream.mechanisms.joint_groups import JointGroups
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import AggregationTree
from tests.optstream.mechanisms.planned_days import plans

MODEL = PrivacyModel("1", 48, 1)
HALF_HOURS = (46, 48, 50)


def joint(model=MODEL, lengths=HALF_HOURS, n_nodes=1, **more):
    return Laplace(model, "joint", lengths, n_nodes, **more)


# what a window costs


@pytest.mark.parametrize("window_length", [1, 2, 3, 5, 8, 13])
def test_no_window_costs_more_than_the_plan_says_over_days_in_any_order(window_length):
    lengths, random = (3, 4, 5), Random(7)
    mechanism = joint(PrivacyModel("1", window_length, 1), lengths)
    assert mechanism.epsilon <= 1
    dearest = 0
    for _ in range(20):
        days = [random.choice([*lengths, -1, -3]) for _ in range(12)]
        spends = plans(mechanism, days, random.randrange(100))
        if spends:
            dearest = max(dearest, worst_window(spends, window_length).epsilon)
    assert dearest == mechanism.epsilon, "and some order costs all of it"


class WithRest(JointGroups):
    def of(self, steps):
        parts = [range(step, step + 1) for step in steps]
        return tuple(tuple(parts[at : at + self.least]) for at in range(0, len(parts), self.least))


@pytest.mark.parametrize("broken", ["a group for the rest", "one group too few is charged"])
def test_broken_twins_cost_more_than_they_say(broken):
    """A day of 46 in eights with a rest of six; and a window that is said to meet six groups of 48 / 8."""

    class Twin(Laplace):
        @property
        def joint_groups(self):
            if broken == "one group too few is charged":
                return replace(super().joint_groups, worst=super().joint_groups.worst - 1)
            return WithRest(8, 7, 0, 0)

    twin = Twin(MODEL, "joint", HALF_HOURS, 1)
    assert twin.epsilon <= 1
    assert worst_window(plans(twin, [48, 46, 48, 46, 46, 48]), 48).epsilon > 1
    assert worst_window(plans(joint(), [48, 46, 48, 46, 46, 48]), 48).epsilon <= 1


# what is drawn


def test_independent_noise_is_drawn_as_before_joint_noise_came():
    """The same bytes from the same seed, whatever would say for whom noise might be joint."""
    values = np.arange(96.0).reshape(2, 48)
    plain = Laplace(MODEL).measure(values, noise=simulated_noise(3), first_step=48)
    by_hand = np.rint(values * 1000) + simulated_noise(3).discrete_laplace(48_000.0, (2, 48))
    assert np.array_equal(plain.points, by_hand)
    for mechanism in (
        Laplace(MODEL, "laplace", HALF_HOURS, 2, 1),
        Laplace(MODEL, None, HALF_HOURS, 2, None),
        Laplace(MODEL, None, None, 2, 1),
        Uniform(MODEL, "laplace", HALF_HOURS, 2, 1),
    ):
        again = mechanism.measure(values, noise=simulated_noise(3), first_step=48)
        assert again.to_bytes() == plain.to_bytes()
    shared = joint(n_nodes=2, declared_leaves=1).measure(values, noise=simulated_noise(3), first_step=48)
    assert shared.spends != plain.spends


def test_a_tree_that_may_have_no_joint_noise_draws_the_bytes_that_the_code_before_it_drew():
    roaming = PrivacyModel("1", 48, 1, unit="roaming", leaves_per_step=2)
    forest = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "B1": "B", "B2": "B"})
    values = np.arange(144.0).reshape(3, 48)
    digests = []
    for model, shares in ((MODEL, ["0", "1/2", "1/2"]), (roaming, ["0", "1/2", "1/2"])):
        mechanism = Hierarchical(Laplace(model, period_lengths=HALF_HOURS), forest, shares)
        release = mechanism.release(values, noise=simulated_noise(11), first_step=48)
        assert not mechanism.reads_spends
        digests.append(hashlib.sha256(release.measured.to_bytes()).hexdigest())
    assert digests == [BEFORE_CUSTOMER, BEFORE_ROAMING]


BEFORE_CUSTOMER = "b13eca3482183705f85b56dfff6b710bb4409abde0bf23592495b93bf303e75c"
BEFORE_ROAMING = "10fd387bf125884bb5045570561b7e74f43bf0f05389b62392593174faa3ec38"

"""Lemma 12 against brute force: every neighbour under the new guarantee is reached by old ones in a row."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from optstream.errors import ParameterError
from optstream.privacy import CappedSpend, JointSpend, PeriodSpend, PrivacyModel, StepSpend, worst_window
from optstream.privacy.amendment import repriced

STEPS = StepSpend(0, "samples", 0, (Fraction(1, 2), Fraction(0), Fraction(1)), Fraction(4), 2)
JOINT = PeriodSpend(0, "sampling", 0, (Fraction(0), Fraction(1, 4), Fraction(1, 3), Fraction(1, 3)))
GROUPS = JointSpend(0, "blocks", 0, 3, ((range(0, 1), range(1, 3)),), Fraction(4), 2, 2)
POINTS = CappedSpend(0, "points", 0, 6, 2, (), Fraction(4), 2)


def model(alpha="2", window_length=3, unit="customer", leaves_per_step=1):
    return PrivacyModel("1", window_length, alpha, resolution="1", unit=unit, leaves_per_step=leaves_per_step)


@pytest.mark.parametrize("spend", [STEPS, JOINT, POINTS, GROUPS])
def test_nothing_gets_cheaper_and_the_same_guarantee_costs_the_same(spend):
    assert repriced(spend, model(), model()) == spend
    assert repriced(spend, model("2"), model("1/7")) == spend
    assert repriced(spend, model(window_length=3), model(window_length=1)) == spend


@pytest.mark.parametrize(("alpha", "times"), [("2", 1), ("2.001", 2), ("4", 2), ("5", 3), ("2000", 1000)])
@pytest.mark.parametrize("spend", [STEPS, JOINT, POINTS, GROUPS])
def test_a_larger_alpha_costs_as_many_times_as_it_has_parts(spend, alpha, times):
    dearer = worst_window([repriced(spend, model(), model(alpha))], 3).epsilon
    assert dearer == times * worst_window([spend], 3).epsilon


def test_more_leaves_cost_as_many_times_as_there_are_groups_of_them():
    two, five = (model(unit="roaming", leaves_per_step=leaves) for leaves in (2, 5))
    spend = StepSpend(0, "samples", 0, STEPS.weights, STEPS.scale, 2, leaves_changed=2)
    assert worst_window([repriced(spend, two, five)], 3).epsilon == 3 * worst_window([spend], 3).epsilon


def loss_of_sums(moved, scale):
    """The exact loss of one Laplace sum of each feature when the readings move by `moved`."""
    return abs(sum(moved)) / scale


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "leaves", "window_length"),
    [(2, 1, 2), (3, 1, 2), (1, 2, 4), pytest.param(3, 2, 3, marks=pytest.mark.nightly)],
)
def test_no_neighbour_of_the_new_guarantee_loses_more_than_the_new_price(alpha, leaves, window_length):
    """A sum over each leaf's four steps with noise, planned for changes of 1 in one leaf in windows of two:
    all changes of the new guarantee, by enumeration, against the price.
    """
    scale = Fraction(3)
    before = model("1", 2)
    unit = "roaming" if leaves > 1 else "customer"
    now = model(str(alpha), window_length, unit, leaves)
    # one query of weight 1 a step; as a joint spend: its loss when n of its steps change
    step = StepSpend(0, "sum", 0, (1,) * 4, scale, 1)
    joint = PeriodSpend(0, "sum", 0, tuple(Fraction(n) / scale for n in range(5)))
    for spend in (step, joint):
        price = worst_window([repriced(spend, before, now)], window_length).epsilon
        worst = Fraction(0)
        for start in range(4):
            inside = range(start, min(4, start + window_length))
            # a change at each step in each of two leaves; at most `leaves` of them at a step
            for moves in product(range(-alpha, alpha + 1), repeat=2 * len(inside)):
                rows = [moves[place :: len(inside)] for place in range(len(inside))]
                if any(sum(entry != 0 for entry in row) > leaves for row in rows):
                    continue
                worst = max(worst, sum(loss_of_sums(leaf, scale) for leaf in zip(*rows, strict=True)))
        assert worst <= price
        assert worst > worst_window([spend], 2).epsilon, "the old price would not have been enough"


def test_points_under_a_cap_count_once_for_each_old_window_in_a_new_one():
    """Two points in any three steps, and windows of seven."""
    wide = repriced(POINTS, model(window_length=3), model(window_length=7))
    most = max(
        sum(chosen)
        for chosen in product((0, 1), repeat=6)
        if all(sum(chosen[start : start + 3]) <= 2 for start in range(4))
    )
    assert worst_window([wide], 7).epsilon >= most * POINTS.unit_charge
    # the control: the cap alone is not enough
    assert worst_window([POINTS], 7).epsilon < most * POINTS.unit_charge
    beside = CappedSpend(0, "points", 6, 6, 2, (1, 2), Fraction(4), 2)
    assert worst_window([beside], 7).epsilon == 2 * POINTS.unit_charge
    assert worst_window([repriced(beside, model(window_length=3), model(window_length=7))], 7).epsilon == (
        6 * POINTS.unit_charge
    )


def test_one_who_may_now_change_leaves_pays_a_joint_measurement_step_by_step():
    roaming = model(unit="roaming")
    assert repriced(JOINT, model(), roaming).charges == tuple(Fraction(n, 4) for n in range(4))
    assert repriced(JOINT, roaming, roaming) == JOINT
    assert repriced(STEPS, model(), roaming) == STEPS


def test_one_who_may_now_change_leaves_pays_joint_noise_step_by_step():
    """A part counts with its longest run of steps while nobody changes leaf, with each step once one may."""
    roaming = model(unit="roaming")
    assert worst_window([GROUPS], 3).epsilon == Fraction(2 * 2, 4)
    assert repriced(GROUPS, model(), roaming) == StepSpend(0, "blocks", 0, (1, 1, 1), Fraction(4), 2)
    assert repriced(GROUPS, roaming, roaming) == repriced(GROUPS, roaming, model()) == GROUPS
    of_one_node = replace(GROUPS, n_nodes=1)
    assert repriced(of_one_node, model(), roaming) == of_one_node
    three = model(unit="roaming", leaves_per_step=3)
    assert worst_window([repriced(GROUPS, roaming, three)], 3) == worst_window(
        [replace(GROUPS, alpha_units=6)], 3
    )


@pytest.mark.parametrize(
    ("alpha", "leaves", "window_length"), [(2, 1, 2), (3, 1, 2), (1, 1, 4), (1, 0, 4), (1, 2, 4), (2, 2, 2)]
)
def test_no_neighbour_of_the_new_guarantee_loses_more_of_joint_noise(alpha, leaves, window_length):
    """Lemma 16a: two groups in each of two leaves, planned for changes of 1 in one leaf of a period and
    windows of two; all changes of the new guarantee. 0 leaves: one at a step, any in a period.
    """
    groups = ((range(0, 1), range(1, 2)), (range(2, 4),))
    spend = JointSpend(0, "blocks", 0, 4, groups, Fraction(3), 1, 2)
    unit = "customer" if leaves == 1 else "roaming"
    now = model(str(alpha), window_length, unit, max(leaves, 1))
    price = worst_window([repriced(spend, model("1", 2), now)], window_length).epsilon
    worst = 0
    for start in range(4):
        inside = range(start, min(4, start + window_length))
        for moves in product(range(-alpha, alpha + 1), repeat=2 * len(inside)):
            rows = [moves[place :: len(inside)] for place in range(len(inside))]
            if any(sum(entry != 0 for entry in row) > max(leaves, 1) for row in rows):
                continue
            changed = [dict(zip(inside, leaf, strict=True)) for leaf in zip(*rows, strict=True)]
            if leaves == 1 and all(any(leaf.values()) for leaf in changed):
                continue
            worst = max(
                worst,
                sum(
                    max(abs(sum(leaf.get(step, 0) for step in part)) for part in group)
                    for leaf in changed
                    for group in groups
                ),
            )
    assert Fraction(worst, 3) <= price
    # of longer windows alone the old price is enough: it holds for any changes of a group
    enough = worst_window([spend], window_length).epsilon
    assert (Fraction(worst, 3) > enough) == ((alpha, leaves) != (1, 1))


def test_an_unknown_spend_is_refused():
    with pytest.raises(ParameterError, match="cannot be repriced"):
        repriced(object(), model(), model("3"))

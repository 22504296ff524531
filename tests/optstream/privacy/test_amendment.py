"""Lemma 12 and Gaussian noise against brute force: all neighbours of a guarantee, all changes of one."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.privacy import (
    CappedSpend,
    GaussianSpend,
    JointSpend,
    PeriodSpend,
    PrivacyModel,
    StepSpend,
    charged_to_windows,
    worst_of_repeated,
    worst_window,
)
from optstream.privacy.accountant import repriced
from optstream.privacy.spends import check_currency
from optstream.stream import AggregationTree

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


CUT = ((range(0, 1), range(1, 2)), (range(2, 4),))
PLANNED = {
    "a sum": (StepSpend(0, "sum", 0, (1,) * 4, Fraction(3), 1), lambda leaf: abs(sum(leaf))),
    "a joint sum": (
        PeriodSpend(0, "sum", 0, tuple(Fraction(n, 3) for n in range(5))),
        lambda leaf: abs(sum(leaf)),
    ),
    "joint noise": (
        JointSpend(0, "blocks", 0, 4, CUT, Fraction(3), 1, 2),
        lambda leaf: sum(max(abs(sum(leaf[p.start : p.stop])) for p in group) for group in CUT),
    ),
}
"""Of two leaves' four steps, for changes of 1 in one leaf and windows of two; what a leaf's moves change."""
SUMS = [(2, 1, 2), (3, 1, 2), (1, 2, 4), pytest.param(3, 2, 3, marks=pytest.mark.nightly)]
GROUPED = [(2, 1, 2), (3, 1, 2), (1, 1, 4), (1, 0, 4), (1, 2, 4), (2, 2, 2)]


def of_kind(kind, cases):
    return [
        pytest.param(kind, *getattr(one, "values", one), marks=getattr(one, "marks", ())) for one in cases
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "alpha", "leaves", "window_length"),
    [*of_kind("a sum", SUMS), *of_kind("a joint sum", SUMS), *of_kind("joint noise", GROUPED)],
)
def test_no_neighbour_of_the_new_guarantee_loses_more_than_the_new_price(kind, alpha, leaves, window_length):
    """All changes of the new guarantee, by enumeration (Lemma 16a). 0 leaves: one a step, any in a period."""
    spend, changed_by = PLANNED[kind]
    stays = kind == "joint noise" and leaves == 1
    unit = "roaming" if leaves > 1 or (kind == "joint noise" and not leaves) else "customer"
    now = model(str(alpha), window_length, unit, max(leaves, 1))
    price = worst_window([repriced(spend, model("1", 2), now)], window_length).epsilon
    worst = 0
    for start in range(4):
        inside = range(start, min(4, start + window_length))
        for moves in product(range(-alpha, alpha + 1), repeat=2 * len(inside)):
            rows = [moves[place :: len(inside)] for place in range(len(inside))]
            changed = [(0,) * start + leaf + (0,) * (4 - inside.stop) for leaf in zip(*rows, strict=True)]
            if any(sum(entry != 0 for entry in row) > max(leaves, 1) for row in rows) or (
                stays and all(map(any, changed))
            ):
                continue
            worst = max(worst, sum(map(changed_by, changed)))
    assert Fraction(worst, 3) <= price
    # of longer windows alone the old price of a group is enough: it holds for any changes
    old = worst_window([spend], window_length if kind == "joint noise" else 2).epsilon
    assert (Fraction(worst, 3) > old) == ((kind, alpha, leaves) != ("joint noise", 1, 1))


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
    neighbour = CappedSpend(0, "points", 6, 6, 2, (1, 2), Fraction(4), 2)
    assert worst_window([neighbour], 7).epsilon == 2 * POINTS.unit_charge
    assert worst_window([repriced(neighbour, model(window_length=3), model(window_length=7))], 7).epsilon == (
        6 * POINTS.unit_charge
    )


def test_one_who_may_now_change_leaves_pays_a_joint_measurement_step_by_step():
    """And for a larger alpha too."""
    roaming, twice = model(unit="roaming"), model("4", unit="roaming")
    assert repriced(JOINT, model(), roaming).charges == tuple(Fraction(n, 4) for n in range(4))
    assert repriced(JOINT, model(), twice).charges == tuple(Fraction(n, 2) for n in range(4))
    assert repriced(JOINT, roaming, roaming) == JOINT
    assert repriced(STEPS, model(), roaming) == STEPS


@pytest.mark.parametrize("windows", [3, 4, 6, 7])
def test_a_larger_alpha_and_longer_windows_multiply(windows):
    """A new window is met by old ones in a row, and a new change is two old ones."""
    now, in_a_row = model("4", window_length=windows), -(-windows // 3)
    charges = repriced(JOINT, model(), now).charges
    assert charges == tuple(2 * in_a_row * charge for charge in JOINT.charges)
    neighbour = replace(POINTS, taken=(-1,))
    found, most = repriced(neighbour, model(), now), min(6, windows, 2 * in_a_row)
    assert (found.level, found.stage) == (neighbour.level, neighbour.stage)
    assert worst_window([found], windows).epsilon == 2 * most * POINTS.unit_charge


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


# Gaussian noise: charged by all that one customer may change, in rho.

POINT = StepSpend(0, "samples", 0, (1, 1), Fraction(3), 1)


@pytest.mark.parametrize("leaves_per_step", [1, 2])
def test_the_charge_is_the_most_that_one_customer_can_do_in_whatever_leaves(leaves_per_step):
    """All leaves, sums and signs at every step: the largest squared L2 move of a level's answers."""
    tree = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "b": "B", "c": "B"})
    parts, scale = (range(0, 2), range(2, 3)), Fraction(5)
    moves = [
        [(leaf, sign) for leaf, sign in zip(leaves, signs, strict=True)]
        for n in range(leaves_per_step + 1)
        for leaves in combinations(range(len(tree.leaves)), n)
        for signs in product((-1, 1), repeat=n)
    ]
    most = {}
    for changes in product(moves, repeat=3):
        leaves = np.zeros((len(tree.leaves), 3), dtype=np.int64)
        for step, own in enumerate(changes):
            for leaf, sign in own:
                leaves[leaf, step] += sign
        nodes = tree.add_up(leaves)
        for level, rows in enumerate(tree.levels):
            moved = nodes[rows.start : rows.stop]
            squared = sum(int((moved[:, part.start : part.stop].sum(axis=1) ** 2).sum()) for part in parts)
            most[level] = max(most.get(level, 0), squared)
    spend = GaussianSpend(0, "blocks", 0, 3, parts, scale, 1, leaves_per_step)
    charged = worst_window([spend], 3).epsilon
    assert all(Fraction(squared) / (2 * scale**2) <= charged for squared in most.values())
    assert Fraction(most[0]) / (2 * scale**2) == charged, "and the root attains it"
    # steps of a part do not add up: charged one by one they would cost 2 + 1 in place of 4 + 1
    assert charged == 5 * spend.unit_charge == Fraction(5 * leaves_per_step**2, 50)


def test_currencies_are_never_added_up():
    gaussian = GaussianSpend(0, "samples", 0, 2, (range(0, 1),), Fraction(3), 1)
    far = replace(gaussian, first_step=1000)  # no window sees both
    for mixed in ([POINT, gaussian], [gaussian, POINT], [POINT, far]):
        for add in (
            lambda: worst_window(mixed, 2),  # noqa: B023 - called at once
            lambda: charged_to_windows(mixed, 2, range(3)),  # noqa: B023
            lambda: worst_of_repeated([([spend], [0]) for spend in mixed], 2),  # noqa: B023
        ):
            with pytest.raises(ParameterError, match="never added up"):
                add()
    with pytest.raises(ParameterError, match="never added up"):
        check_currency([POINT], "rho")
    check_currency([gaussian], "rho")
    check_currency([], "rho")


@pytest.mark.parametrize(
    ("changed", "factor"),
    [
        ({"alpha": 3}, 9),
        ({"alpha": "5/2"}, 9),
        ({"alpha": "1/2"}, 1),
        ({"window_length": 96}, 1),
        ({"window_length": 2}, 1),
        ({"unit": "roaming", "leaves_per_step": 3}, 9),
        ({"unit": "roaming", "leaves_per_step": 2, "alpha": 2}, 16),
    ],
)
def test_k_neighbours_in_a_row_cost_k_squared(changed, factor):
    planned = PrivacyModel("1", 48, 1, delta="1e-6")
    given = {"epsilon": "1", "window_length": 48, "alpha": 1, "delta": "1e-6"}
    spend = GaussianSpend(0, "blocks", 7, 6, (range(0, 2), range(4, 5)), Fraction(7), 1000)
    priced = repriced(spend, planned, PrivacyModel(**(given | changed)))
    assert (priced.first_step, priced.parts) == (7, spend.parts)
    assert priced.unit_charge == factor * spend.unit_charge

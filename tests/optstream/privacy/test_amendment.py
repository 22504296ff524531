"""Lemma 12 and Gaussian noise against brute force: all neighbours of a guarantee, all changes of one."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.privacy import (
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
from optstream.privacy.horizon import loss_over, losses_of_days
from optstream.privacy.spends import check_currency
from optstream.stream import AggregationTree
from tests.optstream.ledger.brute_force import cost
from tests.optstream.privacy.test_accounting import HISTORIES


def model(alpha="2", window_length=3, unit="customer", leaves_per_step=1):
    return PrivacyModel("1", window_length, alpha, resolution="1", unit=unit, leaves_per_step=leaves_per_step)


guarantees = st.builds(
    lambda alpha, window, leaves: model(alpha, window, "roaming" if leaves else "customer", leaves or 1),
    st.sampled_from(["1/7", "1", "2", "2.001", "5"]),
    st.integers(1, 7),
    st.integers(0, 5),
)


@settings(max_examples=100, deadline=None)
@given(HISTORIES, guarantees, guarantees)
def test_a_spend_costs_under_another_guarantee_what_lemma_12_says(spends, planned, other):
    """Of every kind, window by window, by brute force."""
    for spend in spends:
        windows = range(spend.first_step - 8, spend.first_step + spend.n_steps + 1)
        found = charged_to_windows([repriced(spend, planned, other)], other.window_length, windows)
        assert found == [cost(spend, planned, other, False, start) for start in windows]


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


DELTA = Fraction(1, 10**6)
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
            lambda: loss_over(mixed, DELTA, adaptive=False, window=None),  # noqa: B023
            lambda: [*losses_of_days([[one] for one in mixed], [1], DELTA, window=None)],  # noqa: B023
        ):
            with pytest.raises(ParameterError, match="never added up"):
                add()
    with pytest.raises(ParameterError, match="never added up"):
        check_currency([POINT], "rho")
    check_currency([gaussian], "rho")
    check_currency([], "rho")

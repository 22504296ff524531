"""The accountant against brute force over every window, also under another guarantee than the planned one."""

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream import PrivacyModel
from optstream.errors import ParameterError
from optstream.privacy import CappedSpend, GaussianSpend, JointSpend, OrderSpend, PeriodSpend, StepSpend
from optstream.privacy.accountant import charged_to_windows, repriced, worst_of_repeated, worst_window
from optstream.privacy.horizon import loss_over, losses_of_days
from optstream.privacy.spends import check_currency, spend_from_document, spend_to_document
from optstream.stream import AggregationTree
from tests.optstream.ledger.brute_force import cost, cost_of


def step_spend(first_step, weights, scale, alpha_units=2, leaves_changed=1):
    weights = tuple(map(Fraction, weights))
    return StepSpend(0, "samples", first_step, weights, Fraction(scale), alpha_units, leaves_changed)


def brute_force(spends, length, touching=None):
    first = min(spend.first_step for spend in spends)
    end = max(spend.first_step + spend.n_steps for spend in spends)
    windows = [range(start, start + length) for start in range(first - length, end + length)]
    if touching is not None:
        windows = [window for window in windows if set(window) & set(touching)]
    return max((sum(cost_of(spend, window) for spend in spends) for window in windows), default=Fraction(0))


SCALES, LEAVES = st.fractions("1/9", 40, max_denominator=50), st.integers(1, 3)


@st.composite
def parts_of(draw, n_steps):
    """Parts of any lengths with gaps between them."""
    borders = draw(st.lists(st.integers(0, n_steps), min_size=2, max_size=8, unique=True).map(sorted))
    return tuple(range(*ends) for ends in zip(borders[::2], borders[1::2], strict=False))


@st.composite
def joint_spends(draw, at, length):
    parts, groups = draw(parts_of(length)), []
    while parts:
        size = draw(st.integers(1, len(parts)))
        groups, parts = [*groups, parts[:size]], parts[size:]
    n_nodes = draw(st.integers(1, 2))
    return JointSpend(0, "blocks", at, length, tuple(groups), draw(SCALES), 2, n_nodes, draw(LEAVES))


@st.composite
def gaussian_spends(draw, at, length):
    parts = draw(parts_of(length) | st.just(tuple(range(step, step + 1) for step in range(length))))
    return GaussianSpend(0, "blocks", at, length, parts, draw(SCALES), 2, draw(LEAVES))


@st.composite
def capped_spends(draw, at, length):
    taken = draw(st.sets(st.integers(at - 12, at - 1) | st.integers(at + length, at + length + 12)))
    cap = draw(st.integers(0, 6) | st.fractions(0, 6, max_denominator=16))
    weight = st.fractions(0, 2, max_denominator=16)
    weights = draw(st.just([]) | st.lists(weight, min_size=len(taken), max_size=len(taken)))
    given = at, length, cap, tuple(sorted(taken)), draw(SCALES)
    return CappedSpend(0, "samples", *given, 2, taken_weights=tuple(weights))


@st.composite
def step_spends(draw, at, length):
    weights = draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    return step_spend(at, weights, draw(SCALES), leaves_changed=draw(LEAVES))


@st.composite
def period_spends(draw, at, length):
    rises = draw(st.lists(st.fractions(0, 2, max_denominator=9), min_size=length, max_size=length))
    return PeriodSpend(0, "sampling", at, tuple(accumulate(rises, initial=Fraction(0))))


@st.composite
def histories_of(draw, *kinds):
    """Days of 46, 48 and 50 steps scaled down, with gaps, several measurements of these kinds a day."""
    spends, at = [], draw(st.integers(-20, 20))
    for _ in range(draw(st.integers(1, 5))):
        length = draw(st.sampled_from([4, 5, 6]))
        for _ in range(draw(st.integers(1, 3))):
            spends.append(draw(draw(st.sampled_from(kinds))(at, length)))
        at += length + draw(st.integers(0, 7))
    return spends


PURE = histories_of(step_spends, period_spends, capped_spends, joint_spends)
HISTORIES = PURE | histories_of(gaussian_spends)
"""Of either currency, for no history mixes them."""


@settings(max_examples=40, deadline=None)
@given(HISTORIES, st.integers(1, 13), st.integers(-5, 40), st.integers(1, 9))
def test_worst_window_is_that_of_brute_force(spends, length, start, size):
    found = worst_window(spends, length)
    assert found.epsilon == brute_force(spends, length)
    attained = range(found.first_step, found.first_step + length)
    assert sum(cost_of(spend, attained) for spend in spends) == found.epsilon
    starts = range(-40, 90)
    charged = [sum(cost_of(spend, range(start, start + length)) for spend in spends) for start in starts]
    assert charged_to_windows(spends, length, starts) == charged
    touching = range(start, start + size)
    assert worst_window(spends, length, touching=touching).epsilon == brute_force(spends, length, touching)
    assert [spend_from_document(spend_to_document(one)) for one in spends] == spends


FAR = 10**12


@settings(max_examples=40, deadline=None)
@given(HISTORIES, st.integers(1, 13), st.data())
@pytest.mark.slow
def test_a_repeated_history_is_priced_as_one_that_is_written_out(spends, length, data):
    shifts = st.lists(st.sampled_from([0, 0, 3, 40, -7, FAR]), min_size=1, max_size=4)
    size = data.draw(st.integers(1, 3))
    plans = [spends[start : start + size] for start in range(0, len(spends), size)]
    fixed = [any(isinstance(spend, CappedSpend) for spend in plan) for plan in plans]
    repeated = [
        (plan, [0, 0] if is_fixed else data.draw(shifts)) for plan, is_fixed in zip(plans, fixed, strict=True)
    ]
    moved = [(spend, shift) for plan, shifts in repeated for spend in plan for shift in shifts]
    near = [replace(spend, first_step=spend.first_step + shift) for spend, shift in moved if shift != FAR]
    far = [spend for spend, shift in moved if shift == FAR]
    expected = max((brute_force(part, length) for part in (near, far) if part), default=Fraction(0))
    found = worst_of_repeated(repeated, length)
    assert found.epsilon == expected
    attained = range(found.first_step, found.first_step + length)
    back = range(attained.start - FAR, attained.stop - FAR)
    spent = sum(cost_of(spend, attained) for spend in near) + sum(cost_of(spend, back) for spend in far)
    assert spent == expected


@settings(max_examples=40, deadline=None)
@given(PURE, st.integers(1, 13), st.integers(0, 30), st.integers(0, 5))
@pytest.mark.slow
def test_a_range_that_ends_before_it_begins_asks_for_windows_with_both_ends(spends, length, end, gap):
    found = worst_window(spends, length, touching=range(end + gap, end)).epsilon
    both = [
        sum((cost_of(spend, range(start, start + length)) for spend in spends), Fraction(0))
        for start in range(-20, 60)
        if start <= end - 1 and start + length > end + gap
    ]
    assert found == max(both, default=Fraction(0))


WRONG = {
    JointSpend(0, "x", 0, 4, ((range(0, 2),),), Fraction(1), 1, 1): {
        "groups": [
            ((),), ((range(0, 0),),), ((range(0, 2), range(1, 3)),), ((range(2, 4),), (range(0, 2),)),
            ((range(3, 5),),), ((range(-1, 1),),), ((range(0, 4, 2),),),
        ],
        "scale": [Fraction(0)],
        "n_nodes": [0],
    },
    PeriodSpend(0, "x", 0, (Fraction(0), Fraction(1))): {
        "charges": [tuple(map(Fraction, charges)) for charges in ((), (0,), (1, 2), (0, 2, 1))]
    },
    CappedSpend(0, "x", 0, 4, 1, (-1, -2), Fraction(1), 1): {"taken_weights": [(1,)]},
    OrderSpend(0, "x", 0, 7, (range(0, 2),), Fraction(8), 2, 1, 2, 5, 3, 1, 0): {
        "parts": [(range(0, 3),)], "n_nodes": [0], "longest": [0], "n_blocks": [0], "orders": [0],
        "earlier": [-1], "later": [-1], "window_length": [0], "scale": [Fraction(0)],
    },
    GaussianSpend(0, "x", 0, 4, (), Fraction(1), 1): {
        "parts": [
            (range(0, 0),), (range(0, 2), range(1, 3)), (range(3, 4), range(0, 1)), (range(3, 5),),
            (range(0, 4, 2),),
        ],
        "scale": [Fraction(0)],
    },
}  # fmt: skip


@pytest.mark.parametrize("spend", WRONG, ids=lambda spend: type(spend).__name__)
def test_a_spend_that_prices_nothing_is_refused(spend):
    for name, values in WRONG[spend].items():
        for wrong in values:
            with pytest.raises(ParameterError, match=f"of {type(spend).__name__}"):
                replace(spend, **{name: wrong})


@settings(max_examples=80, deadline=None)
@given(st.sets(st.integers(-9, -1) | st.integers(6, 14)), st.sets(st.integers(0, 5)), st.integers(1, 4))
def test_a_capped_plan_charges_at_least_every_outcome_that_keeps_to_its_rule(taken, chosen, cap):
    """And the rule and the plan together never charge more than the cap's points in any window."""
    length, starts = 7, range(-15, 15)
    points = taken | chosen
    if any(len(points & set(range(start, start + length))) > cap for start in starts):
        chosen = set()
    plan = CappedSpend(0, "samples", 0, 6, cap, tuple(sorted(taken)), Fraction(3), 1)
    outcome = step_spend(0, [int(step in chosen) for step in range(6)], 3, alpha_units=1)
    charged = charged_to_windows([plan], length, starts)
    settled = charged_to_windows([outcome], length, starts)
    for start, planned, own in zip(starts, charged, settled, strict=True):
        assert own <= planned
        headroom = max(0, cap - len(taken & set(range(start, start + length))))
        assert planned <= headroom * Fraction(1, 3)


def test_an_unknown_kind_of_spend_is_refused():
    with pytest.raises(ValueError, match="cannot be priced"):
        spend_from_document({"kind": "gift", "level": 0, "stage": "x", "first_step": 0})


# Lemma 12 and Gaussian noise: all neighbours of a guarantee, all changes of one.


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

"""Lemma 16: what a window is charged for joint noise, by exact losses and brute force; broken twins."""

from fractions import Fraction
from itertools import product
from math import ceil, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.privacy import JointSpend, PrivacyModel, StepSpend, charged_to_windows, worst_window
from optstream.privacy.amendment import repriced
from optstream.privacy.rules import cut, groups_with_headroom, may_be_joint, worst_sum
from optstream.privacy.spends import groups_from_document

STEPS = Fraction(1)


def steps(n):
    return [range(step, step + 1) for step in range(n)]


def joint(first_step, n_steps, groups, scale=STEPS, alpha_units=1):
    return JointSpend(0, "blocks", first_step, n_steps, tuple(groups), scale, alpha_units, 2)


def history(lengths, least, parts_of=lambda first_step, n_steps: steps(n_steps)):
    """Days in a row, each cut by itself; a negative length is a gap."""
    found, at = [], 0
    for length in lengths:
        if length > 0:
            found.append(joint(at, length, cut(parts_of(at, length), least)))
        at += abs(length)
    return found


# what a window is charged, against the exact loss of the noise itself


def log_loss(moved):
    """The largest loss of an outcome up to 4 when a group's noise moves, in units of 1 / scale, exactly."""
    return max(
        max(map(abs, x)) - max(abs(a + b) for a, b in zip(x, moved, strict=True))
        for x in product(range(-4, 5), repeat=len(moved))
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_group_loses_its_largest_change_and_no_more(size):
    for moved in product(range(-2, 3), repeat=size):
        assert log_loss(moved) == max(map(abs, moved))


@pytest.mark.parametrize("window_length", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "days",
    [
        [(3, [[range(0, 1), range(1, 2), range(2, 3)]]), (4, [[range(0, 1), range(1, 2)], [range(2, 4)]])],
        [(4, [[range(0, 2), range(2, 3)], [range(3, 4)]]), (3, [[range(0, 1), range(1, 3)]])],
    ],
)
def test_the_accountant_says_the_exact_loss_of_every_neighbour(days, window_length):
    """Days of three and four steps: every change of a window's readings by -1, 0 or 1, group by group."""
    spends, at = [], 0
    for n_steps, groups in days:
        spends.append(joint(at, n_steps, map(tuple, groups)))
        at += n_steps
    for start in range(1 - window_length, at):
        inside = [step for step in range(start, start + window_length) if 0 <= step < at]
        worst = 0
        for changes in product((-1, 0, 1), repeat=len(inside)):
            moved = dict(zip(inside, changes, strict=True))
            lost = 0
            for spend in spends:
                for group in spend.groups:
                    sums = [sum(moved.get(spend.first_step + step, 0) for step in part) for part in group]
                    lost += max(map(abs, sums))
            worst = max(worst, lost)
        assert charged_to_windows(spends, window_length, range(start, start + 1)) == [worst]


def test_a_window_that_cuts_two_groups_pays_both():
    """The broken twin charges one group: the window holds no more steps than one has."""
    spends = history([4], 2)
    assert worst_window(spends, 2).epsilon == 2
    broken_twin = joint(0, 4, [tuple(steps(4))])
    assert worst_window([broken_twin], 2).epsilon == 1
    assert log_loss((0, 1)) + log_loss((1, 0)) == 2


def test_one_who_changes_leaf_inside_a_group_pays_in_each_leaf():
    """The mover with a group in each leaf: the charge of one group is too little; such levels are refused."""
    spend = joint(0, 2, [tuple(steps(2))])
    charged = worst_window([spend], 2).epsilon
    assert log_loss((1, 1)) == charged == 1
    in_two_leaves = log_loss((1, 0)) + log_loss((0, 1))
    assert in_two_leaves == 2 > charged
    customer, roaming = (PrivacyModel(1, 2, 1, 1, unit=unit) for unit in ("customer", "roaming"))
    assert worst_window([repriced(spend, customer, roaming)], 2).epsilon >= in_two_leaves
    assert may_be_joint(customer, 1, None)
    assert may_be_joint(roaming, 1, None)
    assert may_be_joint(customer, 2, 1)
    assert not any(may_be_joint(customer, 2, leaves) for leaves in (None, 2, 12))
    assert not any(may_be_joint(roaming, 2, leaves) for leaves in (None, 1, 2))


# how many groups a window meets


def formula(n_measured, least):
    return (n_measured - 2) // least + 2 if n_measured > 1 else 1


@pytest.mark.parametrize(
    ("n_parts", "least", "sizes"),
    [(46, 8, [9, 9, 9, 9, 10]), (48, 8, [8] * 6), (50, 8, [8, 8, 8, 8, 9, 9]), (7, 4, [7]), (0, 3, [])],
)
def test_a_day_is_cut_into_nearly_equal_groups(n_parts, least, sizes):
    groups = cut(steps(n_parts), least)
    assert sorted(map(len, groups)) == sizes
    assert [part for group in groups for part in group] == steps(n_parts)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 9))
def test_the_worst_sum_is_that_of_every_order_of_days(data, window_length):
    """By brute force over all sequences of three layouts at most, with gaps, that a window can meet."""
    layouts = []
    for _ in range(data.draw(st.integers(1, 2))):
        n_steps = data.draw(st.integers(2, 5))
        borders = data.draw(
            st.lists(st.integers(0, n_steps), min_size=2, max_size=6, unique=True).map(sorted)
        )
        parts = [range(*ends) for ends in zip(borders[::2], borders[1::2], strict=False)]
        layouts.append((n_steps, cut(parts, data.draw(st.integers(1, len(parts))))))
    shortest = min(n_steps for n_steps, _ in layouts)
    worst = 0
    for sequence in product(layouts, repeat=min(ceil((window_length - 2) / shortest) + 2, 5)):
        for gap in (0, 1):
            spends, at = [], 0
            for n_steps, groups in sequence:
                spends.append(joint(at, n_steps, groups))
                at += n_steps + gap
            worst = max(worst, worst_window(spends, window_length).epsilon)
    assert worst_sum(layouts, window_length) == worst


def test_the_worst_sum_of_days_of_all_lengths_is_the_lemmas():
    days = [(n_steps, cut(steps(n_steps), 8)) for n_steps in (46, 48, 50)]
    assert worst_sum(days, 48) == formula(48, 8) == 7


# headroom: whole groups


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 8), st.fractions("1/2", 4, max_denominator=4))
def test_groups_are_taken_whole_and_no_window_exceeds_its_limit(data, window_length, most):
    groups = cut(steps(data.draw(st.integers(3, 8))), data.draw(st.integers(1, 3)))
    n_steps = groups[-1][-1].stop
    weights = st.lists(st.integers(0, 1), min_size=5, max_size=5)
    others = [
        StepSpend(0, "samples", 20 - 5, tuple(data.draw(weights)), Fraction(3), 1),
        StepSpend(0, "samples", 20 + n_steps, tuple(data.draw(weights)), Fraction(3), 1),
    ]
    if worst_window(others, window_length).epsilon > most:
        return
    unit = Fraction(1, 2)
    taken = groups_with_headroom(groups, 20, unit, others, window_length, most)
    assert set(taken) <= set(groups)
    spends = [*others, joint(20, n_steps, taken, 1 / unit)]
    assert worst_window(spends, window_length).epsilon <= most
    # the first that was left out has no headroom beside those before it
    for left in [group for group in groups if group not in taken][:1]:
        before = taken[: _place(taken, left)]
        tried = [*others, joint(20, n_steps, [*before, left], 1 / unit)]
        assert worst_window(tried, window_length).epsilon > most


def _place(taken, left):
    return sum(group[0].start < left[0].start for group in taken)


# what is refused


def test_the_loss_of_independent_groups_is_a_sum():
    """What the accountant adds up, by the product of two groups' probabilities: e^(1/b) twice."""
    weights = {x: Fraction(1, 2) ** max(map(abs, x)) for x in product(range(-3, 4), repeat=2)}
    moved = [(0, 1), (1, 0)]
    ratios = [
        max(p / weights[m] for x, p in weights.items() if (m := (x[0] + v[0], x[1] + v[1])) in weights)
        for v in moved
    ]
    assert prod(ratios) == 2 ** worst_window(history([4], 2), 2).epsilon


@pytest.mark.parametrize("document", ["x", [["x"]], [[[0, 1, 2]]], [[[0, "1"]]], [[[0, True]]], {}])
def test_documents_that_hold_no_groups_are_refused(document):
    with pytest.raises((TypeError, ValueError)):
        groups_from_document(document)

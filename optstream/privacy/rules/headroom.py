"""What still fits between the spends of other periods: a public rule for measurements planned ahead."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optstream.privacy.accounting import charged_to_windows
from optstream.privacy.joint_spend import Group, JointSpend
from optstream.privacy.spends import Spend

Layer = tuple[Sequence[Group], Fraction]
"""Groups of parts, and what a window is charged for a step of one."""


def parts_with_headroom(
    parts: Sequence[range],
    first_step: int,
    unit_charge: Fraction,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[range, ...]:
    """Return those parts, in their order, with which no window loses more than `most` (Lemma 13).

    A part is taken whole or left out. A function of recorded outputs and public facts, hence free.

    Args:
        parts: Disjoint steps of a period, rising, each with noise of its own.
        first_step: Running index of the period's first step, from which parts count.
        unit_charge: Of each step of a part.
        others: As `groups_with_headroom`.
        window_length: Steps.
        most: What a window may lose.

    Returns:
        Some of the parts.
    """
    alone = [(part,) for part in parts]
    taken = groups_with_headroom(alone, first_step, unit_charge, others, window_length, most)
    return tuple(part for (part,) in taken)


def groups_with_headroom(
    groups: Sequence[Group],
    first_step: int,
    unit_charge: Fraction,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[Group, ...]:
    """Return those groups, in their order, with which no window loses more than `most`.

    Args:
        groups: Of disjoint parts of a period, rising.
        first_step: Running index of the period's first step, from which parts count.
        unit_charge: What a window is charged for each step of the part, of a group, of which it holds most.
        others: The spends of all other periods within a window, earlier and later ones, of any kind, and all
            of this period that are charged beside these.
        window_length: Steps.
        most: What a window may lose.

    Returns:
        Some of the groups.
    """
    (taken,) = layers_with_headroom([(groups, unit_charge)], first_step, others, window_length, most)
    return taken


def layers_with_headroom(
    layers: Sequence[Layer],
    first_step: int,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[tuple[Group, ...], ...]:
    """Return those groups of each layer with which no window loses more than `most`, all layers together.

    A layer is what is measured at steps of its own, at a charge of its own; layers may measure the same
    steps. Groups are asked about in order of time, of those that begin together the earlier layer's first,
    each beside all that were taken before, of whatever layer. A group is taken whole or left out. A function
    of recorded outputs and public facts, hence free (Lemmas 13 and 16). Exact: integers over a common
    denominator.

    Args:
        layers: The groups of each, rising, and its unit charge, as `groups_with_headroom`.
        first_step: As `groups_with_headroom`.
        others: As `groups_with_headroom`.
        window_length: Steps.
        most: What a window may lose.

    Returns:
        Some of the groups of each layer, in their order.
    """
    asked = sorted(
        ((number, group) for number, (groups, _) in enumerate(layers) for group in groups),
        key=lambda one: (one[1][0].start, one[0]),
    )
    if not asked:
        return tuple(() for _ in layers)
    first, stop = asked[0][1][0].start, max(group[-1].stop for _, group in asked)
    starts = range(first_step + first - window_length + 1, first_step + stop)
    spent = charged_to_windows(others, window_length, starts)
    units = [unit_charge for _, unit_charge in layers]
    denominator = math.lcm(*(one.denominator for one in (*units, most, *spent)))
    charged = np.array([int(one * denominator) for one in spent], dtype=object)
    cap, taken = int(most * denominator), [list[Group]() for _ in layers]
    for number, group in asked:
        origin, n_steps = group[0].start, group[-1].stop - group[0].start
        own = tuple(range(part.start - origin, part.stop - origin) for part in group)
        priced = JointSpend(0, "", 0, n_steps, (own,), Fraction(1), 1, 1).steps_charged(window_length)
        touching = slice(origin - first, origin - first + priced.size)
        after = charged[touching] + int(units[number] * denominator) * priced.astype(object)
        if (after <= cap).all():
            charged[touching] = after
            taken[number].append(group)
    return tuple(tuple(one) for one in taken)

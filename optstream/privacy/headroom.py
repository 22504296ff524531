"""What still fits between the spends of other periods: a public rule for measurements planned ahead."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optstream.privacy.accounting import charged_to_windows
from optstream.privacy.joint_spend import Group, JointSpend
from optstream.privacy.spends import Spend


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

    A group is taken whole or left out. A function of recorded outputs and public facts, hence free (Lemmas 13
    and 16). Exact: integers over a common denominator.

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
    parts = [part for group in groups for part in group]
    if not parts:
        return ()
    starts = range(first_step + parts[0].start - window_length + 1, first_step + parts[-1].stop)
    spent = charged_to_windows(others, window_length, starts)
    denominator = math.lcm(unit_charge.denominator, most.denominator, *(one.denominator for one in spent))
    charged = np.array([int(one * denominator) for one in spent], dtype=object)
    unit, cap = int(unit_charge * denominator), int(most * denominator)
    taken = []
    for group in groups:
        origin, n_steps = group[0].start, group[-1].stop - group[0].start
        own = tuple(range(part.start - origin, part.stop - origin) for part in group)
        priced = JointSpend(0, "", 0, n_steps, (own,), Fraction(1), 1, 1).steps_charged(window_length)
        touching = slice(origin - parts[0].start, origin - parts[0].start + priced.size)
        after = charged[touching] + unit * priced.astype(object)
        if (after <= cap).all():
            charged[touching] = after
            taken.append(group)
    return tuple(taken)

"""What still fits between the spends of other periods: a public rule for measurements planned ahead."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from optstream.privacy.accounting import charged_to_windows
from optstream.privacy.joint_spend import Group, JointSpend
from optstream.privacy.spends import Spend


class Layer(NamedTuple):
    """What is measured at steps of its own, and what a window is charged for it.

    Attributes:
        groups: Of disjoint parts of a period, rising. Each is taken whole or left out.
        joint: For each step of the part, of a group, of which the window holds most.
        apart: For each step of every part of a group, beside that.
    """

    groups: Sequence[Group]
    joint: Fraction
    apart: Fraction = Fraction(0)


def groups_with_headroom(
    groups: Sequence[Group],
    first_step: int,
    unit_charge: Fraction,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[Group, ...]:
    """Return those groups, in their order, with which no window loses more than `most` (Lemma 13).

    groups: of disjoint parts of a period, rising, from its first step, a running index; each is taken whole
    or left out. unit_charge: what a window is charged for each step of the part, of a group, of which it
    holds most. others: the spends of all other periods within a window, earlier and later ones, of any kind,
    and all of this period that are charged beside these. window_length: steps. most: what a window may lose.
    """
    layer = Layer(groups, unit_charge)
    (taken,) = layers_with_headroom([layer], first_step, others, window_length, most)
    return taken


def layers_with_headroom(
    layers: Sequence[Layer],
    first_step: int,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[tuple[Group, ...], ...]:
    """Return those groups of each layer, in their order, with which no window loses more than `most`, all
    layers together.

    Layers may measure the same steps. Groups are asked about in order of time, of those that begin together
    the earlier layer's first, each beside all that were taken before, of whatever layer. A group is taken
    whole or left out. A function of recorded outputs and public facts, hence free (Lemmas 13 and 16). Exact:
    integers over a common denominator. Other arguments as `groups_with_headroom`.
    """
    asked = sorted(
        ((number, group) for number, layer in enumerate(layers) for group in layer.groups),
        key=lambda one: (one[1][0].start, one[0]),
    )
    if not asked:
        return tuple(() for _ in layers)
    first, stop = asked[0][1][0].start, max(group[-1].stop for _, group in asked)
    starts = range(first_step + first - window_length + 1, first_step + stop)
    spent = charged_to_windows(others, window_length, starts)
    units = [unit for layer in layers for unit in (layer.joint, layer.apart)]
    denominator = math.lcm(*(one.denominator for one in (*units, most, *spent)))
    charged = np.array([int(one * denominator) for one in spent], dtype=object)
    cap, taken = int(most * denominator), [list[Group]() for _ in layers]
    for number, group in asked:
        origin, n_steps = group[0].start, group[-1].stop - group[0].start
        own = tuple(range(part.start - origin, part.stop - origin) for part in group)
        touching = slice(origin - first, origin - first + n_steps + window_length - 1)
        after = charged[touching]
        for unit, charges in ((layers[number].joint, [own]), (layers[number].apart, [(one,) for one in own])):
            if unit:
                priced = JointSpend(0, "", 0, n_steps, tuple(charges), Fraction(1), 1, 1)
                counted = priced.steps_charged(window_length).astype(object)
                after = after + int(unit * denominator) * counted
        if (after <= cap).all():
            charged[touching] = after
            taken[number].append(group)
    return tuple(tuple(one) for one in taken)

"""What still fits between the spends of other periods: a public rule for measurements planned ahead."""

import math
from collections.abc import Sequence
from fractions import Fraction

from optstream.privacy.accounting import charged_to_windows
from optstream.privacy.spends import Spend


def parts_with_headroom(
    parts: Sequence[range],
    first_step: int,
    unit_charge: Fraction,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[range, ...]:
    """Return those parts, in their order, with which no window loses more than `most`.

    parts: disjoint steps of a period, counted from its `first_step`; each step of a part is charged
    `unit_charge`. others: the spends of all other periods within a window, earlier and later ones, of any
    kind. A part is taken whole or left out. A function of recorded outputs and public facts, hence free
    (Lemma 13). Exact: integers over a common denominator.
    """
    if not parts:
        return ()
    first = first_step + parts[0].start - window_length + 1
    starts = range(first, first_step + parts[-1].stop)
    spent = charged_to_windows(others, window_length, starts)
    denominator = math.lcm(unit_charge.denominator, most.denominator, *(one.denominator for one in spent))
    charged = [int(one * denominator) for one in spent]
    unit, cap = int(unit_charge * denominator), int(most * denominator)
    taken = []
    for part in parts:
        begin, stop = first_step + part.start, first_step + part.stop
        touching = range(begin - window_length + 1 - first, stop - first)
        adds = {
            place: unit * (min(stop, first + place + window_length) - max(begin, first + place))
            for place in touching
        }
        if all(charged[place] + add <= cap for place, add in adds.items()):
            for place, add in adds.items():
                charged[place] += add
            taken.append(part)
    return tuple(taken)

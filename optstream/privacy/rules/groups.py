"""How measurements are cut into groups of joint noise, where that is allowed, and what a window costs."""

from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.joint_spend import Group, JointSpend
from optstream.privacy.model import PrivacyModel, Windows


def may_be_joint(model: PrivacyModel, n_nodes: int, leaves_per_period: int | None) -> bool:
    """Return whether one customer's changes of a period move one node of a level only (Lemma 16); False
    wherever nothing says so.

    One who changes leaf inside a group pays for it in each leaf, which no charge of a `JointSpend` holds.
    leaves_per_period: the leaves that one customer's readings of a period lie in, by the operator's word;
    None where nobody gave it: a default of 1 is no word.
    """
    return n_nodes == 1 or (model.unit == "customer" and leaves_per_period == 1)


def cut(parts: Sequence[range], least: int) -> tuple[Group, ...]:
    """Return a period's parts, in order of time, in as many nearly equal groups as hold at least `least`
    each.

    Never fewer in any: a rest of its own would let a window meet one group more (Lemma 16). A period without
    parts has no groups. A public rule. Raises ParameterError for less than 1, or more than there are parts.
    """
    if least < 1 or 0 < len(parts) < least:
        raise ParameterError(f"a period of {len(parts)} measurements cannot be cut into groups of {least}")
    return cut_evenly(parts, len(parts) // least)


def cut_evenly(parts: Sequence[range], n_groups: int) -> tuple[Group, ...]:
    """Return a period's parts, in order of time, in so many groups, at most as many as there are parts,
    nearly equal; none without parts. A public rule.
    """
    borders = [number * len(parts) // max(n_groups, 1) for number in range(n_groups + 1)]
    return tuple(tuple(parts[start:stop]) for start, stop in pairwise(borders))


Layout = tuple[int, tuple[Group, ...]]
"""The steps of a period, and its groups."""


def worst_sum(layouts: Collection[Layout], window_length: int, windows: Windows = "sliding") -> int:
    """Return the most unit charges that a window of so many steps costs over periods of these layouts, at
    least one, in any order; "aligned" windows lie inside one period.

    An integer: steps, each once for every group whose largest part in the window holds it. The scale is this
    times alpha_units and leaves_changed over epsilon.
    """
    if windows == "aligned":
        return max(int(_charged(groups, n_steps, window_length).max()) for n_steps, groups in layouts)
    return worst_of_cycle([list(layouts)], window_length)


def worst_of_cycle(layouts: Sequence[Sequence[Layout]], window_length: int) -> int:
    """Return the same where a period's layout depends on the running index of its first step.

    By the accountant, for every sliding window over every sequence of periods, gaps between them included: a
    window meets the end of one period, then whole ones, then the beginning of another, and what each may cost
    at most is found step by step.

    layouts: for each first step modulo their number, what a period may be that begins there: as many layouts
    everywhere, of the same lengths in the same order; at least one.
    """
    n_places = len(layouts)
    own = [
        (n_steps, np.stack([_charged(at[kind][1], n_steps, window_length) for at in layouts], axis=1))
        for kind, (n_steps, _) in enumerate(layouts[0])
    ]
    after = [(np.arange(n_places) + n_steps) % n_places for n_steps, _ in own]
    # the most that the first n steps from the beginning of a period cost, for each place where it may begin
    onwards = np.zeros((window_length + 1, n_places), dtype=np.int64)
    for n in range(1, window_length + 1):
        for (n_steps, charged), then in zip(own, after, strict=True):
            inside = min(n_steps, n)
            found = charged[inside - 1] + onwards[n - inside, then]
            onwards[n] = np.maximum(onwards[n], found)
    worst = 0
    for (n_steps, charged), then in zip(own, after, strict=True):
        for start in range(n_steps):
            left = max(window_length - n_steps + start, 0)
            worst = max(worst, int((charged[start + window_length - 1] + onwards[left, then]).max()))
    return worst


def _charged(groups: tuple[Group, ...], n_steps: int, window_length: int) -> NDArray[np.int64]:
    """Return `steps_charged` of a period with these groups; those that differ by a shift are charged once."""
    if not groups:
        return np.zeros(n_steps + window_length - 1, dtype=np.int64)
    first, stop = groups[0][0].start, groups[-1][-1].stop
    moved = tuple(tuple((part.start - first, part.stop - first) for part in group) for group in groups)
    charged = _charged_from_its_start(moved, stop - first, window_length)
    # a window before the first part, or after the last, is charged nothing
    return np.pad(charged, (first, n_steps - stop))


@lru_cache(maxsize=4096)
def _charged_from_its_start(
    groups: tuple[tuple[tuple[int, int], ...], ...], n_steps: int, window_length: int
) -> NDArray[np.int64]:
    ranges = tuple(tuple(range(*part) for part in group) for group in groups)
    return JointSpend(0, "", 0, n_steps, ranges, Fraction(1), 1, 1).steps_charged(window_length)

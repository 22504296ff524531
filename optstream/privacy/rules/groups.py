"""How measurements are cut into groups of joint noise, where that is allowed, and what a window costs."""

from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import pairwise

from optstream.errors import ParameterError
from optstream.privacy.joint_spend import Group, JointSpend
from optstream.privacy.model import PrivacyModel, Windows


def may_be_joint(model: PrivacyModel, n_nodes: int, leaves_per_period: int | None) -> bool:
    """Return whether one customer's changes of a period move one node of a level only (Lemma 16).

    One who changes leaf inside a group pays for it in each leaf, which no charge of a `JointSpend` holds.

    Args:
        model: The privacy guarantee.
        n_nodes: Of the level.
        leaves_per_period: The leaves that one customer's readings of a period lie in, by the operator's word;
            None where nobody gave it: a default of 1 is no word.

    Returns:
        False wherever nothing says so.
    """
    return n_nodes == 1 or (model.unit == "customer" and leaves_per_period == 1)


def cut(parts: Sequence[range], least: int) -> tuple[Group, ...]:
    """Return a period's parts in as many nearly equal groups as hold at least `least` each.

    Never fewer in any: a rest of its own would let a window meet one group more (Lemma 16). A period without
    parts has no groups. A public rule.

    Args:
        parts: What is measured, in order of time.
        least: The fewest of a group.

    Returns:
        The groups, in order of time.

    Raises:
        ParameterError: Least below 1, or more than there are parts.
    """
    if least < 1 or 0 < len(parts) < least:
        raise ParameterError(f"a period of {len(parts)} measurements cannot be cut into groups of {least}")
    n_groups = len(parts) // least
    borders = [number * len(parts) // max(n_groups, 1) for number in range(n_groups + 1)]
    return tuple(tuple(parts[start:stop]) for start, stop in pairwise(borders))


def worst_sum(
    layouts: Collection[tuple[int, tuple[Group, ...]]], window_length: int, windows: Windows = "sliding"
) -> int:
    """Return the most unit charges that a window costs over periods of these layouts, in any order.

    The scale is this times alpha_units and leaves_changed over epsilon. By the accountant, for every window
    over every sequence of periods, gaps between them included: a window meets the end of one period, then
    whole ones, then the beginning of another, and what each may cost at most is found step by step.

    Args:
        layouts: The steps of a period and its groups; at least one.
        window_length: Steps.
        windows: "aligned" looks only inside one period.

    Returns:
        An integer: steps, each once for every group whose largest part in the window holds it.
    """
    charged: list[tuple[int, list[int]]] = [
        (
            n_steps,
            JointSpend(0, "", 0, n_steps, groups, Fraction(1), 1, 1).steps_charged(window_length).tolist(),
        )
        for n_steps, groups in layouts
    ]
    if windows == "aligned":
        return max(max(own) for _, own in charged)
    # the most that the first n steps from the beginning of a period cost
    onwards = [0]
    for n in range(1, window_length + 1):
        first = ((min(n_steps, n), own) for n_steps, own in charged)
        onwards.append(max(own[inside - 1] + onwards[n - inside] for inside, own in first))
    return max(
        own[start + window_length - 1] + onwards[max(window_length - n_steps + start, 0)]
        for n_steps, own in charged
        for start in range(n_steps)
    )

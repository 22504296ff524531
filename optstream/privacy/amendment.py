"""The cost of a spend under another privacy guarantee than its own: group privacy between neighbours."""

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import (
    ORDER_DEFECT,
    CappedSpend,
    JointSpend,
    OrderSpend,
    PeriodSpend,
    Spend,
    StepSpend,
)


def repriced(spend: Spend, planned: PrivacyModel, other: PrivacyModel) -> Spend:
    """Return a spend planned and drawn under `planned` as the accountant counts it under `other`.

    Lemma 12 (docs/privacy.md): every charge times ⌈alpha'/alpha⌉ · ⌈m'/m⌉, never divided, and of a period or
    capped spend times ⌈w'/w⌉ where windows grow, without other periods' points. Joint noise: Lemmas 16a and
    16b. For a customer who may change leaves within a period, a spend planned for one who may not is charged
    step by step. A Gaussian spend costs k^2 times its charge for k neighbours in a row (Lemma 20).
    """
    leaves = 1 if isinstance(spend, PeriodSpend) else spend.leaves_changed
    times_alpha, times_leaves = other.alpha / planned.alpha, Fraction(other.leaves_per_step, leaves)
    factor = max(1, ceil(times_alpha)) * max(1, ceil(times_leaves))
    n_windows = max(1, ceil(Fraction(other.window_length, planned.window_length)))
    may_now_move = (planned.unit, other.unit) == ("customer", "roaming")
    match spend:
        case PeriodSpend():
            charges = [charge * factor * n_windows for charge in spend.charges]
            if may_now_move:
                charges = [n * spend.charges[1] * factor for n in range(spend.n_steps + 1)]
            return replace(spend, charges=tuple(charges))
        case CappedSpend() if n_windows > 1 or planned.windows != "sliding":
            points = (min(n, n_windows * spend.cap) for n in range(spend.n_steps + 1))
            charges = [Fraction(n) * spend.unit_charge * factor for n in points]
            return PeriodSpend(spend.level, spend.stage, spend.first_step, tuple(charges))
        case JointSpend() | OrderSpend() if may_now_move and spend.n_nodes > 1:
            # one group, or order, of one node for each changed step and leaf
            scale = spend.scale
            if isinstance(spend, OrderSpend):
                scale = 1 / (1 / scale + ORDER_DEFECT / spend.alpha_units)
            return StepSpend(
                spend.level, spend.stage, spend.first_step, spend.weights,
                scale, spend.alpha_units * factor, spend.leaves_changed,
            )  # fmt: skip
    priced: Any = spend  # every kind is a dataclass, and has these units
    found: Spend = replace(priced, alpha_units=spend.alpha_units * factor)
    return found

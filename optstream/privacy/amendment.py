"""The cost of a spend under another privacy guarantee than its own: group privacy between neighbours."""

from dataclasses import replace
from fractions import Fraction

from optstream.errors import ParameterError
from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import CappedSpend, GaussianSpend, JointSpend, PeriodSpend, Spend, StepSpend


def repriced(spend: Spend, planned: PrivacyModel, other: PrivacyModel) -> Spend:
    """Return a spend planned and drawn under `planned` as the accountant counts it under `other`.

    Lemma 12 (docs/privacy.md): every charge is multiplied by ⌈alpha'/alpha⌉ · ⌈m'/m⌉, and never divided, for
    a charge holds for smaller changes too. m is the number of readings a step that the spend was priced for,
    1 where it does not say it. Where windows grow from w to w', a period spend costs at most ⌈w'/w⌉ times as
    much, and a capped one has at most ⌈w'/w⌉ caps of points; other periods' points are then not deducted, nor
    for aligned windows, as earlier versions had. A joint spend holds for any changes of a group's steps
    (Lemma 16a). One who may change leaves within a period pays a period spend, or a joint one of several
    nodes, that was planned for one who may not, step by step. A Gaussian spend costs k^2 times its charge for
    k neighbours in a row (Lemma 20).

    The result has the same steps, and another kind where its own cannot hold the price.
    """
    say_leaves = StepSpend | CappedSpend | JointSpend | GaussianSpend
    leaves = spend.leaves_changed if isinstance(spend, say_leaves) else 1
    factor = max(1, _ceil(other.alpha / planned.alpha)) * max(
        1, _ceil(Fraction(other.leaves_per_step, leaves))
    )
    n_windows = max(1, _ceil(Fraction(other.window_length, planned.window_length)))
    match spend:
        case StepSpend():
            return replace(spend, alpha_units=spend.alpha_units * factor)
        case PeriodSpend():
            if (planned.unit, other.unit) == ("customer", "roaming"):
                one = spend.charges[1] * factor
                return replace(spend, charges=tuple(n * one for n in range(spend.n_steps + 1)))
            return replace(spend, charges=tuple(charge * factor * n_windows for charge in spend.charges))
        case CappedSpend():
            if n_windows == 1 and planned.windows == "sliding":
                return replace(spend, alpha_units=spend.alpha_units * factor)
            most = n_windows * spend.cap
            points = (min(n, most) for n in range(spend.n_steps + 1))
            charges = tuple(Fraction(n) * spend.unit_charge * factor for n in points)
            return PeriodSpend(spend.level, spend.stage, spend.first_step, charges)
        case JointSpend():
            if (planned.unit, other.unit) == ("customer", "roaming") and spend.n_nodes > 1:
                # one group of one node for each changed step and leaf
                return StepSpend(
                    spend.level, spend.stage, spend.first_step, spend.weights,
                    spend.scale, spend.alpha_units * factor, spend.leaves_changed,
                )  # fmt: skip
            return replace(spend, alpha_units=spend.alpha_units * factor)
        case GaussianSpend():
            # the charge has the square of it
            return replace(spend, alpha_units=spend.alpha_units * factor)
    raise ParameterError(f"a {type(spend).__name__} cannot be repriced")


def _ceil(ratio: Fraction) -> int:
    return -(-ratio.numerator // ratio.denominator)

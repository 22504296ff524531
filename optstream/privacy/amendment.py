"""What a spend costs under another privacy guarantee than its own: group privacy, from one neighbour to the
next.
"""

from dataclasses import replace
from fractions import Fraction

from optstream.errors import ParameterError
from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import CappedSpend, GaussianSpend, JointSpend, PeriodSpend, Spend, StepSpend


def repriced(spend: Spend, planned: PrivacyModel, other: PrivacyModel) -> Spend:
    """Return the spend as the accountant counts it under `other`; it was planned and drawn under `planned`.
    Costs no privacy.

    Either may be the older of the two: old spends are priced by a new privacy guarantee, and new spends by
    the old privacy guarantees that days beside them were released under.

    Lemma 12 (docs/privacy.md): two neighbours of `other` are joined by ⌈alpha'/alpha⌉ · ⌈m'/m⌉ neighbours of
    `planned` that differ in the same steps, so every charge is multiplied by that; never divided, for a
    charge holds for smaller changes too. m is how many readings a step the spend was priced for, which in
    old ledgers is less than the model's on a tree of fewer leaves, and counts as 1 where the spend does not
    say it. Where windows grow
    from w to w', a step spend stays as it is (its steps add up), a period spend costs at most ⌈w'/w⌉ times as
    much, a capped one has at most ⌈w'/w⌉ caps of points, and what other periods took is not deducted; nor is
    it where it was planned for windows inside one period (`windows="aligned"`, as earlier versions had), for
    all of them are counted now. A joint spend stays as it is: its charge holds for any
    changes of a group's steps (Lemma 16a). One who may change leaves within a period pays a period spend, or
    a joint one of several nodes, that was planned for one who may not step by step. A Gaussian spend stays as
    it is but for its alpha: k neighbours in a row cost k^2 times its charge, and its charge is of any changed
    steps, in any leaves (Lemma 20).

    What is returned is of the same steps, and of another kind where its own cannot hold the price. Raises
    ParameterError for a spend of no known kind.
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
    raise ParameterError(f"a {type(spend).__name__} cannot be priced anew")


def _ceil(ratio: Fraction) -> int:
    return -(-ratio.numerator // ratio.denominator)

"""What every window costs under every guarantee, window by window, from Lemma 12 and not from the code."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf

from optstream.privacy import CappedSpend, GaussianSpend, JointSpend, PeriodSpend, StepSpend


@dataclass(frozen=True)
class Charged:
    """What a release is charged, under which guarantee it was planned, and whether its noise is known."""

    spends: tuple
    guarantee: int
    known: bool = False

    @property
    def steps(self):
        return {step for spend in self.spends for step in _steps(spend)}


def _steps(spend):
    return range(spend.first_step, spend.first_step + spend.n_steps)


@lru_cache(maxsize=20_000)
def cost(spend, planned, other, same, start):
    """What the window of `other` that begins at `start` is charged for a spend planned under `planned`."""
    window = range(start, start + other.window_length)
    inside = [step for step in _steps(spend) if step in window]
    if not inside:
        return Fraction(0)
    leaves = 1 if isinstance(spend, PeriodSpend) else spend.leaves_changed
    times = max(1, ceil(other.alpha / planned.alpha)) * max(1, ceil(Fraction(other.leaves_per_step, leaves)))
    wide = max(1, ceil(Fraction(other.window_length, planned.window_length)))
    if same:
        times = wide = 1
    if isinstance(spend, StepSpend):
        unit = Fraction(spend.leaves_changed * spend.alpha_units) / spend.scale
        return times * sum((spend.weights[step - spend.first_step] * unit for step in inside), Fraction(0))
    if isinstance(spend, PeriodSpend):
        if not same and (planned.unit, other.unit) == ("customer", "roaming"):
            return times * len(inside) * spend.charges[1]
        return times * wide * spend.charges[len(inside)]
    if isinstance(spend, JointSpend):
        unit = Fraction(spend.leaves_changed * spend.alpha_units) / spend.scale
        held = [
            [sum(spend.first_step + step in inside for step in part) for part in group]
            for group in spend.groups
        ]
        if not same and (planned.unit, other.unit) == ("customer", "roaming") and spend.n_nodes > 1:
            return times * unit * sum(map(sum, held))
        return times * unit * sum(map(max, held))
    if isinstance(spend, GaussianSpend):
        moved = times * spend.leaves_changed * spend.alpha_units
        held = [sum(spend.first_step + step in inside for step in part) for part in spend.parts]
        return sum((n * moved) ** 2 for n in held) / (2 * spend.scale**2)
    assert isinstance(spend, CappedSpend)
    unit = Fraction(spend.leaves_changed * spend.alpha_units) / spend.scale
    if wide > 1:
        return times * unit * min(len(inside), wide * spend.cap)
    weights = spend.taken_weights or (1,) * len(spend.taken)
    taken = sum(weight for step, weight in zip(spend.taken, weights, strict=True) if step in window)
    return times * unit * max(0, min(len(inside), spend.cap - taken))


def windows_of(guarantee, charged):
    """(first step, the spends that it adds up) of every window that one of the releases touches."""
    spends = [(one, spend) for one in charged for spend in one.spends]
    lead = guarantee.window_length - 1
    for start in sorted({step - back for one in charged for step in one.steps for back in range(lead + 1)}):
        yield range(start, start + guarantee.window_length), spends


def most_charged(guarantees, charged, beside):
    """What the guarantee in force charges the worst window with a step of one of the releases."""
    number = len(guarantees) - 1
    return max(
        sum((inf if known and amount else amount for known, amount in lost), Fraction(0))
        for window, spends in windows_of(guarantees[number], charged)
        if beside.steps.intersection(window)
        for lost in [_lost(guarantees, number, window, spends)]
    )


def _lost(guarantees, number, window, spends):
    """Whether each spend's noise is known, and what guarantee `number` charges the window for it."""
    model = guarantees[number]
    return [
        (one.known, cost(spend, guarantees[one.guarantee], model, one.guarantee == number, window[0]))
        for one, spend in spends
    ]


def broken(guarantees, charged, beside=None):
    """Each window that loses more than a guarantee gives it, among those the guarantee answers for."""
    for number in sorted({one.guarantee for one in charged}):
        model = guarantees[number]
        answers = {step for one in charged if one.guarantee == number for step in one.steps}
        near = charged
        if beside is not None:
            lead, own = model.window_length - 1, sorted(beside.steps)
            reach = range(own[0] - lead, own[-1] + lead + 1)
            near = [one for one in charged if any(step in reach for step in one.steps)]
        for window, spends in windows_of(model, near):
            if not answers.intersection(window) or (beside and not beside.steps.intersection(window)):
                continue
            lost = _lost(guarantees, number, window, spends)
            total = sum((amount for _, amount in lost), Fraction(0))
            if total > model.budget or any(known and amount > 0 for known, amount in lost):
                yield number, window, total


def above(guarantees, charged):
    """As `broken`, by the sums alone: compromised noise counts at its price."""
    return list(broken(guarantees, [replace(one, known=False) for one in charged]))

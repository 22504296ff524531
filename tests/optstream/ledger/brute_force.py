"""What every window costs under every guarantee, window by window, from Lemma 12 and not from the code."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf

from optstream.privacy import CappedSpend, GaussianSpend, JointSpend, OrderSpend, PeriodSpend, StepSpend


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


def cost_of(spend, window):
    """What one window is charged for a spend, straight from its definition."""
    inside = [step - spend.first_step for step in window if step in _steps(spend)]
    if isinstance(spend, PeriodSpend):
        return spend.charges[len(inside)]
    moved = spend.leaves_changed * spend.alpha_units
    if isinstance(spend, GaussianSpend):
        held = [len(set(part).intersection(inside)) for part in spend.parts]
        return sum((n * moved) ** 2 for n in held) / (2 * spend.scale**2)
    if isinstance(spend, StepSpend):
        return sum((spend.weights[step] for step in inside), Fraction(0)) * moved / spend.scale
    if isinstance(spend, JointSpend):
        held = [max(len(set(part).intersection(inside)) for part in group) for group in spend.groups]
        return sum(held) * moved / spend.scale
    if isinstance(spend, OrderSpend):
        return order_cost(spend, window, 1)
    assert isinstance(spend, CappedSpend)
    weights = spend.taken_weights or (1,) * len(spend.taken)
    taken = sum(weight for step, weight in zip(spend.taken, weights, strict=True) if step in window)
    return max(0, min(len(inside), spend.cap - taken)) * moved / spend.scale


def order_cost(spend, window, times):
    """Once, where a part is met and no block that the spend leaves to another day; more in longer windows."""
    named = {spend.first_step - spend.earlier} if spend.earlier else set()
    named |= {spend.first_step + spend.n_steps - 1 + spend.later} if spend.later else set()
    measured = {spend.first_step + step for part in spend.parts for step in part}
    if named.intersection(window) or not measured.intersection(window):
        return Fraction(0)
    moved = spend.longest * spend.leaves_changed * spend.alpha_units * times
    return ceil(len(window) / spend.window_length) * spend.orders * (moved / spend.scale + DEFECT)


DEFECT = Fraction(1, 2**24)


@lru_cache(maxsize=20_000)
def cost(spend, planned, other, same, start):
    """What the window of `other` that begins at `start` is charged for a spend planned under `planned`."""
    window = range(start, start + other.window_length)
    n_inside = len(set(window).intersection(_steps(spend)))
    if same or not n_inside:
        return cost_of(spend, window) if n_inside else Fraction(0)
    leaves = 1 if isinstance(spend, PeriodSpend) else spend.leaves_changed
    times = max(1, ceil(other.alpha / planned.alpha)) * max(1, ceil(Fraction(other.leaves_per_step, leaves)))
    wide = max(1, ceil(Fraction(other.window_length, planned.window_length)))
    may_move = (planned.unit, other.unit) == ("customer", "roaming")
    if isinstance(spend, PeriodSpend):
        return times * (n_inside * spend.charges[1] if may_move else wide * cost_of(spend, window))
    if isinstance(spend, GaussianSpend):
        return times**2 * cost_of(spend, window)
    unit = Fraction(spend.leaves_changed * spend.alpha_units) / spend.scale
    if isinstance(spend, JointSpend) and may_move and spend.n_nodes > 1:
        measured = {spend.first_step + step for part in spend.parts for step in part}
        return times * unit * len(measured.intersection(window))
    if isinstance(spend, OrderSpend) and may_move and spend.n_nodes > 1:
        measured = {spend.first_step + step for part in spend.parts for step in part}
        return times * (unit + spend.leaves_changed * DEFECT) * len(measured.intersection(window))
    if isinstance(spend, OrderSpend):
        return order_cost(spend, window, times)
    if isinstance(spend, CappedSpend) and wide > 1:
        return times * unit * min(n_inside, wide * spend.cap)
    return times * cost_of(spend, window)


def windows_of(guarantee, charged):
    """(first step, the spends that it adds up) of every window that one of the releases touches."""
    spends = [(one, spend) for one in charged for spend in one.spends]
    lead = guarantee.window_length - 1
    for start in sorted({step - back for one in charged for step in one.steps for back in range(lead + 1)}):
        yield range(start, start + guarantee.window_length), spends


def most_charged(guarantees, charged, newest):
    """What the guarantee in force charges the worst window with a step of one of the releases."""
    number = len(guarantees) - 1
    return max(
        sum((inf if known and amount else amount for known, amount in lost), Fraction(0))
        for window, spends in windows_of(guarantees[number], charged)
        if newest.steps.intersection(window)
        for lost in [_lost(guarantees, number, window, spends)]
    )


def _lost(guarantees, number, window, spends):
    """Whether each spend's noise is known, and what guarantee `number` charges the window for it."""
    model = guarantees[number]
    return [
        (one.known, cost(spend, guarantees[one.guarantee], model, one.guarantee == number, window[0]))
        for one, spend in spends
    ]


def broken(guarantees, charged, newest=None):
    """Each window that loses more than a guarantee gives it, among those the guarantee answers for."""
    for number in sorted({one.guarantee for one in charged}):
        model = guarantees[number]
        answers = {step for one in charged if one.guarantee == number for step in one.steps}
        near = charged
        if newest is not None:
            lead, own = model.window_length - 1, sorted(newest.steps)
            reach = range(own[0] - lead, own[-1] + lead + 1)
            near = [one for one in charged if any(step in reach for step in one.steps)]
        for window, spends in windows_of(model, near):
            if not answers.intersection(window) or (newest and not newest.steps.intersection(window)):
                continue
            lost = _lost(guarantees, number, window, spends)
            total = sum((amount for _, amount in lost), Fraction(0))
            if total > model.budget or any(known and amount > 0 for known, amount in lost):
                yield number, window, total


def above(guarantees, charged):
    """As `broken`, by the sums alone: compromised noise counts at its price."""
    return list(broken(guarantees, [replace(one, known=False) for one in charged]))

"""Public rules: groups of joint noise and their cost, headroom, kinds of noise, publications."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.accountant import charged_to_windows, composed
from optstream.privacy.exact import exact, whole
from optstream.privacy.horizon import LARGEST_DELTA, LEAST_DELTA
from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import CappedSpend, Group, JointSpend, Spend, StepSpend


def may_be_joint(model: PrivacyModel, n_nodes: int, leaves_per_period: int | None) -> bool:
    """Return whether the operator vouches that a customer's changes of a period move one node (Lemma 16).

    One who changes leaf inside a group pays for it in each leaf, which no charge of a `JointSpend` holds.
    `leaves_per_period` is None where the operator does not declare it.
    """
    return n_nodes == 1 or (model.unit == "customer" and leaves_per_period == 1)


def cut(parts: Sequence[range], least: int) -> tuple[Group, ...]:
    """Return a period's parts, in order, in as many nearly equal groups as hold at least `least` each.

    Never fewer in any: a smaller last group would let a window meet one group more (Lemma 16).
    """
    if least < 1 or 0 < len(parts) < least:
        raise ParameterError(f"a period of {len(parts)} measurements cannot be cut into groups of {least}")
    return cut_evenly(parts, len(parts) // least)


def cut_evenly(parts: Sequence[range], n_groups: int) -> tuple[Group, ...]:
    """Return a period's parts, in order, in at most n_groups nearly equal groups."""
    borders = [number * len(parts) // max(n_groups, 1) for number in range(n_groups + 1)]
    return tuple(tuple(parts[start:stop]) for start, stop in pairwise(borders))


Layout = tuple[int, tuple[Group, ...]]
"""The steps of a period, and its groups."""


def worst_sum(layouts: Collection[Layout], window_length: int) -> int:
    """Return the most unit charges of a window over periods of these layouts, in any order."""
    return worst_of_cycle([list(layouts)], window_length)


def worst_of_cycle(layouts: Sequence[Sequence[Layout]], window_length: int) -> int:
    """Return `worst_sum` where a period's layout depends on its first step modulo `len(layouts)`.

    By the accountant, for every sliding window over every sequence of periods, gaps included. Each entry of
    `layouts` has as many layouts, of the same lengths in the same order.
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
    """Return the unit charges of a period with these groups; shifted groups are priced once."""
    if not groups:
        return np.zeros(n_steps + window_length - 1, dtype=np.int64)
    first, stop = groups[0][0].start, groups[-1][-1].stop
    moved = tuple(tuple(range(part.start - first, part.stop - first) for part in group) for group in groups)
    # a window before the first part, or after the last, is charged nothing
    return np.pad(_steps_charged(moved, stop - first, window_length), (first, n_steps - stop))


@lru_cache(maxsize=4096)
def _steps_charged(groups: tuple[Group, ...], n_steps: int, window_length: int) -> NDArray[np.int64]:
    return JointSpend(0, "", 0, n_steps, groups, Fraction(1), 1, 1).charged(window_length)[0]


class Layer(NamedTuple):
    """Measurements at steps of their own, and their charges.

    groups: of disjoint parts of a period, rising, each taken whole or left out. joint: for each step of the
    part, of a group, of which the window holds most. apart: added for each step of every part of a group.
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

    `unit_charge` is for each step of a group's part of which a window holds most. `others` are all spends of
    other periods within a window, and the other spends of this period.
    """
    return layers_with_headroom([Layer(groups, unit_charge)], first_step, others, window_length, most)[0]


def layers_with_headroom(
    layers: Sequence[Layer],
    first_step: int,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[tuple[Group, ...], ...]:
    """Return `groups_with_headroom` for layers, which may measure the same steps, together.

    Groups are tried in order of time, of those that begin together the earlier layer's first, each with all
    taken before, of any layer: a function of recorded outputs and public facts (Lemmas 13 and 16). Exact.
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
                counted = _steps_charged(tuple(charges), n_steps, window_length).astype(object)
                after = after + int(unit * denominator) * counted
        if (after <= cap).all():
            charged[touching] = after
            taken[number].append(group)
    return tuple(tuple(one) for one in taken)


UNITS = 1000
"""Units that an answer moves: enough that integers lose as real numbers do."""


@dataclass(frozen=True)
class Draws:
    """The draws of a plan: the epsilon of each, and their average number at a step."""

    epsilon: Fraction
    a_step: Fraction


@dataclass(frozen=True)
class Horizon:
    """The span, and the delta of its loss in [1e-10, 1/10], at whose price kinds of noise are compared."""

    n_steps: int
    delta: Fraction

    def __post_init__(self) -> None:
        whole(self.n_steps, "n_steps of Horizon", 1)
        object.__setattr__(self, "delta", exact(self.delta, "delta of Horizon"))
        if not LEAST_DELTA <= self.delta <= LARGEST_DELTA:
            raise ParameterError(f"delta of Horizon must be a number in [1e-10, 1/10]; got {self.delta}")

    def price(self, draws: Draws, noisier: float = 1.0) -> float:
        """Return the epsilon at delta of all draws of the span, scales times `noisier` (Lemmas 14, 17)."""
        number, scale = round(self.n_steps * draws.a_step), UNITS / draws.epsilon * Fraction(noisier)
        found = composed(frozenset({((UNITS, scale), number)}), frozenset(), float(self.delta))
        return min(found, float(number * UNITS / scale))


def errs_less(ratio: float, joint: Draws, laplace: Draws, horizon: Horizon | None) -> bool:
    """Return whether joint noise errs less: at the same epsilon of a window, or at the price of a horizon.

    At an equal price it does if it costs less once its scale has grown by `ratio`, with which both err alike.
    """
    return ratio > 1.0 and (horizon is None or horizon.price(joint, ratio) < horizon.price(laplace))


class WindowBudget:
    """The amounts, integers, that the windows of a period have spent of a cap, over all periods.

    A function of recorded outputs and public facts alone (Lemma 7). `taken` has (running step, amount) of
    other periods, earlier and later.
    """

    def __init__(
        self, cap: int, window_length: int, first_step: int, n_steps: int, taken: Iterable[tuple[int, int]]
    ) -> None:
        self._cap, self._window, self._n_steps = cap, window_length, n_steps
        self._lead = window_length - 1
        self._spent = np.zeros(n_steps + 2 * self._lead, dtype=np.int64)
        for step, amount in taken:
            place = step - first_step + self._lead
            if 0 <= place < self._spent.size:
                self._spent[place] += amount

    def take(self, step: int, amount: int = 1) -> None:
        """Count an amount, points or grains, at a step, counted from the period's start."""
        self._spent[step + self._lead] += amount

    def headroom(self, step: int) -> int:
        """Return the headroom of the fullest window around a step of the period; negative above the cap."""
        running = np.concatenate(([0], np.cumsum(self._spent[step : step + 2 * self._window - 1])))
        fullest = np.max(running[self._window :] - running[: -self._window])
        return int(self._cap - fullest)

    def allowed(self) -> NDArray[np.bool_]:
        """Return which steps of the period, (n_steps,), have headroom for one more, and hold nothing yet."""
        ones = np.ones(self._window, dtype=np.int64)
        full = np.convolve(self._spent, ones, mode="valid") >= self._cap
        blocked = np.convolve(full, ones, mode="valid") > 0
        free = self._spent[self._lead : self._lead + self._n_steps] == 0
        allowed: NDArray[np.bool_] = ~blocked & free
        return allowed


PUBLICATIONS = "publications"


class PublicationRule(ABC):
    """The offers of the publication budget, n_grains a window, to each step of a period.

    No offer exceeds the headroom of the fullest window around the step, counting earlier and later periods,
    so no window pays for more than n_grains. Offers are functions of recorded outputs and public facts alone
    (Lemma 7). One below `fewest` is none, for
    its noise would outgrow the integers.
    """

    def __init__(self, budget: WindowBudget, n_grains: int, fewest: int) -> None:
        self.n_grains = n_grains
        self._budget, self._fewest = budget, fewest

    def offer(self, step: int) -> int:
        """Return the grains that a publication at a step of the period costs; 0 where there can be none."""
        grains = self._wanted(step, self._budget.headroom(step))
        return grains if grains >= max(self._fewest, 1) else 0

    def publish(self, step: int, grains: int) -> None:
        """Take the offer at a step of the period, which is published."""
        self._budget.take(step, grains)

    @abstractmethod
    def _wanted(self, step: int, headroom: int) -> int:
        """Return the rule's own offer, at most the headroom."""


class Halving(PublicationRule):
    """Budget distribution: half of the headroom. Source: Kellaris et al. 2014, Algorithm 1."""

    def _wanted(self, step: int, headroom: int) -> int:
        return headroom // 2


class Absorption(PublicationRule):
    """Budget absorption: a grain is one step's equal share, and a publication takes all unused shares.

    A publication of j shares uses up those of the j - 1 steps that follow, which publish nothing; then shares
    add up again, to a window's at most. `absorbing_from` is the first step whose share no publication has
    used. Source: Kellaris et al. 2014, Algorithm 2.
    """

    def __init__(
        self, budget: WindowBudget, n_grains: int, fewest: int, first_step: int, absorbing_from: int
    ) -> None:
        super().__init__(budget, n_grains, fewest)
        self._first_step = first_step
        self.absorbing_from = absorbing_from

    def publish(self, step: int, grains: int) -> None:
        """Take the offer; the shares of the steps that follow are used up."""
        super().publish(step, grains)
        self.absorbing_from = self._first_step + step + grains

    def _wanted(self, step: int, headroom: int) -> int:
        absorbed = self._first_step + step - self.absorbing_from + 1
        return min(absorbed, self.n_grains, headroom)


def grains_of(spends: Iterable[Spend], epsilon: Fraction, n_grains: int) -> list[tuple[int, int]]:
    """Return (running step, grains), rising, that spends of other periods took of a window's n_grains.

    Those of another configuration are rounded up. A plan that was never settled, as of a void day, counts as
    all of the budget at each of its steps.
    """
    taken: Counter[int] = Counter()
    for spend in spends:
        if spend.stage != PUBLICATIONS or not isinstance(spend, StepSpend | CappedSpend):
            continue
        charges = (spend.unit_charge,) * spend.n_steps if isinstance(spend, CappedSpend) else spend.charges
        for step, charge in enumerate(charges):
            if charge:
                taken[spend.first_step + step] += min(ceil(charge * n_grains / epsilon), n_grains)
    return sorted(taken.items())

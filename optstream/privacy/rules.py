"""Public rules: headroom of windows, kinds of noise, publications."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.accountant import charged_to_windows, composed
from optstream.privacy.exact import exact, round_up_to_float, whole
from optstream.privacy.horizon import LARGEST_DELTA, LEAST_DELTA
from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import CappedSpend, OrderSpend, Spend, StepSpend, overlaps


def may_be_ordered(model: PrivacyModel, n_nodes: int, leaves_per_window: int | None) -> bool:
    """Return whether a customer's changes of a window move one node, as is declared or so (Lemma 16b)."""
    return n_nodes == 1 or (model.unit == "customer" and leaves_per_window == 1)


class Layer(NamedTuple):
    """Measurements at steps of their own, and their charges. parts: disjoint, rising, counted from the
    period's start, each taken whole or left out. apart: the charge of each step of a part. orders: what each
    level with noise of a whole stream charges, whatever its parts."""

    parts: Sequence[range]
    apart: Fraction = Fraction(0)
    orders: Sequence[OrderSpend] = ()


def parts_with_headroom(
    layers: Sequence[Layer],
    first_step: int,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[tuple[range, ...], ...]:
    """Return each layer's parts, in their order, with which no window loses more than `most` (Lemma 13).
    `others` are all spends of other periods within a window, and the other spends of this period. Parts are
    tried in order of time, of those that begin together the earlier layer's first, each with all taken
    before. Exact."""
    asked = sorted(
        ((number, part) for number, layer in enumerate(layers) for part in layer.parts),
        key=lambda one: (one[1].start, one[0]),
    )
    if not asked:
        return tuple(() for _ in layers)
    first, stop = asked[0][1].start, max(part.stop for _, part in asked)
    starts = range(first_step + first - window_length + 1, first_step + stop)
    spent = charged_to_windows(others, window_length, starts)
    orders = [order for layer in layers for order in layer.orders]
    units = [*(layer.apart for layer in layers), *(order.unit_charge for order in orders)]
    denominator = math.lcm(*(one.denominator for one in (*units, most, *spent)))
    charged = np.array([int(one * denominator) for one in spent], dtype=object)
    cap, taken = int(most * denominator), [list[range]() for _ in layers]
    # what the windows still pay to each level's orders, once
    whole = [replace(one, parts=(range(first, stop),), longest=stop - first) for one in orders]
    due = [
        one.charged(window_length)[0][first : first + len(starts)].astype(object)
        * int(order.unit_charge * denominator)
        for one, order in zip(whole, orders, strict=True)
    ]
    of_layer = np.repeat(np.arange(len(layers)), [len(layer.orders) for layer in layers])
    for number, part in asked:
        place, length = part.start - first, len(part)
        touching = slice(place, place + length + window_length - 1)
        inside = overlaps(length, window_length).astype(object)
        after = charged[touching] + int(layers[number].apart * denominator) * inside
        own = [one for one, of in zip(due, of_layer, strict=True) if of == number]
        for one in own:
            after = after + one[touching]
        if (after <= cap).all():
            charged[touching] = after
            taken[number].append(part)
            for one in own:
                one[touching] = 0
    return tuple(tuple(one) for one in taken)


UNITS = 1000  # units that an answer moves: enough that integers lose as real numbers do


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

    def prefers_orders(
        self, ratio: float, epsilon: Fraction, n_orders: int, n_draws: int, window_length: int
    ) -> bool:
        """Return whether noise of a whole stream costs less over the span once it errs as Laplace noise does:
        n_draws of Laplace noise, which at the same epsilon errs `ratio` times as much, or one of each order
        (Lemma 17a)."""
        n_windows = -(-self.n_steps // window_length)

        def price(each: Fraction, number: int) -> float:
            scale, delta = Fraction(round_up_to_float(UNITS / each)), float(self.delta)
            found = composed(frozenset({((UNITS, scale), number)}), frozenset(), delta)
            return min(found, float(number * each))

        joint = price(epsilon / n_orders / Fraction(ratio), n_orders * n_windows)
        return joint < price(epsilon / n_draws, self.n_steps * n_draws // window_length)


class WindowBudget:
    """What the windows of a period have spent of a cap; taken: (running step, amount) of others (Lemma 7)."""

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
    """The offers of the publication budget, n_grains a window, to each step of a period: at most the headroom
    of the fullest window around the step, counting earlier and later periods (Lemma 11). One below `fewest`
    is none, for its noise would outgrow the integers."""

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
    """Budget absorption: a grain is one step's equal share, and a publication takes all unused shares. One of
    j shares uses up those of the j - 1 steps that follow, which publish nothing; then shares add up again, to
    a window's at most. absorbing_from: the first step whose share no publication has used. Source: Kellaris
    et al. 2014, Algorithm 2."""

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
    """Return (running step, grains), rising, that spends of other periods took of a window's n_grains. A plan
    that was never settled, as of a void day, counts as all of the budget at each of its steps."""
    taken: Counter[int] = Counter()
    for spend in spends:
        if spend.stage != PUBLICATIONS or not isinstance(spend, StepSpend | CappedSpend):
            continue
        charges = (spend.unit_charge,) * spend.n_steps if isinstance(spend, CappedSpend) else spend.charges
        for step, charge in enumerate(charges):
            if charge:
                taken[spend.first_step + step] += min(ceil(charge * n_grains / epsilon), n_grains)
    return sorted(taken.items())

"""How measurements are cut into groups of joint noise, where that is allowed, and what a window costs."""

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
from optstream.privacy.spends import CappedSpend, GaussianSpend, Group, JointSpend, PeriodSpend, Spend


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


def worst_sum(layouts: Collection[Layout], window_length: int) -> int:
    """Return the most unit charges that a window of so many steps costs over periods of these layouts, at
    least one, in any order.

    An integer: steps, each once for every group whose largest part in the window holds it. The scale is this
    times alpha_units and leaves_changed over epsilon.
    """
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


# What still fits between the spends of other periods: a public rule for measurements planned ahead.


class Layer(NamedTuple):
    """What is measured at steps of its own, and what a window is charged for it.

    Attributes:
        groups: Of disjoint parts of a period, rising. Each is taken whole or left out.
        joint: For each step of the part, of a group, of which the window holds most.
        apart: For each step of every part of a group, beside that.
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

    groups: of disjoint parts of a period, rising, from its first step, a running index; each is taken whole
    or left out. unit_charge: what a window is charged for each step of the part, of a group, of which it
    holds most. others: the spends of all other periods within a window, earlier and later ones, of any kind,
    and all of this period that are charged beside these. window_length: steps. most: what a window may lose.
    """
    layer = Layer(groups, unit_charge)
    (taken,) = layers_with_headroom([layer], first_step, others, window_length, most)
    return taken


def layers_with_headroom(
    layers: Sequence[Layer],
    first_step: int,
    others: Sequence[Spend],
    window_length: int,
    most: Fraction,
) -> tuple[tuple[Group, ...], ...]:
    """Return those groups of each layer, in their order, with which no window loses more than `most`, all
    layers together.

    Layers may measure the same steps. Groups are asked about in order of time, of those that begin together
    the earlier layer's first, each beside all that were taken before, of whatever layer. A group is taken
    whole or left out. A function of recorded outputs and public facts, hence free (Lemmas 13 and 16). Exact:
    integers over a common denominator. Other arguments as `groups_with_headroom`.
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
                priced = JointSpend(0, "", 0, n_steps, tuple(charges), Fraction(1), 1, 1)
                counted = priced.steps_charged(window_length).astype(object)
                after = after + int(unit * denominator) * counted
        if (after <= cap).all():
            charged[touching] = after
            taken[number].append(group)
    return tuple(tuple(one) for one in taken)


# Joint or Laplace noise, compared at an equal price of many days, not of one window: it costs nothing.

UNITS = 1000
"""By which an answer moves: so many that integers lose as real numbers do."""


@dataclass(frozen=True)
class Draws:
    """What a plan draws.

    Attributes:
        epsilon: That each draw loses.
        a_step: How many of them a step has, on average.
    """

    epsilon: Fraction
    a_step: Fraction


@dataclass(frozen=True)
class Horizon:
    """The span at whose price kinds of noise are compared. It is no guarantee: a window keeps its epsilon.

    Args:
        n_steps: Of the span, at least 1.
        delta: At which its loss is told, in [1e-10, 1/10].

    Raises:
        ParameterError: Either lies outside its range; it names it, the range and what it got.
    """

    n_steps: int
    delta: Fraction

    def __post_init__(self) -> None:
        whole(self.n_steps, "n_steps of Horizon", 1)
        object.__setattr__(self, "delta", exact(self.delta, "delta of Horizon"))
        if not LEAST_DELTA <= self.delta <= LARGEST_DELTA:
            raise ParameterError(f"delta of Horizon must be a number in [1e-10, 1/10]; got {self.delta}")

    def price(self, draws: Draws, noisier: float = 1.0) -> float:
        """Return what all draws of the span lose together at delta (Lemmas 14 and 17), an epsilon, at most
        the plain sum; free. noisier: by what the scales are multiplied.
        """
        number, scale = round(self.n_steps * draws.a_step), UNITS / draws.epsilon * Fraction(noisier)
        found = composed(frozenset({((UNITS, scale), number)}), frozenset(), float(self.delta))
        return min(found, float(number * UNITS / scale))

    def prefers_joint(self, ratio: float, joint: Draws, laplace: Draws) -> bool:
        """Return whether joint noise errs less than Laplace noise at an equal price of the span; free.

        Asked the other way round, which takes two prices and no search: whether it costs less once its scale
        has grown until both err alike. The price falls and the error rises with the scale. ratio: by what the
        scale of joint noise may grow until it errs as Laplace noise does. joint, laplace: what is drawn of
        either at the epsilon of a window.
        """
        return self.price(joint, ratio) < self.price(laplace)


def errs_less(ratio: float, joint: Draws, laplace: Draws, horizon: Horizon | None) -> bool:
    """Return whether joint noise errs less: at the same epsilon of a window, or, with a horizon, price of a
    span; free. Other arguments as for `Horizon.prefers_joint`.
    """
    return ratio > 1.0 and (horizon is None or horizon.prefers_joint(ratio, joint, laplace))


# A public rule that keeps every window under a cap while steps are still being chosen.


class WindowBudget:
    """What the windows of a period have spent of a cap, over periods, earlier and later ones.

    A function of recorded outputs and public facts alone, hence free (Lemma 7). Amounts are integers, so
    nothing rounds: points, or grains of a budget.

    Args:
        cap: The most that a window may hold.
        window_length: Steps.
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        taken: (running step, amount) of other periods.
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
        """Return the most that may be taken at a step, counted from the period's start: what the fullest
        window around it has left; negative where one has too much.
        """
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


# How much a step may pay for a publication: budget distribution and budget absorption, in whole grains.

PUBLICATIONS = "publications"


class PublicationRule(ABC):
    """What each step of a period is offered of the publication budget, and what was taken of it.

    The budget of a window is `n_grains` grains, so that nothing rounds. No offer exceeds what the fullest
    window around the step has left, counting earlier and later periods: whatever is published, no window pays
    for more than n_grains. Offers are functions of recorded outputs and public facts alone, hence free (Lemma
    7). Steps count from the period's start.

    Args:
        budget: Of the period's windows, its cap n_grains.
        n_grains: Of a window.
        fewest: A smaller offer is none, for its noise would outgrow the integers.
    """

    def __init__(self, budget: WindowBudget, n_grains: int, fewest: int) -> None:
        self.n_grains = n_grains
        self._budget, self._fewest = budget, fewest

    def offer(self, step: int) -> int:
        """Return the grains that a publication at a step of the period costs; 0 where there can be none."""
        grains = self._wanted(step, self._budget.headroom(step))
        return grains if grains >= max(self._fewest, 1) else 0

    def publish(self, step: int, grains: int) -> None:
        """Take what was offered at a step of the period: it is published."""
        self._budget.take(step, grains)

    @abstractmethod
    def _wanted(self, step: int, headroom: int) -> int:
        """Return the rule's own offer, at most the headroom."""


class Halving(PublicationRule):
    """Budget distribution: half of what is left. Source: Kellaris et al. 2014, Algorithm 1."""

    def _wanted(self, step: int, headroom: int) -> int:
        return headroom // 2


class Absorption(PublicationRule):
    """Budget absorption: a grain is one step's equal share, and a publication takes all that lie unused.

    A publication that takes j shares uses up those of the j - 1 steps that follow, which are held; the steps
    after it let theirs add up, to a window's at most. Source: Kellaris et al. 2014, Algorithm 2.

    first_step: the period's. absorbing_from: running index of the first step whose share no publication has
    used.
    """

    def __init__(
        self, budget: WindowBudget, n_grains: int, fewest: int, first_step: int, absorbing_from: int
    ) -> None:
        super().__init__(budget, n_grains, fewest)
        self._first_step = first_step
        self.absorbing_from = absorbing_from

    def publish(self, step: int, grains: int) -> None:
        """Take what was offered, as every rule does; the shares of the steps that follow are used up."""
        super().publish(step, grains)
        self.absorbing_from = self._first_step + step + grains

    def _wanted(self, step: int, headroom: int) -> int:
        absorbed = self._first_step + step - self.absorbing_from + 1
        return min(absorbed, self.n_grains, headroom)


def grains_of(spends: Iterable[Spend], epsilon: Fraction, n_grains: int) -> list[tuple[int, int]]:
    """Return (running step, grains) that spends of other periods took of a window's publication budget, which
    is `epsilon` or n_grains grains, rising; steps that paid nothing are left out.

    Exact for what was spent under the same budget; what another configuration spent is rounded up. A plan
    that was never settled, as a void day leaves it, counts as all of the budget at each of its steps: no
    publication then comes near it, and the plans beside it ask for no more than the windows have.
    """
    taken: Counter[int] = Counter()
    for spend in spends:
        if spend.stage != PUBLICATIONS or isinstance(spend, PeriodSpend | JointSpend | GaussianSpend):
            continue
        charges = (spend.unit_charge,) * spend.n_steps if isinstance(spend, CappedSpend) else spend.charges
        for step, charge in enumerate(charges):
            if charge:
                taken[spend.first_step + step] += min(ceil(charge * n_grains / epsilon), n_grains)
    return sorted(taken.items())

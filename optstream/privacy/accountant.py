"""The accountant: the worst loss of any window over a history of spends, exact."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import (
    ORDER_DEFECT,
    CappedSpend,
    JointSpend,
    OrderSpend,
    PeriodSpend,
    Spend,
    StepSpend,
    check_currency,
)


@dataclass(frozen=True)
class WindowCost:
    """The worst window: its loss, in the currency of the spends, and the running index of its first step."""

    epsilon: Fraction
    first_step: int


NO_COST = WindowCost(Fraction(0), 0)


def worst_window(
    spends: Iterable[Spend],
    window_length: int,
    touching: range | None = None,
) -> WindowCost:
    """Return the first of the windows that lose most, over all windows of `window_length` steps.

    The loss of a window is at most the sum of its charges (`Spend.charged`, Lemma 1) of all levels, in one
    currency, else ParameterError. Time O(spends * (period + window)) and the length of the history; exact.
    `touching`: only windows that contain at least one of these steps; an empty range such as range(7, 5):
    with both steps 4 and 7.
    """
    known = list(spends)
    if not known:
        return NO_COST
    charged = _charge(known, window_length)
    starts = range(charged.first_start, charged.first_start + charged.numerators.size)
    if touching is not None:
        first = touching.start - window_length + 1
        starts = range(max(starts.start, first), min(starts.stop, touching.stop))
    if not starts:
        return NO_COST
    chosen = charged.numerators[starts.start - charged.first_start : starts.stop - charged.first_start]
    worst = int(np.argmax(chosen))
    return WindowCost(Fraction(int(chosen[worst]), charged.denominator), starts.start + worst)


def worst_of_repeated(
    repeated: Iterable[tuple[Sequence[Spend], Sequence[int]]], window_length: int
) -> WindowCost:
    """Return the worst sliding window of a history that repeats itself, as `worst_window` does. repeated:
    each plan with its shifts, that many steps later; a `CappedSpend`, which names steps of other periods, has
    shift 0 alone. Time O(distinct plans * (period + window) + distinct shifts * window)."""
    listed = list(repeated)
    check_currency(spend for plan, _ in listed for spend in plan)
    charges = [(_charge(plan, window_length), Counter(shifts)) for plan, shifts in listed]
    denominator = math.lcm(*(charged.denominator for charged, _ in charges))
    placed: defaultdict[int, list[NDArray[np.object_]]] = defaultdict(list)
    for charged, counts in charges:
        factor = denominator // charged.denominator
        times = {count: charged.numerators * (factor * count) for count in set(counts.values())}
        for shift, count in counts.items():
            placed[charged.first_start + shift].append(times[count])
    starts, first, worst = sorted(placed), 0, NO_COST
    reach = max((charged.numerators.size for charged, _ in charges), default=0)
    gaps = [after - start for start, after in pairwise([*starts, math.inf])]
    kinds = [tuple(map(id, placed[start])) for start in starts]
    # windows up to the next start cost what they do wherever the same charges lie at the same distances
    known = set[tuple[object, ...]]()
    for place, start in enumerate(starts):
        while starts[first] + reach <= start:
            first += 1
        near = (*gaps[first : place + 1], *kinds[first : place + 1])
        if near in known:
            continue
        known.add(near)
        total = np.zeros(int(min(gaps[place], reach)), dtype=object)
        for before in starts[first : place + 1]:
            for numerators in placed[before]:
                own = numerators[start - before :][: total.size]
                total[: own.size] += own
        most = int(np.argmax(total))
        cost = WindowCost(Fraction(int(total[most]), denominator), start + most)
        worst = max(worst, cost, key=lambda one: one.epsilon)
    return worst


def charged_to_windows(spends: Sequence[Spend], window_length: int, starts: range) -> list[Fraction]:
    """Return the loss of each window that begins at one of `starts`, running indices: Lemma 1."""
    if not spends:
        return [Fraction(0)] * len(starts)
    charged = _charge(spends, window_length)
    first, stop = charged.first_start, charged.first_start + charged.numerators.size
    return [
        Fraction(int(charged.numerators[start - first]) if first <= start < stop else 0, charged.denominator)
        for start in starts
    ]


class _Charged(NamedTuple):
    """What every window is charged: numerators[i] belongs to the window that begins at first_start + i."""

    first_start: int
    numerators: NDArray[np.object_]
    denominator: int


def _charge(spends: Sequence[Spend], window_length: int) -> _Charged:
    """Add up what each spend charges the windows that touch it."""
    check_currency(spends)
    lead = window_length - 1
    first = min(spend.first_step for spend in spends) - lead
    end = max(spend.steps.stop for spend in spends)
    counted = [spend.charged(window_length) for spend in spends]
    denominator = math.lcm(*{price.denominator for _, price in counted})
    numerators = np.zeros(end - first, dtype=object)
    for spend, (units, price) in zip(spends, counted, strict=True):
        place = spend.first_step - lead - first
        numerators[place : place + units.size] += units.astype(object) * int(price * denominator)
    return _Charged(first, numerators, denominator)


# A spend under another privacy guarantee than its own: group privacy between neighbours.


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


# Exact composition of known draws at a delta, by dp_accounting's privacy loss distributions (Lemma 14).

LARGEST_SHIFT = 10_000
FINEST, COARSEST = 1e-6, 1e-3
LARGEST_LOSS = 600
"""Of one draw. A float holds no e^epsilon beyond some 700; then nothing is gained on the plain sum either."""
KEPT = 1e-3  # of delta, for what floats round: the library's transforms err by about 1e-15, which is far less

Draw = tuple[int, Fraction]
"""By how many units one customer moves an answer at most, and the scale of its noise in units."""

Compose = Callable[[frozenset[tuple[Draw, int]], frozenset[tuple[Fraction, int]], float], float]
"""`composed`, or what remembers its results."""


@lru_cache(maxsize=64)
def composed(
    draws: frozenset[tuple[Draw, int]], pure: frozenset[tuple[Fraction, int]], delta: float
) -> float:
    """Return an epsilon at delta of these counted draws and pure epsilons, infinity if beyond a float."""
    from dp_accounting.pld import common  # 1 s: only where it is needed
    from dp_accounting.pld import privacy_loss_distribution as library

    counts = [(float(shift / scale), count) for (shift, scale), count in draws]
    counts += [(float(epsilon), count) for epsilon, count in pure]
    if not any(count for _, count in counts):
        return 0.0
    if max(epsilon for epsilon, _ in counts) > LARGEST_LOSS:
        return inf
    finest = max(min(epsilon for epsilon, _ in counts) / 20, sum(e * n for e, n in counts) / 10**6, FINEST)
    given: dict[str, Any] = {"value_discretization_interval": min(finest, COARSEST)}
    known = [(_draw_loss(library, shift, scale, given), count) for (shift, scale), count in draws]
    for epsilon, count in pure:
        alone = common.DifferentialPrivacyParameters(float(epsilon), 0.0)
        known.append((library.from_privacy_parameters(alone, **given), count))
    # where the sum is beyond a float: infinity, and the plain sum is less
    with np.errstate(all="ignore"):
        whole = library.identity(**given)
        for one, count in known:
            whole = whole.compose(one.self_compose(count))
        return float(whole.get_epsilon_for_delta(delta * (1 - KEPT)))


def _draw_loss(library: Any, shift: int, scale: Fraction, given: dict[str, Any]) -> Any:
    """Return the privacy loss of discrete Laplace noise, never less (Lemma 14)."""
    if shift <= LARGEST_SHIFT:
        return library.from_discrete_laplace_mechanism(
            float(1 / scale), sensitivity=shift, use_connect_dots=True, **given
        )
    # the library would list every integer: continuous noise and two units more lose no less
    return library.from_laplace_mechanism(1.0, sensitivity=float((shift + 2) / scale), **given)

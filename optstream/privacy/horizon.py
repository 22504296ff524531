"""The loss of one customer over a span longer than a window, by privacy loss distributions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, groupby, zip_longest
from math import ceil
from typing import Any

from optstream.errors import ParameterError
from optstream.privacy.accountant import Compose, Draw, composed
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.spends import (
    ORDER_DEFECT,
    CappedSpend,
    JointSpend,
    OrderSpend,
    PeriodSpend,
    Spend,
    StepSpend,
    check_currency,
    merged,
)
from optstream.privacy.zero_concentrated import epsilon_of

EACH_STEP = ("samples", "perturber")
"""Stages that draw fresh noise for each step. Of all others, steps in a row may share a draw."""
NOT_FRESH = ("grouper",)
"""Stages whose noise serves several steps, across periods: their charges are added up."""
ADAPTIVE = ("distance", "publications")  # stages whose measurements or price depend on earlier outputs
LEAST_DELTA, LARGEST_DELTA = Fraction(1, 10**10), Fraction(1, 10)


@dataclass(frozen=True)
class HorizonLoss:
    """The loss (epsilon, delta) for all readings of one customer in a span; epsilon is rounded up. plain: the
    sum of all charges, or of all parts if that is less: epsilon at delta 0, or rho. composed: how, "draws" or
    "windows" (Lemma 14), "plain" where neither gains anything, or "rho", converted at delta (Lemma 19)."""

    epsilon: float
    delta: Fraction
    plain: Fraction
    composed: str


@dataclass
class _Parts:
    draws: Counter[Draw] = field(default_factory=Counter)
    pure: Counter[Fraction] = field(default_factory=Counter)
    added: Fraction = Fraction(0)
    plain: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    adaptive: bool = False


def loss_over(
    spends: Iterable[Spend],
    delta: Fraction,
    *,
    adaptive: bool,
    window: tuple[int, Fraction] | None,
    compose: Compose = composed,
) -> HorizonLoss:
    """Return the least bound that holds on the loss of one customer's readings at these steps (Lemma 14).

    spends: all that was drawn there. adaptive: whether earlier outputs chose the measurements or their noise;
    then only `window` holds: steps of a window, and its largest loss; None where nothing bounds it.
    """
    known = list(spends)
    check_currency(known)
    parts = _parts_of(known)
    parts.adaptive |= adaptive
    whole = None
    if window is not None:
        each = windows_of_parts((spend.steps for spend in known), window[0])
        whole = Counter(n_windows * window[1] for n_windows in each)
    return _least(parts, delta, whole, compose)


def losses_of_days(
    plans: Sequence[Iterable[Spend]],
    spans: Iterable[int],
    delta: Fraction,
    *,
    window: tuple[int, Fraction] | None,
) -> Iterator[HorizonLoss]:
    """Yield for each span a bound on the loss over any run of that many days, one plan a day (Lemma 14)."""
    check_currency(spend for plan in plans for spend in plan)
    days = [_parts_of(plan) for plan in plans]
    adaptive = any(day.adaptive for day in days)
    # a draw moved by less, or of a smaller epsilon, loses no more: so count those of at least so much
    of_scales = {
        scale: [Counter({shift: n for (shift, own), n in day.draws.items() if own == scale}) for day in days]
        for scale in {scale for day in days for _, scale in day.draws}
    }
    for n_days in spans:
        if not 0 < n_days <= len(plans):
            raise ParameterError(
                f"n_days must be in 1 .. {len(plans)}, the days that are planned; got {n_days}"
            )
        draws = Counter[Draw]()
        for scale, of_scale in of_scales.items():
            draws.update({(shift, scale): n for shift, n in _most_of_each(of_scale, n_days)})
        pure = Counter(dict(_most_of_each([day.pure for day in days], n_days)))
        added, plain, rho = (
            _most([getattr(day, name) for day in days], n_days) for name in ("added", "plain", "rho")
        )
        whole = None if window is None else _most_windows(plans, n_days, *window)
        yield _least(_Parts(draws, pure, added, plain, rho, adaptive), delta, whole, composed)


def _most_windows(
    plans: Sequence[Iterable[Spend]], n_days: int, window_length: int, epsilon: Fraction
) -> Counter[Fraction]:
    """Return, for each k, the k-th largest loss of the whole windows in any `n_days` days."""
    days = [day for plan in plans for day in merged((spend.steps for spend in plan), lambda *_: True)]
    spans = (windows_of_parts(days[first : first + n_days], window_length) for first in range(len(days)))
    rows = zip_longest(*(sorted(span, reverse=True) for span in spans), fillvalue=0)
    return Counter(max(row) * epsilon for row in rows)


def _most_of_each(days: Sequence[Counter[Any]], n_days: int) -> Iterator[tuple[Any, int]]:
    """Yield how many of each size, such that the k-th largest is at least that of any span, for each k."""
    larger = 0
    for size in sorted({size for day in days for size in day}, reverse=True):
        at_least = _most([sum(n for own, n in day.items() if own >= size) for day in days], n_days)
        if at_least > larger:
            yield size, at_least - larger
        larger = at_least


def _most(amounts: Sequence[Any], n_days: int) -> Any:
    sums = list(accumulate(amounts, initial=0 * amounts[0]))
    return max(stop - start for start, stop in zip(sums, sums[n_days:], strict=False))


def _least(parts: _Parts, delta: Fraction, whole: Counter[Fraction] | None, compose: Compose) -> HorizonLoss:
    """Return the least of the bounds that hold for these parts, whose loss as whole windows may be known."""
    if not LEAST_DELTA <= delta <= LARGEST_DELTA:
        raise ParameterError(f"delta must be a number in [1e-10, 0.1]; got {delta}")
    if parts.rho:
        # whole windows say less: the move of a sum over k of them is squared (Lemma 19)
        return HorizonLoss(round_up_to_float(epsilon_of(parts.rho, delta)), delta, parts.rho, "rho")
    plain = parts.plain if whole is None else min(parts.plain, sum(whole.elements(), Fraction(0)))
    bounds = [(float(plain), "plain")]
    if not parts.adaptive:
        found = compose(frozenset(parts.draws.items()), frozenset(parts.pure.items()), float(delta))
        bounds.append((found + float(parts.added), "draws"))
    if whole is not None and not parts.added:
        bounds.append((compose(frozenset(), frozenset(whole.items()), float(delta)), "windows"))
    least, how = min(bounds, key=lambda bound: bound[0])
    return HorizonLoss(least, delta, plain, how)


def windows_of_parts(spent: Iterable[range], window_length: int) -> list[int]:
    """Return, in order of time, how many windows each part of a span takes: one period or, where a window
    holds them, several in a row, so that no part shares noise with another (Lemma 14)."""
    periods = merged(spent, lambda before, own: own.start < before.stop)
    parts = merged(periods, lambda before, own: own.stop - before.start <= window_length)
    return [-(-len(part) // window_length) for part in parts]


def _parts_of(spends: Iterable[Spend]) -> _Parts:
    """Sort the draws of these spends, those alike but for their first step once."""
    alike = Counter(replace(one, first_step=0) if isinstance(one, StepSpend) else one for one in spends)
    parts = _Parts()
    for spend, n_alike in alike.items():
        total = n_alike * spend.whole_charge
        if spend.currency == "rho":
            parts.rho += total
            continue
        parts.plain += total
        parts.adaptive |= isinstance(spend, CappedSpend) or (
            isinstance(spend, StepSpend) and spend.stage in ADAPTIVE
        )
        match spend:
            case OrderSpend() if spend.parts:
                # distinguished no better than a draw for each order and window (Lemma 17a)
                n_draws = n_alike * spend.orders * -(-spend.n_steps // spend.window_length)
                parts.draws[spend.longest * spend.moved, spend.scale] += n_draws
                parts.added += n_alike * spend.orders * ORDER_DEFECT
            case StepSpend() if spend.stage in NOT_FRESH:
                parts.added += total
            case StepSpend():
                for weight in _shared(spend):
                    parts.draws[ceil(weight * spend.moved), spend.scale] += n_alike
            case PeriodSpend():
                parts.pure[spend.whole_charge] += n_alike
            case JointSpend():
                # a group is distinguished no better than one draw of its scale (Lemma 17)
                for n_steps in spend.largest_parts:
                    parts.draws[n_steps * spend.moved, spend.scale] += n_alike
    return parts


def _shared(spend: StepSpend) -> Iterator[int | Fraction]:
    """Yield the weight of each draw: of a step, or of all steps in a row, for they may share one."""
    weights: Sequence[int | Fraction] = spend.weights
    if spend.stage in EACH_STEP:
        yield from (weight for weight in weights if weight)
    else:
        yield from (sum(row) for measured, row in groupby(weights, key=bool) if measured)

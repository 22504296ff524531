"""What one customer loses over a span longer than a window: privacy loss distributions of what was drawn."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, groupby
from math import ceil
from typing import Any

from optstream.errors import ParameterError
from optstream.privacy.composition import Compose, Draw, composed
from optstream.privacy.spends import CappedSpend, PeriodSpend, Spend, StepSpend

EACH_STEP = ("samples", "perturber")
"""Stages that draw fresh noise for each step. Of all others, steps in a row may share a draw."""
NOT_FRESH = ("grouper",)
"""Stages whose noise serves several steps, across periods: their charges are added up."""
ADAPTIVE = ("distance", "publications")
"""Stages that are asked, or pay, by what was published before."""
LEAST_DELTA, LARGEST_DELTA = Fraction(1, 10**10), Fraction(1, 10)


@dataclass(frozen=True)
class HorizonLoss:
    """(epsilon, delta) for all readings of one customer in a span.

    plain: the sum of all charges, or of all windows if that is less, at delta 0. epsilon: at most that, at
    this delta, rounded up.
    composed: how, "draws" or "windows" (Lemma 14), or "plain" where neither holds or gains anything.
    """

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
    adaptive: bool = False


def loss_over(
    spends: Iterable[Spend],
    delta: Fraction,
    *,
    adaptive: bool,
    windows: tuple[int, Fraction] | None,
    compose: Compose = composed,
) -> HorizonLoss:
    """Return what all readings of one customer at the steps of these spends lose together (Lemma 14).

    spends: all that was drawn there, of whatever stream and level. adaptive: whether what was measured there,
    or its noise, was chosen by what had been released before; then only `windows` holds. windows: into how
    many windows the span was cut and what each loses at most, fixed in advance; None where nothing says so.
    Costs no privacy. Raises ParameterError for a delta outside [1e-10, 1/10].
    """
    parts = _parts_of(spends)
    parts.adaptive |= adaptive
    return _least(parts, delta, windows, compose)


def loss_of_days(
    plans: Sequence[Iterable[Spend]],
    n_days: int,
    delta: Fraction,
    *,
    windows: tuple[int, Fraction] | None,
) -> HorizonLoss:
    """Return a bound on what any `n_days` days in a row of these lose, wherever they begin (Lemma 14).

    plans: what is drawn on each day, rising without a gap, at least `n_days`. windows: as for `loss_over`, of
    the longest such span. Costs no privacy. Raises ParameterError for fewer days, or as `loss_over`.
    """
    if not 0 < n_days <= len(plans):
        raise ParameterError(f"n_days must be in 1 .. {len(plans)}, the days that are planned; got {n_days}")
    days = [_parts_of(plan) for plan in plans]
    # a draw moved by less, or of a smaller epsilon, loses no more: so count those of at least so much
    draws, pure = Counter[Draw](), Counter[Fraction]()
    for scale in {scale for day in days for _, scale in day.draws}:
        of_scale = [
            Counter({shift: n for (shift, own), n in day.draws.items() if own == scale}) for day in days
        ]
        draws.update({(shift, scale): n for shift, n in _most_of_each(of_scale, n_days)})
    pure.update(dict(_most_of_each([day.pure for day in days], n_days)))
    added = _most([day.added for day in days], n_days)
    plain = _most([day.plain for day in days], n_days)
    whole = _Parts(draws, pure, added, plain, any(day.adaptive for day in days))
    return _least(whole, delta, windows, composed)


def _most_of_each(days: Sequence[Counter[Any]], n_days: int) -> Iterator[tuple[Any, int]]:
    """How many of each size, such that the k-th largest is at least that of any span, for each k."""
    larger = 0
    for size in sorted({size for day in days for size in day}, reverse=True):
        at_least = _most([sum(n for own, n in day.items() if own >= size) for day in days], n_days)
        if at_least > larger:
            yield size, at_least - larger
        larger = at_least


def _most(amounts: Sequence[Any], n_days: int) -> Any:
    """The largest sum of `n_days` amounts in a row."""
    sums = list(accumulate(amounts, initial=0 * amounts[0]))
    return max(stop - start for start, stop in zip(sums, sums[n_days:], strict=False))


def _least(
    parts: _Parts, delta: Fraction, windows: tuple[int, Fraction] | None, compose: Compose
) -> HorizonLoss:
    """The least of the bounds that hold for these parts."""
    if not LEAST_DELTA <= delta <= LARGEST_DELTA:
        raise ParameterError(f"delta must be a number in [1e-10, 0.1]; got {delta}")
    plain = parts.plain if windows is None else min(parts.plain, windows[0] * windows[1])
    bounds = [(float(plain), "plain")]
    if not parts.adaptive:
        found = compose(frozenset(parts.draws.items()), frozenset(parts.pure.items()), float(delta))
        bounds.append((found + float(parts.added), "draws"))
    if windows is not None:
        count, epsilon = windows
        bounds.append((compose(frozenset(), frozenset([(epsilon, count)]), float(delta)), "windows"))
    least, how = min(bounds, key=lambda bound: bound[0])
    return HorizonLoss(least, delta, plain, how)


def _parts_of(spends: Iterable[Spend]) -> _Parts:
    parts = _Parts()
    for spend in spends:
        parts.adaptive |= _add(parts, spend)
    return parts


def _add(parts: _Parts, spend: Spend) -> bool:
    """Sort one spend's draws; whether it shows that what was measured was chosen by what was released."""
    match spend:
        case StepSpend():
            parts.plain += (total := sum(spend.weights) * spend.unit_charge)
            if spend.stage in NOT_FRESH:
                parts.added += total
            else:
                unit = spend.leaves_changed * spend.alpha_units
                parts.draws.update((ceil(weight * unit), spend.scale) for weight in _shared(spend))
            return spend.stage in ADAPTIVE
        case PeriodSpend():
            parts.plain += spend.charges[-1]
            parts.pure[spend.charges[-1]] += 1
            return False
        case CappedSpend():
            parts.plain += spend.n_steps * spend.unit_charge
            return True
    raise ParameterError(f"the loss of a {type(spend).__name__} over a span is not known")


def _shared(spend: StepSpend) -> Iterator[int | Fraction]:
    """The weight of each draw: of a step, or of all steps in a row, for they may share one."""
    weights: Sequence[int | Fraction] = spend.weights
    if spend.stage in EACH_STEP:
        yield from (weight for weight in weights if weight)
    else:
        yield from (sum(row) for measured, row in groupby(weights, key=bool) if measured)

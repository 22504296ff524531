"""What one customer loses over a span longer than a window: privacy loss distributions of what was drawn."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from math import ceil, inf
from typing import Any

import numpy as np

from optstream.errors import ParameterError
from optstream.privacy.spends import CappedSpend, PeriodSpend, Spend, StepSpend

EACH_STEP = ("samples", "perturber")
"""Stages that draw fresh noise for each step. Of all others, steps in a row may share a draw."""
NOT_FRESH = ("grouper",)
"""Stages whose noise serves several steps, across periods: their charges are added up."""
ADAPTIVE = ("distance", "publications")
"""Stages that are asked, or pay, by what was published before."""
LEAST_DELTA, LARGEST_DELTA = Fraction(1, 10**10), Fraction(1, 10)
LARGEST_SHIFT = 10_000
FINEST, COARSEST = 1e-6, 1e-3
LARGEST_LOSS = 600
"""Of one draw. A float holds no e^epsilon beyond some 700; then nothing is gained on the plain sum either."""
KEPT = 1e-3
"""Of delta, for what floats round: the library's transforms err by about 1e-15, which is far less."""

Draw = tuple[int, Fraction]
"""By how many units one customer moves an answer at most, and the scale of its noise in units."""


@dataclass(frozen=True)
class HorizonLoss:
    """(epsilon, delta) for all readings of one customer in a span.

    plain: the sum of all charges, or of all parts if that is less, at delta 0. epsilon: at most that, at
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


def loss_over(
    spends: Iterable[Spend], delta: Fraction, *, adaptive: bool, window: tuple[int, Fraction] | None
) -> HorizonLoss:
    """Return what all readings of one customer at the steps of these spends lose together (Lemma 14).

    spends: all that was drawn there, of whatever stream and level. adaptive: whether what was measured there,
    or its noise, was chosen by what had been released before; then only `window` holds. window: how many
    steps a window has and what each loses at most, wherever it lies; None where nothing says so.
    Costs no privacy. Raises ParameterError for a delta outside [1e-10, 1/10].
    """
    if not LEAST_DELTA <= delta <= LARGEST_DELTA:
        raise ParameterError(f"delta must be a number in [1e-10, 0.1]; got {delta}")
    parts, known = _Parts(), list(spends)
    for spend in known:
        adaptive |= _add(parts, spend)
    whole = Counter[Fraction]()
    if window is not None:
        length, epsilon = window
        whole.update(n_windows * epsilon for n_windows in windows_of_parts(known, length))
    plain = parts.plain if window is None else min(parts.plain, sum(whole.elements(), Fraction(0)))
    bounds = [(float(plain), "plain")]
    if not adaptive:
        composed = _composed(frozenset(parts.draws.items()), frozenset(parts.pure.items()), float(delta))
        bounds.append((composed + float(parts.added), "draws"))
    if window is not None and not parts.added:
        bounds.append((_composed(frozenset(), frozenset(whole.items()), float(delta)), "windows"))
    least, how = min(bounds, key=lambda bound: bound[0])
    return HorizonLoss(least, delta, plain, how)


def windows_of_parts(spends: Iterable[Spend], window_length: int) -> list[int]:
    """Return how many windows each part of a span takes, of parts that no measurement reaches across.

    Measurements of one period may share noise, so a part is one period or, where a window holds them,
    several in a row. What is shared between two parts would lose more than their composition says (Lemma 14).
    """
    periods, spent = list[range](), (range(one.first_step, one.first_step + one.n_steps) for one in spends)
    for own in sorted(spent, key=lambda steps: steps.start):
        if periods and own.start < periods[-1].stop:
            periods[-1] = range(periods[-1].start, max(own.stop, periods[-1].stop))
        else:
            periods.append(own)
    parts = list[range]()
    for own in periods:
        if parts and own.stop - parts[-1].start <= window_length:
            parts[-1] = range(parts[-1].start, own.stop)
        else:
            parts.append(own)
    return [ceil(Fraction(len(part), window_length)) for part in parts]


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


@lru_cache(maxsize=64)
def _composed(
    draws: frozenset[tuple[Draw, int]], pure: frozenset[tuple[Fraction, int]], delta: float
) -> float:
    """The epsilon of all of these at this delta, by dp_accounting's pessimistic distributions."""
    from dp_accounting.pld import common  # 1 s: only where it is asked for
    from dp_accounting.pld import privacy_loss_distribution as library

    counts = [(float(shift / scale), count) for (shift, scale), count in draws]
    counts += [(float(epsilon), count) for epsilon, count in pure]
    if not any(count for _, count in counts):
        return 0.0
    if max(epsilon for epsilon, _ in counts) > LARGEST_LOSS:
        return inf
    finest = max(min(epsilon for epsilon, _ in counts) / 20, sum(e * n for e, n in counts) / 10**6, FINEST)
    given: dict[str, Any] = {"value_discretization_interval": min(finest, COARSEST)}
    known = [(_of_draw(library, shift, scale, given), count) for (shift, scale), count in draws]
    for epsilon, count in pure:
        alone = common.DifferentialPrivacyParameters(float(epsilon), 0.0)
        known.append((library.from_privacy_parameters(alone, **given), count))
    # where the sum is beyond what a float holds: infinity, and the plain sum is less
    with np.errstate(all="ignore"):
        whole = library.identity(**given)
        for one, count in known:
            whole = whole.compose(one.self_compose(count))
        return float(whole.get_epsilon_for_delta(delta * (1 - KEPT)))


def _of_draw(library: Any, shift: int, scale: Fraction, given: dict[str, Any]) -> Any:
    """The privacy loss of discrete Laplace noise, never less (Lemma 14)."""
    if shift <= LARGEST_SHIFT:
        return library.from_discrete_laplace_mechanism(
            float(1 / scale), sensitivity=shift, use_connect_dots=True, **given
        )
    # the library would list every integer: continuous noise and two units more lose no less
    return library.from_laplace_mechanism(1.0, sensitivity=float((shift + 2) / scale), **given)

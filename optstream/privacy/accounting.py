"""The accountant: the worst loss of any window over a history of spends, exact."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np

from optstream.privacy.model import Windows
from optstream.privacy.spends import PeriodSpend, Spend, StepSpend


@dataclass(frozen=True)
class WindowCost:
    """The worst window: what it loses and the running index of its first step."""

    epsilon: Fraction
    first_step: int


NO_COST = WindowCost(Fraction(0), 0)


def worst_window(
    spends: Iterable[Spend],
    window_length: int,
    windows: Windows = "sliding",
    touching: range | None = None,
) -> WindowCost:
    """Return the window that loses most, over all windows of `window_length` steps.

    Lemma 1 (docs/privacy.md): the loss of a window is at most the sum of what the spends charge it, a
    step spend the charges of its steps inside the window, a period spend its charge for the number of its
    steps inside the window; a sum over a step's nodes is already in the charge, levels add up.

    windows="aligned" looks only at windows inside one period. `touching` limits the search to windows that
    contain at least one of these steps. Time O(steps + spends * (period + window)), integers over one
    common denominator, so nothing rounds.
    """
    known = list(spends)
    if not known:
        return NO_COST
    if windows == "aligned":
        ordered = sorted(known, key=_period)
        costs = [
            _worst_sliding(list(same), window_length, touching, inside)
            for inside, same in groupby(ordered, key=_period)
        ]
        return max(costs, key=lambda cost: cost.epsilon)
    return _worst_sliding(known, window_length, touching, None)


def _period(spend: Spend) -> tuple[int, int]:
    return spend.first_step, spend.n_steps


def _worst_sliding(
    spends: Sequence[Spend], window_length: int, touching: range | None, inside: tuple[int, int] | None
) -> WindowCost:
    """The worst window starting anywhere that matters; cut to one period when `inside` is given."""
    first = min(spend.first_step for spend in spends)
    end = max(spend.first_step + spend.n_steps for spend in spends)
    denominator = math.lcm(*{part for spend in spends for part in _denominators(spend)})

    # windows[i] starts at step first - (window_length - 1) + i and may hang over either end of the history
    lead = window_length - 1
    windows = np.zeros(end - first + lead, dtype=object)
    steps = np.zeros(end - first, dtype=object)
    for spend in spends:
        charges = _numerators(spend, denominator)
        offset = spend.first_step - first
        if isinstance(spend, StepSpend):
            steps[offset : offset + spend.n_steps] += charges
        elif isinstance(spend, PeriodSpend):
            overlap = _overlaps(spend.n_steps, window_length)
            windows[offset : offset + overlap.size] += charges[overlap]
        else:
            raise TypeError(f"the accountant cannot price a {type(spend).__name__}")
    padded = np.concatenate([np.zeros(lead + 1, dtype=object), steps, np.zeros(lead, dtype=object)])
    running = np.cumsum(padded)
    windows += running[window_length:] - running[:-window_length]

    starts = range(first - lead, end)
    if touching is not None:
        starts = range(max(starts.start, touching.start - lead), min(starts.stop, touching.stop))
    if inside is not None:
        # a window longer than its period is the whole period
        starts = range(
            max(starts.start, min(inside[0], end - window_length)),
            min(starts.stop, max(inside[0], end - window_length) + 1),
        )
    if not starts:
        return NO_COST
    chosen = windows[starts.start - first + lead : starts.stop - first + lead]
    worst = int(np.argmax(chosen))
    return WindowCost(Fraction(int(chosen[worst]), denominator), starts.start + worst)


def _denominators(spend: Spend) -> set[int]:
    if isinstance(spend, StepSpend):
        return {(weight * spend.unit_charge).denominator for weight in set(spend.weights)}
    return {charge.denominator for charge in spend.charges}


def _numerators(spend: Spend, denominator: int) -> np.ndarray:
    """The spend's charges as integers over the common denominator; each distinct one is computed once."""
    if isinstance(spend, StepSpend):
        priced = {weight: int(weight * spend.unit_charge * denominator) for weight in set(spend.weights)}
        return np.array([priced[weight] for weight in spend.weights], dtype=object)
    return np.array([int(charge * denominator) for charge in spend.charges], dtype=object)


def _overlaps(n_steps: int, window_length: int) -> np.ndarray:
    """Steps of a period in each window that touches it, first window first: 1, 2, …, 2, 1."""
    size = n_steps + window_length - 1
    rising = np.arange(1, size + 1)
    return np.minimum(np.minimum(rising, rising[::-1]), min(n_steps, window_length))

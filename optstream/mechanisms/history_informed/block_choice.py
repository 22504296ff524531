"""How many blocks, how long: those with the least error that the prior expects, from public figures alone."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.expected_error import expected_error
from optstream.estimation.gaussian_process.prior import COMPONENTS, Component, TemporalPrior
from optstream.measurement.drifting_blocks import DriftingBlocks, drift_for

Integers = NDArray[np.int64]
Figures = tuple[int, int, float]
"""Steps a window, steps a day, relative noise of a window's only block."""

COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 96)
LENGTHS = (1, 2, 4)
MOST_BLOCKS = 168
"""Of a candidate's past, so that a choice takes a second; more past changes no order."""
MOST_PAST_WINDOWS = 42
AS_GOOD = 0.01
"""Relative: expected errors that differ by less are one."""
BLIND_SHARE = 6
"""Where no public scale is known: a window over this many blocks."""


def choose_blocks(
    window_length: int,
    steps_per_day: int,
    relative_noise: float | None,
    *,
    n_blocks: int | None = None,
    length: int | None = None,
    components: tuple[Component, ...] = COMPONENTS,
) -> tuple[int, int]:
    """Return (m, L), one of them given or none.

    relative_noise: alpha * leaves / (epsilon * scale): the noise of the only block of a window, relative to a
    series' size; None where no scale is known. components: of the prior that expects. A function of public
    figures: costs no privacy.
    """
    if relative_noise is None:
        count = n_blocks or max(1, round(window_length / BLIND_SHARE))
        return count, length or max(1, min(2, window_length // count))
    return _best((window_length, steps_per_day, relative_noise), n_blocks, length, components)


@lru_cache(maxsize=256)
def _best(
    public: Figures, n_blocks: int | None, length: int | None, components: tuple[Component, ...]
) -> tuple[int, int]:
    return best_blocks(
        lambda count, long: _expected(public, (count, long), components), public[0], n_blocks, length
    )


def best_blocks(
    error: Callable[[int, int], float], window: int, n_blocks: int | None, length: int | None
) -> tuple[int, int]:
    """Return (m, L), one of them given or none, with the least `error(m, L)`. Costs what `error` costs."""
    counts = (n_blocks,) if n_blocks else (*(m for m in COUNTS if m < window), window)
    lengths = (length,) if length else LENGTHS

    def expected(count: int, long: int) -> float:
        return error(count, long) if count * long <= window else math.inf

    # few blocks are noisy and many see more: the error has one valley over their number
    low, high = 0, len(counts) - 1
    while low < high:
        middle = (low + high) // 2
        if expected(counts[middle], lengths[0]) <= expected(counts[middle + 1], lengths[0]):
            high = middle
        else:
            low = middle + 1
    # of lengths that are as good the longest: a mean shows what lies between points
    best = min(expected(counts[low], long) for long in lengths)
    fitting = [long for long in lengths if expected(counts[low], long) <= best * (1.0 + AS_GOOD)]
    return counts[low], fitting[-1] if fitting else lengths[0]


@lru_cache(maxsize=1024)
def _expected(public: Figures, blocks: tuple[int, int], components: tuple[Component, ...]) -> float:
    """Return the root mean square error of the last window's steps, after as much past as is looked at."""
    (window, slots, noise), (count, long) = public, blocks
    starts, lengths, period = looked_at(window, slots, count, long)
    variance = 2.0 * (noise * count) ** 2
    return expected_error(TemporalPrior.broad(slots, components), starts, lengths, variance, period)


def looked_at(window: int, slots: int, count: int, long: int) -> tuple[Integers, Integers, range]:
    """Return the blocks of as much past as is looked at, their starts and lengths, and the last window's
    steps.
    """
    rule = DriftingBlocks(window, count, long, drift_for(window, slots))
    windows = int(np.clip(MOST_BLOCKS // count, 2, MOST_PAST_WINDOWS))
    parts = rule.parts(0, windows * window)
    starts = np.array([part.start for part in parts], dtype=np.int64)
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    return starts, lengths, range((windows - 1) * window, windows * window)

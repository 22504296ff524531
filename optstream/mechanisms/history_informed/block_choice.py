"""How many blocks, how long: those with the least error that the prior expects, from public figures alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from optstream.estimation.gaussian_process.expected_error import PlannedBlocks, PlannedNoise, expected_error
from optstream.estimation.gaussian_process.prior import COMPONENTS, Component, TemporalPrior
from optstream.measurement.drifting_blocks import drifting_blocks
from optstream.mechanisms.history_informed.block_groups import BlockGroups, chosen_groups
from optstream.privacy.rules.noise_horizon import Horizon

Blocks = tuple[int, int]
"""How many blocks a window has, and their steps."""

COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 96)
LENGTHS = (1, 2, 4)
MOST_BLOCKS = 168
"""Of a candidate's past, so that a choice takes a second; more past changes no order."""
MOST_PAST_WINDOWS = 42
AS_GOOD = 0.01
"""Relative: expected errors that differ by less are one."""
COARSE = Fraction(10**9)
"""A scale of noise, in units, that no grid is too coarse for."""
BLIND_SHARE = 6
"""Where no public scale is known: a window over this many blocks."""


@dataclass(frozen=True)
class Figures:
    """What blocks and shares are chosen by: public figures, so that the choice costs no privacy.

    relative_noise: alpha * leaves / (epsilon * scale): the noise of the only block of a window, relative to a
    series' size; None where no scale is known. n_blocks, length: those that are given. components: of the
    prior that expects. count: that size, where readings are counts and vary around what is expected; else
    None. joint: for each level, root first, whether its noise may be joint; plain series are one level.
    period_lengths, group_size: of its groups; wanted: whether it is asked for, however much it errs. epsilon,
    horizon: of the stream, by which it is compared with Laplace noise (`noise_horizon`).
    """

    window_length: int
    steps_per_day: int
    relative_noise: float | None
    n_blocks: int | None = None
    length: int | None = None
    components: tuple[Component, ...] = COMPONENTS
    count: float | None = None
    joint: tuple[bool, ...] = ()
    period_lengths: tuple[int, ...] = ()
    group_size: Fraction | None = None
    wanted: bool = False
    epsilon: Fraction = Fraction(1)
    horizon: Horizon | None = None

    @property
    def prior(self) -> TemporalPrior:
        """The prior that expects, at its medians."""
        return TemporalPrior.broad(self.steps_per_day, self.components)

    def noise(self, count: int, share: float = 1.0) -> float:
        """Return the relative variance of a block's noise where a share of epsilon pays for so many."""
        assert self.relative_noise is not None
        return 2.0 * (self.relative_noise * count / share) ** 2

    def groups(self, count: int, long: int, shares: Sequence[float] = (1.0,)) -> list[BlockGroups | None]:
        """Return each level's groups of joint noise of such blocks; None where it may have none, or Laplace
        noise is expected to err less.

        shares: of epsilon, one for each level. As the mechanism chooses them, but for scales that are small
        beside the grid.
        """
        if not any(self.joint):
            return [None] * len(shares)
        window = self.window_length
        blocks = drifting_blocks(window, count, long, self.steps_per_day)
        found = chosen_groups(blocks, self.period_lengths, COARSE, self.group_size)

        def is_joint(level: int, share: float) -> bool:
            if found is None or not share or level >= len(self.joint) or not self.joint[level]:
                return False
            return self.wanted or found.errs_less(self.epsilon * Fraction(share), self.horizon)

        return [found if is_joint(level, share) else None for level, share in enumerate(shares)]

    def noises(self, blocks: Blocks, shares: Sequence[float]) -> list[PlannedNoise | None]:
        """Return the noise of the mean of a block at each level, with so much of epsilon; None without."""
        assert self.relative_noise is not None
        chosen = self.groups(*blocks, shares)
        # what is not measured for lack of a whole block is as so much more noise, at every level
        more = math.sqrt(next((groups.left_out for groups in chosen if groups is not None), 1.0))
        found: list[PlannedNoise | None] = []
        for groups, share in zip(chosen, shares, strict=True):
            charges = blocks[0] if groups is None else Fraction(groups.worst, blocks[1])
            sizes = ((1, 1.0),) if groups is None else groups.shares_of_sizes
            scale = float(self.relative_noise * charges / share) * more if share else math.inf
            found.append(PlannedNoise(scale, sizes) if share else None)
        return found


@lru_cache(maxsize=256)
def choose_blocks(public: Figures) -> Blocks:
    """Return (m, L), what is given of them as it is. Costs no privacy."""
    if public.relative_noise is None:
        count = public.n_blocks or max(1, round(public.window_length / BLIND_SHARE))
        return count, public.length or max(1, min(2, public.window_length // count))
    return best_blocks(partial(_expected, public), public)


def best_blocks(error: Callable[[int, int], float], public: Figures) -> Blocks:
    """Return (m, L) with the least `error(m, L)`, what is given as it is. Costs what `error` costs."""
    window = public.window_length
    counts = (public.n_blocks,) if public.n_blocks else (*(m for m in COUNTS if m < window), window)
    lengths = (public.length,) if public.length else LENGTHS

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
def _expected(public: Figures, count: int, long: int) -> float:
    """Return the root mean square error of the last window's steps, after as much past as is looked at."""
    (noise,) = public.noises((count, long), (1.0,))
    return expected_error(planned_blocks(public, count, long), noise)


def planned_blocks(public: Figures, count: int, long: int) -> PlannedBlocks:
    """Return the blocks of as much past as is looked at, judged by the last window's steps."""
    return _planned_blocks(public.window_length, public.steps_per_day, public.components, count, long)


@lru_cache(maxsize=32)
def _planned_blocks(
    window: int, steps_per_day: int, components: tuple[Component, ...], count: int, long: int
) -> PlannedBlocks:
    rule = drifting_blocks(window, count, long, steps_per_day)
    windows = int(np.clip(MOST_BLOCKS // count, 2, MOST_PAST_WINDOWS))
    parts = rule.parts(0, windows * window)
    starts = np.array([part.start for part in parts], dtype=np.int64)
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    period = range((windows - 1) * window, windows * window)
    return PlannedBlocks.of(TemporalPrior.broad(steps_per_day, components), starts, lengths, period)

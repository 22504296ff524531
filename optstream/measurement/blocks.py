"""Measurements of sums over blocks of consecutive steps of plain series."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from optstream.measurement.ordered import Ordered, OrderTerms
from optstream.measurement.sums import LinearSpend, answer_variance, check_price, linear_noise, measured_of
from optstream.noise import NoiseSource
from optstream.privacy import OrderSpend
from optstream.privacy.exact import whole
from optstream.stream import BlockSums, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period
from optstream.stream.public_days import DAYS_OF_A_WEEK

BLOCKS = BlockSums.stage


def measure_blocks(
    period: PrivatePeriod,
    parts: Sequence[range],
    spend: LinearSpend,
    noise: NoiseSource,
    ordered: Ordered | None = None,
) -> Measured:
    """Measure the sum of each part, disjoint and rising, at every series, with the spend's own noise. A spend
    that prices another query raises ParameterError before any draw. Privacy: Lemma 3 (linear queries); Lemma
    16b (noise of a whole stream) for an order spend; Lemma 20 (Gaussian noise) for a Gaussian one, in rho."""
    check_price(spend, parts, period.n_leaves, period.first_step, period.n_steps)
    units = open_private_period(period)
    exact = np.zeros((len(units), len(parts)), dtype=np.int64)
    for column, part in enumerate(parts):
        exact[:, column] = units[:, part.start : part.stop].sum(axis=1)
    variances = np.full((len(units), 1), answer_variance(spend))
    choices: dict[str, Any] = {"blocks": [[part.start, part.stop] for part in parts]}
    if isinstance(spend, OrderSpend):
        choices["like_group"] = OrderTerms(spend.n_blocks, spend.longest).like_group
    noisy = exact + linear_noise(spend, exact.shape, noise, ordered)
    return measured_of(period, noise, (spend,), answers=BlockSums((noisy,), (variances,)), choices=choices)


# Which blocks of steps are summed and measured: a public rule that drifts over the times of day.

PASSING_WINDOWS = 8  # periods in which blocks drift to the start of the next ones


@dataclass(frozen=True)
class DriftingBlocks:
    """`n_blocks` blocks of `length` consecutive steps in any window, at other times of day from day to day.
    Block j, any integer, begins at running step floor(j * (w + drift) / n_blocks): no window of w steps
    covers more than n_blocks * length steps of blocks (docs/privacy.md, Lemma 13)."""

    window_length: int
    n_blocks: int
    length: int
    drift: int = 0

    def __post_init__(self) -> None:
        window = self.window_length
        whole(self.n_blocks, "n_blocks of DriftingBlocks", 1, window)
        whole(self.drift, "drift of DriftingBlocks", 0, window)
        whole(self.length, "length of DriftingBlocks", 1, window // self.n_blocks)

    @property
    def cycle(self) -> int:
        """The number of steps after which the blocks repeat themselves. Privacy: none; a public rule."""
        return self.window_length + self.drift

    def parts(self, first_step: int, n_steps: int) -> tuple[range, ...]:
        """Return the parts of blocks in a period, rising, counted from its first step; a block that a border
        cuts is two parts. Privacy: none; a public rule, and any window meets n_blocks * length of its steps
        (Lemma 13)."""
        number = -(-(first_step - self.length) * self.n_blocks // self.cycle)
        found = []
        while (start := number * self.cycle // self.n_blocks - first_step) < n_steps:
            part = range(max(start, 0), min(start + self.length, n_steps))
            if part:
                found.append(part)
            number += 1
        return tuple(found)


def drifting_blocks(window_length: int, n_blocks: int, length: int, steps_per_day: int) -> DriftingBlocks:
    """Return the blocks with the least drift, up to w, that reaches every time of a day or week in about
    `PASSING_WINDOWS` windows. The week counts where a day is one step. The drift is 0 where none does, and
    where every step is a block. Privacy: none; a public rule."""
    least = round(min(window_length // n_blocks, steps_per_day) / PASSING_WINDOWS)
    times = steps_per_day if steps_per_day > 1 else DAYS_OF_A_WEEK
    # blocks that begin at each gcd-th time alone must overlap, or lie at each
    most_apart = max(min(length, times) - 1, 1)
    drifts = range(least, window_length + 1 if n_blocks < window_length else 0)
    drift = next((drift for drift in drifts if gcd(window_length + drift, times) <= most_apart), 0)
    return DriftingBlocks(window_length, n_blocks, length, drift)

"""From the blocks of the last weeks to every step of a period: sizes, prior, posterior."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.block_history import BlockHistory
from optstream.estimation.gaussian_tree import Seen, TreePosterior
from optstream.estimation.holding import UNKNOWN
from optstream.estimation.temporal_prior import Blocks, TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
SCALE_DOUBT = 0.5
"""How far, relative, a series may lie from the public scale that was given for it."""


def star(n_series: int) -> AggregationTree:
    """Series side by side, under a root that nobody measures."""
    return AggregationTree(("", *map(str, range(n_series))), (-1, *([0] * n_series)))


def step_blocks(steps: range, days: PublicDays) -> Blocks:
    """Single steps of one period, as what is asked for."""
    clock = days.clock(np.arange(steps.start, steps.stop))
    ones = np.ones(clock.size, dtype=np.int64)
    return Blocks(clock, ones, days.kinds(clock), np.ones(clock.size))


def seen_series(history: BlockHistory, days: PublicDays, scale: float | None) -> tuple[Seen, Floats]:
    """What was measured of plain series, and their prior means a step, (n_series,), in units.

    Blocks are weighed so that all have the noise of the latest one: `worth` is its scale over the block's,
    over the longest block's steps. A series' prior mean is that of its blocks, joined with the public scale
    where there is one; its size the root of their mean square, less the noise.
    """
    reference, longest = history.scales[-1], int(history.lengths.max())
    worth = reference / history.scales / longest
    values, steps = history.sums * worth, history.lengths * worth
    noise = 2.0 * (reference / longest) ** 2
    precision, pulled = float(steps @ steps) / noise, values @ steps / noise
    if scale is not None:
        precision, pulled = (
            precision + (SCALE_DOUBT * scale) ** -2,
            pulled + scale / (SCALE_DOUBT * scale) ** 2,
        )
    means = pulled / precision
    square = ((values**2).sum(axis=1) - steps.size * noise) / float(steps @ steps)
    sizes = np.sqrt(np.maximum(np.maximum(square, means**2), 1.0 / precision))
    clock = days.clock(history.starts)
    blocks = Blocks(clock, history.lengths, days.kinds(clock), worth)
    residuals = np.vstack([np.zeros(steps.size), values - means[:, None] * steps])
    noises = np.concatenate([[np.inf], np.full(len(means), noise)])
    return Seen(star(len(means)), blocks, residuals, noises, sizes), means


def fit_series(
    prior: TemporalPrior, history: BlockHistory, days: PublicDays, steps: range, scale: float | None
) -> tuple[Floats, Floats]:
    """Return posterior means and variances of every series at these steps, (n_series, n_steps), in units.

    Where nothing was ever measured: the public scale or 0, with `UNKNOWN` variance. Costs no privacy.
    """
    shape = (len(history.sums), len(steps))
    if not history.n_blocks:
        return np.full(shape, scale or 0.0), np.full(shape, UNKNOWN)
    seen, means = seen_series(history, days, scale)
    posterior, asked = TreePosterior(prior, seen), step_blocks(steps, days)
    return means[:, None] + posterior.means(asked)[1:], posterior.variances(asked)[1:]

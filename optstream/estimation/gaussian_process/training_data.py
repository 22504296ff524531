"""From the blocks of the last weeks to what is measured of each series, relative to its size."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.posterior import event_numbers
from optstream.estimation.gaussian_process.tree_posterior import NoiseGroups, Seen
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
SCALE_DOUBT = 0.5
"""How far, relative, a series may lie from the public scale that was given for it."""
LEAST_NOISE = 1e-10
"""Variance of the noise, relative to a size squared, below which it is taken for this: for the numerics."""


def star(n_series: int) -> AggregationTree:
    """Return a tree of series side by side, under a root that nobody measures."""
    return AggregationTree(("", *map(str, range(n_series))), (-1, *([0] * n_series)))


def step_blocks(steps: range, days: PublicDays, events: Iterable[int] = ()) -> Blocks:
    """Return single steps of one period, as what is asked for. events: days that were called so."""
    running = np.arange(steps.start, steps.stop)
    return run_blocks(running, np.ones_like(running), days, events)


def run_blocks(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], days: PublicDays, events: Iterable[int] = ()
) -> Blocks:
    """Return sums over so many steps from these on, each within a day, as what is asked for."""
    clock = days.clock(starts)
    kinds, numbers = days.kinds(clock), event_numbers(clock, events, days)
    return Blocks.at(clock, lengths, kinds=kinds, events=numbers)


def seen_series(
    history: BlockHistory,
    days: PublicDays,
    scale: float | None,
    events: Iterable[int] = (),
    weights: Floats | None = None,
) -> tuple[Seen, Floats]:
    """Return what was measured of plain series, and their prior means a step, (n_series,), in units.

    Blocks are weighed so that all have the noise of the latest one: `worth` is its scale over the block's,
    over the longest block's steps; or by `weights`, (n,), where other series are weighed so too: then all are
    taken to have the mean of their noise. A series' prior mean is that of its blocks, joined with the public
    scale where there is one; its size the root of their mean square, less the noise. events: days that were
    called so. Costs no privacy: noisy numbers only.
    """
    reference, longest = history.scales[-1], int(history.lengths.max())
    worth = reference / history.scales / longest
    noise = 2.0 * (reference / longest) ** 2
    if weights is not None:
        worth = weights / longest
        noise = float(np.mean(2.0 * (history.scales * worth) ** 2))
    values, steps = history.sums * worth, history.lengths * worth
    precision, pulled = float(steps @ steps) / noise, values @ steps / noise
    if scale is not None:
        doubt = (SCALE_DOUBT * scale) ** 2
        precision, pulled = precision + 1.0 / doubt, pulled + scale / doubt
    means = pulled / precision
    square = ((values**2).sum(axis=1) - steps.size * noise) / float(steps @ steps)
    sizes = np.sqrt(np.maximum(np.maximum(square, means**2), 1.0 / precision))
    clock = days.clock(history.starts)
    blocks = Blocks.at(
        clock,
        history.lengths,
        kinds=days.kinds(clock),
        events=event_numbers(clock, events, days),
        worth=worth,
    )
    residuals = np.vstack([np.zeros(steps.size), values - means[:, None] * steps])
    noises = np.maximum(noise, LEAST_NOISE * sizes**2)
    tree = star(len(means))
    groups = noise_groups(history, np.arange(len(tree.nodes)) > 0)
    return Seen(tree, blocks, residuals, np.concatenate([[np.inf], noises]), sizes, groups), means


def noise_groups(history: BlockHistory, nodes: NDArray[np.bool_]) -> NoiseGroups | None:
    """Return which blocks share joint noise at these nodes, (n_nodes,); None where none do."""
    if not (history.group_sizes > 1).any():
        return None
    return NoiseGroups(history.groups, np.where(nodes[:, None], history.group_sizes, 1))

"""From the blocks of every level to every node's series: one posterior over the whole tree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_covariance import AskedTimes
from optstream.estimation.gaussian_process.doubts.divided_days import DoubtOfDays
from optstream.estimation.gaussian_process.doubts.leaf_covariance import most_nodes
from optstream.estimation.gaussian_process.filter import MOST_FITTED, FilterState, latest
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.posterior import DoubtOfLeaves, Fitted, series_of
from optstream.estimation.gaussian_process.training_data import (
    noise_groups,
    run_blocks,
    seen_series,
    step_blocks,
)
from optstream.estimation.gaussian_process.tree_posterior import NoiseGroups, Seen
from optstream.estimation.holding import UNKNOWN
from optstream.estimation.many_leaves.groups import leaves_below
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
Doubt = DoubtOfLeaves | DoubtOfDays
"""How errors of leaves hang together."""
SAME = 1e-9
"""Relative: noise scales that differ by less are one."""
OTHER_PLAN = 1.7
"""By what factor levels' scales differ where they are of another plan; groups of joint noise beside Laplace
noise, whose sizes differ by a third, make less of a difference."""
Look = Callable[..., tuple[Seen, *tuple[Floats, ...]] | None]
"""What `seen_tree` is, or `counts.tree_sizes.seen_counts`: what was seen, then what is known of sizes."""


@dataclass(frozen=True, eq=False)
class TreeFit:
    """What the blocks of every level say of a period.

    Attributes:
        found: The posterior.
        means: (n_leaves,), prior means a step, in units.
        tree: Of all nodes.
        days: The public clock.
        events: Days that are called so, the period's included if they are.
    """

    found: Fitted
    means: Floats
    tree: AggregationTree
    days: PublicDays
    events: set[int]

    def series(self, steps: range, doubt: Doubt | None) -> tuple[Floats, Floats]:
        """Return posterior means and variances of every node at these steps, (n_nodes, n_steps), in units.

        Means add up over the tree. doubt: what `doubt` gave for these steps.
        """
        asked = step_blocks(steps, self.days, self.events)
        if isinstance(doubt, DoubtOfDays):
            moved, times = self.found.published_means(asked), np.eye(len(steps), doubt.doubt.asked.clock.size)
            many = doubt.every.groups
            every = leaves_below(self.tree) if many else self.tree.add_up(np.eye(len(self.means)))
            told = doubt.variances(every, times)
            variances = np.maximum(told, 0.0)  # below it by rounding alone
        else:
            moved, variances = series_of(self.found, asked)
        return self.tree.add_up(self.means[:, None]) + moved, variances

    def doubt(self, asked: AskedTimes, n_steps: int) -> Doubt | None:
        """Return the covariance of which `series` has the leaves' variances; of too many nodes, fewer beside
        a margin or of many steps, it is not worked out.

        asked: sums of steps. n_steps: of the period, the first of them. Where the period is a day, leaves
        divide it; but not a day of one step: its value is its mean, of which the factor of single values
        holds.
        """
        if len(self.tree.nodes) > most_nodes(self.tree, n_steps):
            return None
        blocks = run_blocks(asked.starts, asked.lengths, self.days, self.events)
        doubt = DoubtOfLeaves(self.found, blocks)
        return DoubtOfDays(doubt, n_steps) if 1 < self.days.steps_per_day < 2 * n_steps else doubt


def fit_tree(
    belief: FilterState,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    steps: range,
    scale: float | None,
) -> TreeFit | None:
    """Return what is known of these steps; None where nothing was ever measured.

    belief: what the tree learned; its history is not looked at. histories: {level: the blocks of its nodes};
    a level that is not there was not measured. Costs no privacy.
    """
    known = seen_tree(histories, tree, belief.days, scale, belief.events)
    if known is None:
        return None
    seen, means = known
    found, events = belief.answer(seen, steps)
    return TreeFit(found, means, tree, belief.days, events)


def nothing_measured(tree: AggregationTree, n_steps: int, scale: float | None) -> tuple[Floats, Floats]:
    """Return means and variances of every node where nothing was ever measured, as `FilterState.fitted`."""
    shape = (len(tree.leaves), n_steps)
    return tree.add_up(np.full(shape, scale or 0.0)), tree.add_up(np.full(shape, UNKNOWN))


def events_of_tree(
    belief: FilterState,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    steps: range,
    scale: float | None,
    look: Look,
) -> tuple[int, ...]:
    """Return the days that are called events when `fit_tree` is asked the same, theirs included; free.

    look: what is seen of the tree.
    """
    known = look(histories, tree, belief.days, scale, belief.events)
    return belief.events if known is None else tuple(sorted(belief.answer(known[0], steps)[1]))


def judged_tree(
    belief: FilterState,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    first_step: int,
    scale: float | None,
    look: Look,
) -> FilterState:
    """Return the state judged as `FilterState.judged` does, for a tree: whether the last day before this
    step's was an event. look: as `events_of_tree`.
    """
    recent = {level: latest(history, MOST_FITTED) for level, history in histories.items()}
    if not next(iter(recent.values())).n_blocks:
        return belief

    def seen(events: Iterable[int]) -> Seen | None:
        found = look(recent, tree, belief.days, scale, events)
        return found and found[0]

    return belief.judged_by(seen, next(iter(recent.values())), first_step)


def seen_tree(
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    days: PublicDays,
    scale: float | None,
    events: Iterable[int] = (),
) -> tuple[Seen, Floats] | None:
    """Return what was measured of a tree, and the leaves' prior means a step, (n_leaves,), in units.

    Only blocks that all measured levels have, with noise about in the proportions of the latest: others, of
    another plan, are left out. One weight of a block serves all levels. None where there are none. scale: the
    public size of a typical leaf.
    """
    common = common_blocks(histories)
    if not next(iter(common.values())).n_blocks:
        return None
    n_nodes, n_leaves = len(tree.nodes), len(tree.leaves)
    n_blocks = next(iter(common.values())).n_blocks
    values, noise = np.zeros((n_nodes, n_blocks)), np.full(n_nodes, np.inf)
    means, sizes = np.zeros(n_nodes), np.zeros(n_nodes)
    groups = None
    blocks, weights = None, _weights([history.scales for history in common.values()])
    for level, history in common.items():
        at = slice(tree.levels[level].start, tree.levels[level].stop)
        seen, own = seen_series(history, days, scale, events, weights)
        blocks = seen.blocks
        values[at] = history.sums * blocks.worth
        own_groups = noise_groups(history, np.isin(np.arange(n_nodes), np.arange(at.start, at.stop)))
        if own_groups is not None:
            sizes_of = own_groups.sizes if groups is None else np.maximum(groups.sizes, own_groups.sizes)
            groups = NoiseGroups(own_groups.numbers, sizes_of)
        noise[at], means[at], sizes[at] = seen.noise[1:], own, seen.sizes
    assert blocks is not None
    leaves = tree.leaf_indices
    of_nodes = tree.add_up(means[leaves].reshape(n_leaves, 1))
    residuals = values - of_nodes * (blocks.lengths * blocks.worth)
    return Seen(tree, blocks, residuals, noise, sizes[leaves], groups), means[leaves]


def common_blocks(histories: Mapping[int, BlockHistory]) -> dict[int, BlockHistory]:
    """Return each level's part of the blocks that all have, of the plan of the latest common one."""
    kept = dict(histories)
    keys = [dict.fromkeys(_keys(history)) for history in kept.values()]
    shared = [key for key in keys[0] if all(key in other for other in keys[1:])]
    kept = {level: _at(history, shared) for level, history in kept.items()}
    scales = np.array([history.scales for history in kept.values()])
    if not scales.size:
        return kept
    ratios = scales / scales[0]
    away = np.abs(np.log(ratios / ratios[:, -1:]))
    alike = np.all(away < np.log(OTHER_PLAN), axis=0)
    return {level: history.chosen(alike) for level, history in kept.items()}


def _weights(scales: Sequence[Floats]) -> Floats | None:
    """Return how blocks are weighed by the noise of all levels; None where each level says the same."""
    logs = np.log(np.array(scales))
    shared = logs.mean(axis=0)
    if np.all(np.ptp(logs - shared, axis=1) < SAME):
        return None
    return np.asarray(np.exp(shared[-1] - shared))


def _keys(history: BlockHistory) -> list[tuple[int, int]]:
    return list(zip(history.starts.tolist(), history.lengths.tolist(), strict=True))


def _at(history: BlockHistory, keys: list[tuple[int, int]]) -> BlockHistory:
    places = {key: place for place, key in enumerate(_keys(history))}
    order = np.array([places[key] for key in keys], dtype=np.int64)
    return history.chosen(order)

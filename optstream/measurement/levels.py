"""A tree's levels: each as a private period of its own, and their measurements as one."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from optstream.measurement.linear import check_leaves
from optstream.stream import AggregationTree, FeatureSums, Measured, PrivatePeriod, State
from optstream.stream.private_period import open_private_period


def level_period(period: PrivatePeriod, tree: AggregationTree, level: int) -> PrivatePeriod:
    """Return the nodes of one level, the root being level 0, (n_nodes of the level, n_steps), private as the
    leaves are. Raises ParameterError where the leaves do not fit.

    Privacy: Lemma 2 (sums of integers are exact): nothing is measured here; one customer's change moves the
    level's nodes by as much as the leaves, in all.
    """
    check_leaves(period, tree)
    nodes = tree.levels[level]
    totals = tree.add_up(open_private_period(period))[nodes.start : nodes.stop]
    return PrivatePeriod(totals, resolution=period.resolution, first_step=period.first_step)


def together(parts: Mapping[int, Measured], state: State | None, before: State | None) -> Measured:
    """Return the measurements of several levels as those of one period; spends name their level.

    Privacy: none; what was measured is noisy, and its spends are kept. The levels' own are its `parts`.
    state: what the whole hands to the next period; before: what it was handed, without raw entries.
    """
    levels = [
        replace(part, spends=tuple(replace(spend, level=level) for spend in part.spends))
        for level, part in parts.items()
    ]
    first = levels[0]
    empty = np.zeros((0, 0), dtype=np.int64)
    return Measured(
        n_steps=first.n_steps,
        first_step=first.first_step,
        positions=(),
        points=empty,
        answers=FeatureSums((), None),
        resolution=first.resolution,
        point_variances=None,
        spends=tuple(spend for part in levels for spend in part.spends),
        simulated=any(part.simulated for part in levels),
        state=state,
        before=before,
        parts=tuple(levels),
    )

"""From the measured steps to every step."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import UNKNOWN
from optstream.stream import AggregationTree, FeatureSums, Measured


def reconstruct(measured: Measured) -> NDArray[np.float64]:
    """Return the series that passes through each node's measured points.

    Linear between neighbouring points, held before the first and after the last. A node without any point
    spreads its finest feature evenly, and is 0 without features too. Values given with public measurements as
    their reconstruction are returned as they are.

    Source: OptStream, section 3.3.

    Args:
        measured: Of one period or a batch.

    Returns:
        (…, n_nodes, n_steps), in the unit of the readings.

    Raises:
        ParameterError: Where a node has no point and the answers are no feature sums.
    """
    if measured.interpolation is not None:
        return measured.interpolation
    points, seen = measured.point_values, seen_points(measured)
    series = np.zeros((*points.shape[:-1], measured.n_steps))
    # Nodes of a level share their points, so there are few patterns.
    for pattern in np.unique(seen, axis=0):
        nodes = np.flatnonzero((seen == pattern).all(axis=1))
        if pattern.any():
            positions = tuple(int(step) for step in np.array(measured.positions)[pattern])
            series[..., nodes, :] = points[..., nodes, :][..., pattern] @ interpolation_matrix(
                positions, measured.n_steps
            )
        elif measured.feature_sums:
            finest = max(measured.feature_sums, key=lambda sums: sums.shape[-1])[..., nodes, :]
            series[..., nodes, :] = finest.sum(axis=-1, keepdims=True) / measured.n_steps
    return series


def seen_points(measured: Measured) -> NDArray[np.bool_]:
    """Return at which positions each node was measured, (n_nodes, n_points)."""
    shape = measured.points.shape[-2:]
    if measured.point_variances is None:
        return np.ones(shape, dtype=bool)
    return np.broadcast_to(np.isfinite(measured.point_variances), shape)


@lru_cache(maxsize=256)
def interpolation_matrix(positions: tuple[int, ...], n_steps: int) -> NDArray[np.float64]:
    """Return the map from points to series, (n_points, n_steps): hat functions, flat at both ends."""
    rows = [np.interp(np.arange(n_steps), positions, unit) for unit in np.eye(len(positions))]
    matrix = np.array(rows)
    matrix.setflags(write=False)
    return matrix


# Leaves of which a draw measured nothing.


def with_unmeasured_leaves(measured: Measured, tree: AggregationTree) -> Measured:
    """Return the measurements with leaves that have none taken as 0 of `UNKNOWN` variance.

    A level whose windows were full has no point in a period; then its parents' estimates are shared evenly,
    and nothing stops the period from being published.
    """
    seen = np.array(seen_points(measured).any(axis=-1))
    for sums in measured.answers_of(FeatureSums).variances or ():
        seen |= np.isfinite(sums).any(axis=-1)
    bare = [int(leaf) for leaf in tree.leaf_indices if not seen[leaf]]
    if measured.point_variances is None or not bare:
        return measured
    variances = np.broadcast_to(measured.point_variances, measured.points.shape[-2:]).copy()
    variances[bare] = UNKNOWN
    return replace(measured, point_variances=variances)

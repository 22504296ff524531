"""The least-squares problem of a period: the series between points, its queries, and their weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.estimate import UNKNOWN
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured

Weights = Literal["variance", "paper"]

INTERPOLATION_WEIGHT = 0.2
"""Weight of an interpolated step relative to a measured one, mu of weights="variance". Not zero, because the
sums alone do not determine the steps between the points. 0.2 had (nearly) the least error of 0.005, 0.05,
0.2, 1 and 5 over epsilon 0.1 and 1 and alpha 1, 10 and 50 on every ninth day of the French load of 2014."""


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Minimise sum_(n,q) weights[n, q] * (rows[q] . x_n - targets[…, n, q])^2 over consistent x. rows:
    (n_queries, n_steps). targets: (…, n_nodes, n_queries). weights: (n_nodes, n_queries), 0 where not
    measured."""

    rows: NDArray[np.float64]
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]

    def separated(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return a factor of each node, (n_nodes, 1), and the map from any node's targets to its series, if
        weights are an outer product of nodes' and queries'; else None."""
        node, query = np.unravel_index(int(np.argmax(self.weights)), self.weights.shape)
        by_node = self.weights[:, query] / self.weights[node, query]
        by_query = self.weights[node]
        if not np.allclose(np.outer(by_node, by_query), self.weights, rtol=1e-9, atol=0.0):
            return None
        weighted = by_query[:, None] * self.rows
        return by_node[:, None], np.linalg.solve(self.rows.T @ weighted, weighted.T)


def least_squares(
    measured: Measured, tree: AggregationTree, features: Sequence[Feature], weights: str
) -> LeastSquares:
    """State the weighted least-squares problem for these measurements. weights="variance": by 1/variance,
    interpolated steps by `INTERPOLATION_WEIGHT` of a point's. weights="paper": the whole interpolated series
    by 1/n_steps, a feature's sums by 1/n_parts (OptStream, Algorithm 4). Leaves not determined raise
    ParameterError."""
    if weights not in get_args(Weights):
        raise ParameterError(f'weights must be "variance" or "paper"; got {weights!r}')
    _check_shapes(measured, tree, features)
    known = _any_seen(measured)
    known = known if known.any() else ~known  # whether a node was measured; the others are derived
    if not np.all(known[tree.leaf_indices]):
        raise ParameterError("every leaf must be measured: nothing else shows how its parent splits")
    n_steps, matrices = measured.n_steps, [feature.matrix for feature in features]
    rows = np.concatenate([np.eye(n_steps), *matrices])
    targets = targets_of(measured)
    if weights == "paper":
        parts = [n_steps] * n_steps + [len(matrix) for matrix in matrices for _ in matrix]
        return LeastSquares(rows, targets, np.outer(known, 1.0 / np.array(parts)))
    spread = measured.answers_of(FeatureSums).variances
    if measured.point_variances is None or spread is None:
        raise ParameterError(
            'weights="variance" needs the variances of the measurements; use "paper" without'
        )
    unit = float(measured.resolution) ** 2
    sums = [
        np.broadcast_to(1.0 / (variances * unit), (len(known), len(matrix)))
        for variances, matrix in zip(spread, matrices, strict=True)
    ]
    return LeastSquares(rows, targets, np.concatenate([_step_weights(measured, unit), *sums], axis=-1))


def targets_of(measured: Measured) -> NDArray[np.float64]:
    """Return the targets of steps, reconstructed between points, then of sums, (…, n_nodes, n_queries)."""
    series, steps = reconstruct(measured).copy(), list(measured.positions)
    series[..., steps] = np.where(seen_points(measured), measured.point_values, series[..., steps])
    return np.concatenate([series, *measured.feature_sums], axis=-1)


def _step_weights(measured: Measured, unit: float) -> NDArray[np.float64]:
    """Return 1/variance at measured steps, a small part of it in between, (n_nodes, n_steps)."""
    assert measured.point_variances is not None
    weight = np.broadcast_to(1.0 / (measured.point_variances * unit), measured.points.shape[-2:])
    seen = seen_points(measured)
    mean = weight.sum(axis=-1) / np.maximum(seen.sum(axis=-1), 1)
    spread = np.zeros_like(mean)
    sums = measured.answers_of(FeatureSums).variances
    if sums:
        spread = np.max([1.0 / (variances.mean(axis=-1) * unit) for variances in sums], axis=0)
    # A node without a point is spread from its sums: its weight is small next to theirs.
    small = INTERPOLATION_WEIGHT * np.where(seen.any(axis=-1), mean, spread)
    if not measured.positions and not sums:
        small = np.ones_like(mean)
    weights = np.repeat(small[:, None], measured.n_steps, axis=-1)
    weights[:, list(measured.positions)] = np.where(seen, weight, small[:, None])
    return weights


def _any_seen(measured: Measured) -> NDArray[np.bool_]:
    parts = [np.isfinite(one).any(axis=-1) for one in measured.answers_of(FeatureSums).variances or ()]
    return np.asarray(np.logical_or.reduce([seen_points(measured).any(axis=-1), *parts]))


def _check_shapes(measured: Measured, tree: AggregationTree, features: Sequence[Feature]) -> None:
    if measured.points.shape[-2] != len(tree.nodes):
        raise ParameterError(
            f"measurements must have {len(tree.nodes)} nodes (rows, in tree.nodes order); "
            f"got {measured.points.shape[-2]}"
        )
    measured_sums = measured.answers_of(FeatureSums).values
    if len(measured_sums) != len(features):
        raise ParameterError(
            f"measurements have {len(measured_sums)} features, but {len(features)} features were given"
        )
    for feature, sums in zip(features, measured_sums, strict=True):
        if feature.n_steps != measured.n_steps or sums.shape[-1] != feature.n_parts:
            raise ParameterError(
                f"feature {feature.name!r} has {feature.n_parts} parts over {feature.n_steps} steps; the "
                f"measurements have {sums.shape[-1]} parts over {measured.n_steps} steps"
            )


def reconstruct(measured: Measured) -> NDArray[np.float64]:
    """Return the series through each node's measured points, (…, n_nodes, n_steps), in the readings' unit.

    Linear between points, held before the first and after the last. A node without points spreads its finest
    feature evenly, and is 0 without features; other answers raise ParameterError. Given reconstructions are
    returned as they are. Source: OptStream, section 3.3.
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


def with_unmeasured_leaves(measured: Measured, tree: AggregationTree) -> Measured:
    """Return the measurements, with those of leaves without any taken as 0 of `UNKNOWN` variance."""
    bare = tree.leaf_indices[~_any_seen(measured)[tree.leaf_indices]]
    if measured.point_variances is None or not bare.size:
        return measured
    variances = np.broadcast_to(measured.point_variances, measured.points.shape[-2:]).copy()
    variances[bare] = UNKNOWN
    return replace(measured, point_variances=variances)

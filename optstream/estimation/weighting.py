"""The least-squares problem of a period: which linear functions were seen, and what each is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.reconstruction import reconstruct
from optstream.stream import AggregationTree, Feature, Measured

Weights = Literal["variance", "paper"]

INTERPOLATION_WEIGHT = 0.2
"""mu of weights="variance": what an interpolated step counts, relative to a measured step of its node.

Small, because interpolated steps are neither independent nor unbiased; not zero, because the sums alone
do not determine the steps between the points. 0.2 had the least or nearly the least error of 0.005, 0.05,
0.2, 1 and 5 over epsilon 0.1 and 1 and alpha 1, 10 and 50 on every ninth day of the French load of 2014.
"""


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Minimise sum_(n,q) weights[n, q] * (rows[q] . x_n - targets[…, n, q])^2 over consistent x.

    rows: (n_queries, n_steps). targets: (…, n_nodes, n_queries). weights: (n_nodes, n_queries), at least 0;
    0 where a node was not measured.
    """

    rows: NDArray[np.float64]
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]

    def separated(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """(node factor, query factor) with weights = their outer product, or None if there are none such."""
        node, query = np.unravel_index(int(np.argmax(self.weights)), self.weights.shape)
        by_node = self.weights[:, query] / self.weights[node, query]
        by_query = self.weights[node]
        same = np.allclose(np.outer(by_node, by_query), self.weights, rtol=1e-9, atol=0.0)
        return (by_node, by_query) if same else None


def least_squares(
    measured: Measured, tree: AggregationTree, features: Sequence[Feature], weights: str
) -> LeastSquares:
    """State the problem of DESIGN's section 5 for these measurements.

    weights="variance": measured points and sums by 1/variance, and the interpolated steps in between by
    `INTERPOLATION_WEIGHT` of a point's. weights="paper": the whole interpolated series by 1/n_steps, a
    feature's sums by 1/n_parts (OptStream, Algorithm 4).

    Raises ParameterError for other weights, for "variance" without variances, for shapes that do not fit
    the tree and the features, and where the leaves are not determined.
    """
    if weights not in get_args(Weights):
        raise ParameterError(f'weights must be "variance" or "paper"; got {weights!r}')
    _check_shapes(measured, tree, features)
    if not np.all(_is_measured(measured, tree)[tree.leaf_indices]):
        raise ParameterError("every leaf must be measured: nothing else tells how its parent splits")
    series = reconstruct(measured)
    n_steps = measured.n_steps
    matrices = [feature.matrix for feature in features]
    if weights == "paper":
        rows = np.concatenate([np.eye(n_steps), *matrices])
        by_query = np.concatenate(
            [np.full(matrix.shape[0], 1.0 / matrix.shape[0]) for matrix in (np.eye(n_steps), *matrices)]
        )
        targets = np.concatenate([series, *measured.feature_sums], axis=-1)
        return LeastSquares(rows, targets, np.outer(_is_measured(measured, tree), by_query))

    if measured.point_variances is None or measured.sum_variances is None:
        raise ParameterError(
            'weights="variance" needs the variances of the measurements; use "paper" without'
        )
    positions = list(measured.positions)
    between = [step for step in range(n_steps) if step not in set(positions)]
    rows = np.concatenate([np.eye(n_steps)[positions], np.eye(n_steps)[between], *matrices])
    targets = np.concatenate([measured.point_values, series[..., between], *measured.feature_sums], axis=-1)
    unit = float(measured.resolution) ** 2
    points = _spread(1.0 / (measured.point_variances * unit), len(positions))
    worth = (
        INTERPOLATION_WEIGHT * points.mean(axis=-1, keepdims=True) if positions else _fallback(measured, unit)
    )
    sums = [
        _spread(1.0 / (variances * unit), matrix.shape[0])
        for variances, matrix in zip(measured.sum_variances, matrices, strict=True)
    ]
    every = np.concatenate([points, _spread(worth, len(between)), *sums], axis=-1)
    return LeastSquares(rows, targets, every)


def _spread(weights: NDArray[np.float64], n_columns: int) -> NDArray[np.float64]:
    return np.broadcast_to(weights, (weights.shape[0], n_columns))


def _fallback(measured: Measured, unit: float) -> NDArray[np.float64]:
    """What a spread sum counts where no point was measured: little beside the finest sums."""
    if not measured.sum_variances:
        return np.ones((measured.points.shape[-2], 1))
    worth: NDArray[np.float64] = INTERPOLATION_WEIGHT / (
        measured.sum_variances[0].mean(axis=-1, keepdims=True) * unit
    )
    return worth


def _is_measured(measured: Measured, tree: AggregationTree) -> NDArray[np.float64]:
    """1 for each node that was measured, 0 for those left to be derived, (n_nodes,)."""
    if measured.point_variances is None:
        return np.ones(len(tree.nodes))
    return np.isfinite(measured.point_variances[:, 0]).astype(np.float64)


def _check_shapes(measured: Measured, tree: AggregationTree, features: Sequence[Feature]) -> None:
    if measured.points.shape[-2] != len(tree.nodes):
        raise ParameterError(
            f"measurements must have {len(tree.nodes)} nodes (rows, in tree.nodes order); "
            f"got {measured.points.shape[-2]}"
        )
    if len(measured.sums) != len(features):
        raise ParameterError(
            f"measurements have {len(measured.sums)} features, but {len(features)} features were given"
        )
    for feature, sums in zip(features, measured.sums, strict=True):
        if feature.n_steps != measured.n_steps or sums.shape[-1] != feature.n_parts:
            raise ParameterError(
                f"feature {feature.name!r} has {feature.n_parts} parts over {feature.n_steps} steps; the "
                f"measurements have {sums.shape[-1]} parts over {measured.n_steps} steps"
            )

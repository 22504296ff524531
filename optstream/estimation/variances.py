"""How much of the measurements' noise reaches the estimate: known before anything is drawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.projection import project
from optstream.estimation.weighting import LeastSquares, least_squares
from optstream.stream import AggregationTree, Feature, Measured

CHUNK = 256
SINGLE = AggregationTree(("node",), (-1,))


def noise_variances(
    measured: Measured, tree: AggregationTree, features: Sequence[Feature], weights: str
) -> NDArray[np.float64]:
    """Return the variance of each value of `make_consistent` without bound, (n_nodes, n_steps).

    Only the noise's part: how far the reconstruction misses the truth is not in it. In the unit of the
    readings, squared. The estimate is linear in the measurements y, of independent noise:

        x[n, t] = sum_(i,q) tree_part[i, n] time_part[q, i, t] y[i, q],

    so var x[n, t] = sum_(i,q) tree_part[i, n]^2 time_part[q, i, t]^2 var y[i, q]; both parts are what
    `project` makes of unit vectors. The measured values do not matter, their variances and positions do.
    Time O(n_nodes^2). Costs no privacy. Raises ParameterError as `least_squares`, without variances, and
    where nodes differ in their points, for then the two parts cannot be told apart.
    """
    problem = least_squares(_unit_vectors(measured), tree, features, weights)
    factors = problem.separated()
    if factors is None:
        raise ParameterError("noise_variances needs measurements with the same points at every node")
    by_node, by_query = factors
    series = LeastSquares(problem.rows, problem.targets[..., None, :], by_query[None, :])
    time_part = project(series, SINGLE)[..., 0, :]
    own = np.asarray(np.einsum("iq,qit->it", _variances(measured), time_part**2), dtype=np.float64)
    n_nodes = len(tree.nodes)
    variances = np.zeros_like(own)
    for start in range(0, n_nodes, CHUNK):
        units = np.eye(min(CHUNK, n_nodes - start), n_nodes, start)[..., None]
        tree_part = project(LeastSquares(np.eye(1), units, by_node[:, None]), tree)[..., 0]
        variances += (tree_part**2).T @ own[start : start + CHUNK]
    return variances


def _unit_vectors(measured: Measured) -> Measured:
    """A batch with one measurement each, the same at every node, 1 unit of the resolution, the others 0."""
    n_nodes = measured.points.shape[-2]
    widths = [measured.points.shape[-1], *(sums.shape[-1] for sums in measured.sums)]
    columns = np.split(np.eye(sum(widths)), np.cumsum(widths)[:-1], axis=-1)
    points, *sums = (np.repeat(part[:, None, :], n_nodes, axis=1) for part in columns)
    return replace(measured, points=points, sums=tuple(sums))


def _variances(measured: Measured) -> NDArray[np.float64]:
    """Of every measurement, (n_nodes, n_measurements); 0 where none was made, for it enters nothing."""
    if measured.point_variances is None or measured.sum_variances is None:
        raise ParameterError("noise_variances needs the variances of the measurements")
    values = (measured.points, *measured.sums)
    known = (measured.point_variances, *measured.sum_variances)
    parts = [np.broadcast_to(v, e.shape[-2:]) for v, e in zip(known, values, strict=True)]
    together = np.concatenate(parts, axis=-1)
    return np.where(np.isfinite(together), together, 0.0)

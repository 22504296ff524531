"""How much of the measurements' noise reaches the estimate: known before anything is drawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.problem import (
    interpolation_matrix,
    least_squares,
    seen_points,
    targets_of,
)
from optstream.estimation.system import SAME, known_enough, noise_through
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured

Floats = NDArray[np.float64]


def noise_variances(
    measured: Measured, tree: AggregationTree, features: Sequence[Feature], weights: str
) -> Floats:
    """Return the variance of each value of `make_consistent` without bound, (n_nodes, n_steps).

    Only the noise's part, in the unit of the readings, squared. The estimate is linear in the measurements,
    whose noise is independent: a node's series is weighted with W_n, its targets are L y_n with L from the
    node's points, so the tree receives m_n = R' W_n L y_n of covariance R' W_n L diag(var y_n) L' W_n R.
    Where the weights separate, each step is a scalar problem. A value of `UNKNOWN` variance has no noise.
    """
    if measured.interpolation is not None:
        raise ParameterError("noise_variances needs measurements, not a reconstruction that was made of them")
    noise = _variances(measured)
    problem = least_squares(measured, tree, features, weights)
    maps, pattern = target_maps(measured)
    factors, n_steps = problem.separated(), problem.rows.shape[1]
    if factors is None and len(problem.rows) > n_steps:
        rows, counts = problem.rows, known_enough(problem.weights, tree)
        # of each node's whole series: its precision, and the covariance of precision times value
        precision = np.einsum("qs,nq,qt->nst", rows, counts, rows, optimize=True)
        moved = np.einsum("qs,nq,nqm->nsm", rows, counts, maps[pattern], optimize=True)
        entering = (moved * noise[:, None, :]) @ np.swapaxes(moved, -1, -2)
        return noise_through(precision[:, None], entering[:, None], tree)[:, 0]
    if factors is None:
        own = np.einsum("nsm,nm->ns", maps[pattern] ** 2, noise, optimize=True)
        return reconciled_variances(problem.weights, own, tree)
    by_node, to_series = factors
    own = np.einsum("nsm,nm->ns", (to_series @ maps)[pattern] ** 2, noise, optimize=True)
    return reconciled_variances(np.broadcast_to(by_node, own.shape), own, tree)


def reconciled_variances(weights: Floats, own: Floats, tree: AggregationTree) -> Floats:
    """Return the variance of each value once the nodes add up, step by step, (n_nodes, n_steps). `own` is
    each node's noise variance before, `weights` its weight in the least squares. nan where one of a step is
    not known; for a lattice also where a weight is not that of the noise."""
    weights = known_enough(weights, tree)
    entering = weights**2 * np.where(weights > 0, own, 0.0)
    same = all(np.allclose(part, part[:, :1], rtol=SAME, atol=0.0) for part in (weights, entering))
    some = slice(1) if same else slice(None)
    found = noise_through(weights[:, some, None, None], entering[:, some, None, None], tree)
    return np.broadcast_to(found[..., 0], weights.shape).copy()


def interpolated_variances(measured: Measured) -> Floats:
    """Return the variance of each value of `reconstruct` from points alone; 0 where a node has no point."""
    noise, seen = _variances(measured), seen_points(measured)
    found = np.zeros((len(noise), measured.n_steps))
    for pattern in np.unique(seen, axis=0):
        nodes = np.flatnonzero((seen == pattern).all(axis=1))
        if pattern.any():
            positions = tuple(int(step) for step in np.array(measured.positions)[pattern])
            squares = interpolation_matrix(positions, measured.n_steps) ** 2
            found[nodes] = noise[np.ix_(nodes, np.flatnonzero(pattern))] @ squares
    return found * float(measured.resolution) ** 2


def target_maps(measured: Measured) -> tuple[Floats, NDArray[np.int64]]:
    """Return a map from measurements to targets for each pattern of nodes, and each node's pattern."""
    assert measured.point_variances is not None
    answers = measured.answers_of(FeatureSums)
    assert answers.variances is not None
    parts = [np.isfinite(one).any(axis=-1, keepdims=True) for one in answers.variances]
    kinds = [seen_points(measured), *(np.asarray(one) for one in parts)]
    _, some, pattern = np.unique(np.hstack(kinds), axis=0, return_index=True, return_inverse=True)
    widths = [measured.points.shape[-1], *(sums.shape[-1] for sums in answers.values)]
    columns = np.split(np.eye(sum(widths)), np.cumsum(widths)[:-1], axis=-1)
    points, *sums = (np.repeat(part[:, None, :], some.size, axis=1) for part in columns)
    units = replace(
        measured,
        points=points,
        answers=FeatureSums(tuple(sums), tuple(one[some] for one in answers.variances)),
        point_variances=np.broadcast_to(measured.point_variances, measured.points.shape[-2:])[some],
    )
    return np.moveaxis(targets_of(units), 0, -1), pattern.reshape(-1)


def _variances(measured: Measured) -> Floats:
    """Return the variance of every measurement, (n_nodes, n_measurements); 0 where none was made."""
    known = known_variances(measured)
    return np.where(known < UNKNOWN, known, 0.0)


def known_variances(measured: Measured) -> Floats:
    """Return the variance of every measurement in units squared; `UNKNOWN` or more where none was made."""
    answers = measured.answers_of(FeatureSums)
    if measured.point_variances is None or answers.variances is None:
        raise ParameterError("noise_variances needs the variances of the measurements")
    values = (measured.points, *answers.values)
    known = (measured.point_variances, *answers.variances)
    parts = [np.broadcast_to(v, e.shape[-2:]) for v, e in zip(known, values, strict=True)]
    return np.concatenate(parts, axis=-1)

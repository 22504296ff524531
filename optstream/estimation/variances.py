"""How much of the measurements' noise reaches the estimate: known before anything is drawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.lattice import known_enough, noise_of_columns, noise_through_lattice, parts_of
from optstream.estimation.problem import LeastSquares, least_squares, targets_of
from optstream.estimation.reconstruct import interpolation_matrix, seen_points
from optstream.stream import AggregationTree, Feature, FeatureSums, Lattice, Measured

# How noise goes through the reconciliation of a tree: two passes for its covariance, as for its values.

Floats = NDArray[np.float64]


def noise_through_tree(precision: Floats, noise: Floats, tree: AggregationTree) -> Floats:
    """Return the covariance that independent noise at the nodes leaves in every node's estimate.

    Problem: Cov[x] for x = S z, z = argmin_z sum_n (x_n - f_n)' P_n (x_n - f_n), where P_n f_n = m_n has
    covariance `noise[n]`, independent between nodes. precision: P, (n_nodes, …, k, k), 0 where a node was not
    measured (never a leaf); the dots are independent problems (steps, or none). nan where the noise is nan.

    The passes are those of `reconcile_correlated`: upwards mu_n = L_n^-1 (m_n + G_n s_n), with s_n the sum of
    the children's mu, G_n the inverse of their summed L^-1, and L_n = P_n + G_n; downwards x_c = mu_c + K_c d
    with d = x_p - s_p and K_c = L_c^-1 G_p. A node's d depends on its own mu as d = E mu_c + r, r independent
    of everything below c: E and Cov[r] are handed down. Time linear in nodes, k^3 each.
    """
    parents, inner = np.array(tree.parents), np.ones(len(tree.nodes), dtype=bool)
    inner[tree.leaf_indices] = False
    inverse, through = precision.copy(), np.zeros_like(precision)  # L^-1, and G, which is 0 at leaves
    spread, sums = np.zeros_like(noise), np.zeros_like(noise)  # Cov[mu], and the sum of the children's
    below = np.zeros_like(precision)
    for level in reversed(tree.levels):
        nodes = slice(level.start, level.stop)
        mixed = level.start + np.flatnonzero(inner[nodes])
        through[mixed] = _inverse(below[mixed])
        inverse[nodes] = _inverse(precision[nodes] + through[nodes])
        entering = noise[nodes] + _both(through[nodes], sums[nodes])
        spread[nodes] = _both(inverse[nodes], entering)
        if level.start:
            np.add.at(below, parents[nodes], inverse[nodes])
            np.add.at(sums, parents[nodes], spread[nodes])
    found, one = spread.copy(), np.eye(noise.shape[-1])
    kept, gain = np.zeros_like(inverse) + one, np.zeros_like(inverse)  # how x depends on its own mu, and K
    rest = np.zeros_like(noise)  # Cov[r]
    for level in tree.levels[1:]:
        nodes = slice(level.start, level.stop)
        up = parents[nodes]
        own = _product(kept[up], inverse[up])
        pulled = _product(own, through[up]) - one
        gain[nodes] = _product(inverse[nodes], through[up])
        kept[nodes] = one + _product(gain[nodes], pulled)
        siblings = sums[up] - spread[nodes]
        rest[nodes] = _both(own, noise[up]) + _both(pulled, siblings) + _both(gain[up], rest[up])
        found[nodes] = _both(kept[nodes], spread[nodes]) + _both(gain[nodes], rest[nodes])
    return found


def _both(factor: Floats, covariance: Floats) -> Floats:
    """Return F C F'."""
    return _product(_product(factor, covariance), np.swapaxes(factor, -1, -2))


def _product(one: Floats, other: Floats) -> Floats:
    """Return the matrices' product; of single numbers at once, which a product of many 1 x 1 is slow at."""
    return np.asarray(one * other if one.shape[-1] == 1 else one @ other)


def _inverse(matrices: Floats) -> Floats:
    """Return the inverses. Raises numpy's LinAlgError where there is none."""
    if matrices.shape[-1] > 1:
        return np.asarray(np.linalg.inv(matrices))
    if not matrices.all():
        raise np.linalg.LinAlgError("Singular matrix")
    return np.asarray(1.0 / matrices)


def noise_variances(
    measured: Measured, tree: AggregationTree, features: Sequence[Feature], weights: str
) -> Floats:
    """Return the variance of each value of `make_consistent` without bound, (n_nodes, n_steps).

    Only the noise's part, in the unit of the readings, squared: how far the reconstruction misses the truth
    is not in it. The estimate is linear in the measurements, whose noise is independent: a node's series is
    weighted with W_n, its targets are L y_n with L from the node's points, so the tree receives m_n = R' W_n
    L y_n of covariance R' W_n L diag(var y_n) L' W_n R. Where the weights separate, each step is a scalar
    problem. A value of `UNKNOWN` variance stands for no measurement: it has no noise.
    """
    if measured.interpolation is not None:
        raise ParameterError("noise_variances needs measurements, not a reconstruction that was made of them")
    noise = _variances(measured)
    problem = least_squares(measured, tree, features, weights)
    maps, pattern = target_maps(measured)
    factors = problem.separated()
    if factors is None:
        if isinstance(tree, Lattice) and len(problem.rows) == problem.rows.shape[1]:
            own = np.einsum("nsm,nm->ns", maps[pattern] ** 2, noise, optimize=True)
            return reconciled_variances(problem.weights, own, tree)
        if isinstance(tree, Lattice):
            counted = known_enough(problem.weights, parts_of(tree))
            problem = LeastSquares(problem.rows, problem.targets, counted)
        precision, entering = _joint(problem, maps[pattern], noise)
        if isinstance(tree, Lattice):
            return noise_through_lattice(precision[:, None], entering[:, None], tree)[:, 0]
        covariances = noise_through_tree(precision, entering, tree)
        return np.asarray(np.diagonal(covariances, axis1=-2, axis2=-1)).copy()
    by_node, by_query = factors
    weighted = by_query[:, None] * problem.rows
    time_maps = np.linalg.solve(problem.rows.T @ weighted, weighted.T) @ maps
    own = np.einsum("nsm,nm->ns", time_maps[pattern] ** 2, noise, optimize=True)
    return reconciled_variances(np.broadcast_to(by_node[:, None], own.shape), own, tree)


def reconciled_variances(weights: Floats, own: Floats, tree: AggregationTree) -> Floats:
    """Return the variance of each value once the nodes add up, step by step, (n_nodes, n_steps).

    `own` is the noise variance of each node's value before, `weights` its weight in the least squares. nan
    for all nodes of a step where one is not known; for a lattice also where a weight is not that of the
    noise.
    """
    if isinstance(tree, Lattice):
        return noise_of_columns(weights, own, tree)
    entering = weights**2 * np.where(weights > 0, own, 0.0)
    return noise_through_tree(weights[..., None, None], entering[..., None, None], tree)[..., 0, 0]


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


def _joint(problem: LeastSquares, maps: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return for each node's whole series: its precision and the covariance of precision times value."""
    rows, weights = problem.rows, problem.weights
    precision = np.einsum("qs,nq,qt->nst", rows, weights, rows, optimize=True)
    entering = np.einsum("qs,nq,nqm->nsm", rows, weights, maps, optimize=True)
    return precision, (entering * noise[:, None, :]) @ np.swapaxes(entering, -1, -2)


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

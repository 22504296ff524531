"""The error of an estimate from points and sums between them, judged by these points and sums themselves.

The estimate of a node's series x is T y, with y = H x + noise, so its error is T noise, which is known, and
(T H - 1) x. A priori x moves within a day with the covariance K of `history.prior`'s medians, relative to the
size of a node; and each step varies by itself, with a variance that grows as the size. A factor c of K and a
variance u for each unit of size show in the distances of points, and of sums, from the line through the
others, beyond the noise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.problem import interpolation_matrix, least_squares
from optstream.estimation.variances import known_variances, target_maps
from optstream.history.blocks import Blocks
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree, Feature, Measured

Floats = NDArray[np.float64]

EXPECTED, DEVIATION = 0.6, 0.5  # prior of c; by the medians alone it would be 1
CLEAR = 3.0
"""Least squared size over the variance of its noise: noise that makes a node look large makes it look
restless, too."""
ALIKE = 2.0  # neighbouring points' surprises are correlated: this many count as one


@dataclass(frozen=True, eq=False)
class _Alike:
    """Nodes that were measured at the same steps. missed: (3, n_steps), variances of the missed part by the
    shared part of K, its own part and a variance of 1 at each step. contrasts: (n, n_measurements), about 0
    for a smooth series. moved: (3, n), their variances likewise."""

    nodes: NDArray[np.intp]
    missed: Floats
    contrasts: Floats
    moved: Floats


def missed_variances(
    measured: Measured,
    tree: AggregationTree,
    features: Sequence[Feature],
    weights: str | None,
    values: Floats,
    noise: Floats,
) -> Floats:
    """Return the variance of the estimate's error apart from noise, (n_nodes, n_steps); nan for unmeasured
    leaves. A judgement, not a bound: right on average if the series moves within a day as loads and counts of
    people do. The tree is taken to miss as much as a node's own estimate. `values` give the nodes' sizes."""
    # not by sizes of leaves, added up: of many leaves the noise would make most of that
    squares = (values**2 - np.nan_to_num(noise)).mean(axis=1)
    of_leaves = tree.add_up(squares[tree.leaf_indices, None])[:, 0]
    scales = np.maximum(np.stack([squares, of_leaves, squares], axis=1), 0.0)
    scales[:, 2] **= 0.5
    is_clear = squares > CLEAR * np.nan_to_num(noise).mean(axis=1)
    spread = known_variances(measured)
    groups = _groups(measured, tree, features, weights)
    strength = _strength(measured, groups, spread, scales, is_clear)
    found = np.full(values.shape, np.nan)
    for group in groups:
        found[group.nodes] = (scales[group.nodes] * strength) @ group.missed
    unknown = np.isnan(found[tree.leaf_indices]).any(axis=1)
    if not unknown.any():  # an upper level that was not measured is derived from leaves that were
        derived = np.isnan(found).any(axis=1)
        found[derived] = (scales[derived] * strength) @ groups[-1].missed
        return found
    found[tree.add_up(unknown[:, None].astype(np.float64))[:, 0] > 0] = np.nan
    return found


def _groups(
    measured: Measured, tree: AggregationTree, features: Sequence[Feature], weights: str | None
) -> list[_Alike]:
    """Return the nodes by their measured queries; root first."""
    known, found = known_variances(measured) < UNKNOWN, list[_Alike]()
    n_steps, positions = measured.n_steps, np.array(measured.positions, dtype=np.int64)
    sums = [feature.matrix for feature in features]
    seen_by = np.concatenate([np.eye(n_steps)[positions], *sums])
    maps, pattern = target_maps(measured)
    problem = None if weights is None else least_squares(measured, tree, features, weights)
    at = Blocks.at(np.arange(n_steps))
    kernels = (*TemporalPrior.broad(n_steps).covariances(at, at), np.eye(n_steps))
    alike = np.where(known.any(axis=1), pattern, -1)
    for number in dict.fromkeys(alike[alike >= 0].tolist()):
        nodes = np.flatnonzero(alike == number)
        first, mapped = nodes[0], maps[number] / float(measured.resolution)
        if problem is None:
            mapped = mapped[:n_steps]
        else:
            weighted = problem.weights[first][:, None] * problem.rows
            mapped = np.linalg.solve(problem.rows.T @ weighted, weighted.T @ mapped)
        misses = mapped @ seen_by - np.eye(n_steps)
        points = np.flatnonzero(known[first, : positions.size])
        own_sums = positions.size + np.flatnonzero(known[first, positions.size :])
        contrasts = _contrasts(seen_by, positions, points, own_sums)
        missed, moved = (
            np.stack([np.einsum("ts,su,tu->t", one, kernel, one, optimize=True) for kernel in kernels])
            for one in (misses, contrasts @ seen_by)
        )
        found.append(_Alike(nodes, missed, contrasts, moved))
    return found


def _contrasts(
    seen_by: Floats, positions: NDArray[np.int64], points: NDArray[np.intp], sums: NDArray[np.intp]
) -> Floats:
    """Return, as weights of measurements, points less the line through the others, sums less the line's."""
    n_measurements, n_steps = seen_by.shape
    if points.size < 2:
        return np.zeros((0, n_measurements))
    at, rows = positions[points], np.eye(n_measurements)[np.r_[points, sums]]
    for number in range(points.size):
        near = np.r_[max(number - 1, 0) : number, number + 1 : min(number + 2, points.size)]
        rows[number, points[near]] = [-np.interp(at[number], at[near], unit) for unit in np.eye(near.size)]
    rows[points.size :, points] = -seen_by[sums] @ interpolation_matrix(tuple(at.tolist()), n_steps).T
    return rows


def _strength(
    measured: Measured,
    groups: Sequence[_Alike],
    spread: Floats,
    scales: Floats,
    is_clear: NDArray[np.bool_],
) -> Floats:
    """Return (c, c, u): the least squares fit of the contrasts beyond noise, joined with the prior of c.
    Nodes of a group move alike, so the series' part counts once, the noise for each."""
    unit = float(measured.resolution)
    taken = np.concatenate([measured.point_values, *measured.feature_sums], axis=-1)
    noise = np.where(spread < UNKNOWN, spread, 0.0) * unit**2  # no contrast without a measurement
    gram, right = np.diag([DEVIATION**-2.0, 0.0]), np.array([EXPECTED * DEVIATION**-2.0, 0.0])
    for group in groups:
        nodes = group.nodes[is_clear[group.nodes]]
        of_noise = noise[nodes] @ (group.contrasts**2).T
        moved = scales[nodes, :2] @ group.moved[:2], scales[nodes, 2:] @ group.moved[2:]
        excess = (taken[nodes] @ group.contrasts.T) ** 2 - of_noise
        expected = EXPECTED * moved[0]
        # of a square: Laplace noise has kurtosis 6
        variance = 5.0 * of_noise**2 + 4.0 * of_noise * expected + 2.0 * nodes.size * expected**2
        weight = np.divide(1.0 / ALIKE, variance, out=np.zeros_like(variance), where=variance > 0.0)
        gram += [[float((weight * one * other).sum()) for other in moved] for one in moved]
        right += [float((weight * one * excess).sum()) for one in moved]
    # what noise alone could have made of u is taken off it (James and Stein), for u is never below 0
    alone = gram[1, 1] - gram[0, 1] ** 2 / gram[0, 0]
    fitted = right[1] - gram[0, 1] / gram[0, 0] * right[0]
    of_steps = max(fitted / alone - 1.0 / fitted, 0.0) if fitted > 0.0 and alone > 0.0 else 0.0
    factor = max((right[0] - gram[0, 1] * of_steps) / gram[0, 0], 0.0)
    return np.array([factor, factor, of_steps])

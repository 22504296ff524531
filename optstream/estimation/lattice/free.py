"""The estimate of a lattice without bound, and what the noise does to it: exact, from one small system."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.lattice.system import System, leaf_variances, parts_of
from optstream.stream.lattice import Lattice

Floats = NDArray[np.float64]

REFINED = 2
"""How often what is left of the equations is solved for: rounding errors of a matrix with held nodes go."""
SAME = 1e-9
"""Relative: weights and variances that differ by less are the same."""


def reconcile_lattice(fitted: Floats, weights: Floats, lattice: Lattice) -> Floats:
    """Return the leaves that minimise sum_n weights[n] (S z - fitted)_n^2 for each column; free.

    z = y + D A' K^-1 (x - A y), with y the cells' own values, x those of the nodes above, A which cells each
    holds, D the cells' variances, V the others', and K = V + A D A' (`System`): generalised least squares by
    its dual, which for complete products and a variance a level gives the means of the analysis of variance,
    and holds for any others too. Time linear in cells; nothing is of the size cells x cells.

    Args:
        fitted: (…, n_nodes, n_columns), each node's own value; not read where the weight is 0.
        weights: (n_nodes, n_columns), 1 / variance; 0 where a node was not measured, never at a cell.
        lattice: The hierarchy with its margin.

    Returns:
        (…, n_leaves, n_columns).
    """
    parts = parts_of(lattice)
    patterns, which = _patterns(weights)
    values = np.moveaxis(fitted, -2, 0)
    found = np.empty((len(parts.leaves), *values.shape[1:]))
    for number, pattern in enumerate(patterns):
        columns = np.flatnonzero(which == number)
        variances = leaf_variances(pattern, parts)
        system = System(parts, pattern, variances)
        found[..., columns] = _fit(values[..., columns], pattern, variances, system)
    return np.moveaxis(found, 0, -2)


def lattice_variances(weights: Floats, own: Floats, lattice: Lattice) -> Floats:
    """Return the variance of each node's value after `reconcile_lattice`, (n_nodes, n_columns); free.

    From K of `System`: a measured node above the cells has v - v^2 (K^-1)_nn, a sum c of cells
    c'Dc - (A D c)' K^-1 (A D c).

    Args:
        weights: As `reconcile_lattice`.
        own: (n_nodes, n_columns), the variance that noise gives each node's own value.
        lattice: The hierarchy with its margin.

    Returns:
        In the unit of `own`; nan for a column in which some weight is not 1 / variance, for then the noise of
        the estimate is not that of the least squares.
    """
    parts = parts_of(lattice)
    patterns, which = _patterns(weights)
    found = np.full(weights.shape, np.nan)
    for number, pattern in enumerate(patterns):
        variances = leaf_variances(pattern, parts)
        if not np.allclose(variances * pattern[parts.leaves], 1.0, rtol=SAME):
            continue
        columns = np.flatnonzero(which == number)
        seen = pattern > 0
        exact = np.isclose(own[np.ix_(seen, columns)] * pattern[seen, None], 1.0, rtol=SAME)
        of_pattern = _variances(System(parts, pattern, variances), pattern)
        found[:, columns] = np.where(exact.all(axis=0), of_pattern[:, None], np.nan)
    return found


def _patterns(weights: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the different columns of weights, (n_patterns, n_nodes), and which each column has."""
    if np.allclose(weights, weights[:, :1], rtol=SAME, atol=0.0):
        return weights[:, 0][None], np.zeros(weights.shape[1], dtype=np.int64)
    patterns, which = np.unique(weights.T, axis=0, return_inverse=True)
    return patterns, which.reshape(-1)


def _fit(values: Floats, weights: Floats, variances: Floats, system: System) -> Floats:
    parts = system.parts
    column = (slice(None),) + (None,) * (values.ndim - 1)
    found = values[parts.leaves].copy()
    sums = parts.sums(found)
    left = [
        np.where(weights[at][column] > 0, values[at] - own, 0.0)
        for at, own in zip((parts.families, parts.rest), sums, strict=True)
    ]
    known = system.known_families, system.known
    inner = [
        np.divide(1.0, weights[at], out=np.zeros(len(at)), where=seen)[column]
        for at, seen in zip((parts.families, parts.rest), known, strict=True)
    ]
    for _ in range(1 + REFINED):
        step = system.solve(*left)
        moved = variances[column] * parts.above(*step)
        found += moved
        left = [
            np.where(seen[column], rest - added - variance * pull, 0.0)
            for rest, added, variance, pull, seen in zip(
                left, parts.sums(moved), inner, step, known, strict=True
            )
        ]
    return found


def _variances(system: System, weights: Floats) -> Floats:
    parts, inverse = system.parts, system.inverse
    found = np.empty(len(weights))
    n_upper = len(parts.upper)
    rows = np.zeros((len(parts.leaves), len(parts.rest)))
    rows[:, :n_upper] = parts.upper.T[parts.family]
    rows[np.arange(len(rows)), n_upper + parts.member] = 1.0
    rows = rows[:, system.known] - system.scaled[parts.family]
    kept = 1.0 / system.diagonal[parts.family] + _forms(rows, inverse)
    found[parts.leaves] = system.free - system.free**2 * kept
    with np.errstate(divide="ignore", invalid="ignore"):
        own = 1.0 / weights
        of_families = own[parts.families]
        spread = 1.0 / system.diagonal + _forms(system.scaled, inverse)
        measured = of_families - of_families**2 * spread
        derived = system.totals - _forms(system.across[:, system.known], inverse)
        found[parts.families] = np.where(system.known_families, measured, derived)
    # of each of the rest: what its cells share with the families and with the others of the rest
    to_rest = system.own - system.across.T @ (system.across / system.diagonal[:, None])
    first = (system.across**2 / system.diagonal[:, None]).sum(axis=0)
    derived = np.diagonal(system.own) - first - _forms(to_rest[:, system.known], inverse)
    of_rest = derived.copy()
    measured = own[parts.rest[system.known]]
    of_rest[system.known] = measured - measured**2 * np.diagonal(inverse)
    found[parts.rest] = of_rest
    return np.maximum(found, 0.0)


def _forms(rows: Floats, matrix: Floats) -> Floats:
    return np.asarray(((rows @ matrix) * rows).sum(axis=1))

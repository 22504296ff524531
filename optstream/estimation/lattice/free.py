"""The estimate of a lattice without bound: exact, from one small system."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.lattice.system import System, inverses, known_enough, parts_of
from optstream.stream.lattice import Lattice

Floats = NDArray[np.float64]

SAME = 1e-9
"""Relative: weights and variances that differ by less are the same."""


def reconcile_lattice(fitted: Floats, weights: Floats, lattice: Lattice) -> Floats:
    """Return the leaves, (…, n_leaves, n_columns), that minimise sum_n weights[n] (S z - fitted)_n^2 for each
    column; free.

    z = y + D A' K^-1 (x - A y), with y the cells' own values, x those of the nodes above, A which cells each
    holds, D the cells' variances, P the others' precisions, and K = P^-1 + A D A' (`System`): generalised
    least squares by its dual, which for complete products and a variance a level gives the means of the
    analysis of variance, and holds for any others too. Time linear in cells; nothing is of the size cells x
    cells.

    fitted: (…, n_nodes, n_columns), each node's own value; not read where the weight is 0. weights: (n_nodes,
    n_columns), 1 / variance; 0 where a node was not measured, never at a cell.
    """
    n_nodes, n_columns = weights.shape
    weights = known_enough(weights, parts_of(lattice))
    values = np.moveaxis(fitted, (-2, -1), (0, 1))
    batch = values.shape[2:]
    if is_constant(weights):
        weights, own = weights[:, :1], values.reshape(n_nodes, 1, 1, -1)
    else:
        own = values.reshape(n_nodes, n_columns, 1, -1)
    found = _fit(own, weights[:, :, None, None], lattice)
    return np.moveaxis(found.reshape(-1, n_columns, *batch), (0, 1), (-2, -1))


def reconcile_series(fitted: Floats, precision: Floats, lattice: Lattice) -> Floats:
    """Return the leaves, (…, n_leaves, n_steps), that minimise sum_n (S z - fitted)_n' P_n (S z - fitted)_n,
    whole series; free.

    `reconcile_lattice` where steps hang together: its numbers are matrices of steps. fitted: (…, n_nodes,
    n_steps), each node's own series; not read where the precision is 0. precision: (n_nodes, n_steps,
    n_steps), P; 0 where a node was not measured, never at a cell.
    """
    values = np.moveaxis(fitted, (-2, -1), (0, 1))
    own = values.reshape(values.shape[0], 1, values.shape[1], -1)
    found = _fit(own, precision[:, None], lattice)
    return np.moveaxis(found.reshape(-1, *values.shape[1:]), (0, 1), (-2, -1))


def is_constant(columns: Floats) -> bool:
    """Return whether all columns, (n, n_columns), are the first."""
    return bool(np.allclose(columns, columns[:, :1], rtol=SAME, atol=0.0))


def _fit(own: Floats, precision: Floats, lattice: Lattice) -> Floats:
    """Return the leaves, (n_leaves, b, k, c); own: (n_nodes, b, k, c). precision: (n_nodes, b, k, k)."""
    parts = parts_of(lattice)
    precise = precision[parts.above]
    free, variances = np.asarray(np.linalg.inv(precision[parts.leaves])), inverses(precise)
    found, seen = own[parts.leaves], (precise[..., 0, 0] > 0)[..., None, None]
    right = np.where(seen, own[parts.above] - parts.sums(found), 0.0)
    pulls = System(parts, precise, free).refined(right, variances)
    return np.asarray(found + free @ parts.pulled(pulls))

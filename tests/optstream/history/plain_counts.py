"""The errors of counts as plain covariances of all leaves at all steps, which `CountErrors` has in groups."""

import numpy as np
from numpy.typing import NDArray

from optstream.history.count_errors import CountErrors
from optstream.history.tree import LeafCovariance, LeafSpans
from tests.optstream.history.dense import written_out

Floats = NDArray[np.float64]


def variances(found: CountErrors, nodes: Floats, times: Floats) -> Floats:
    """Return the variances of sums of nodes, (p, n_nodes), over sums of times, (q, n_asked)."""
    shared, period = found.shared, times[:, -found.expected.shape[1] :]
    erring, n_shared = nodes @ found.erring.toarray(), len(shared.tree.nodes)
    total = _of_expectations(found, erring, times)
    total += (nodes @ found.size_errors.toarray()) ** 2 @ ((found.sizes @ times.T) ** 2)
    total += (nodes @ found.below.toarray()) ** 2 @ found.expected @ (period**2).T
    total -= _told(found, nodes[:, :n_shared]) @ (period**2).T
    if found.leaves is not None:
        total += _of_small_leaves(found, nodes[:, n_shared:], times)
    return total


def _of_expectations(found: CountErrors, erring: Floats, times: Floats) -> Floats:
    """Each weight of a leaf at a step is that of the nodes above it, as they are trusted there."""
    tree, errors = found.shared.tree, found.leaf_errors
    n, q = len(tree.leaves), times.shape[1]
    covariance = LeafCovariance(LeafSpans(errors.fitted.known.published), errors.targets)
    whole = written_out(covariance.products(np.eye(n), np.eye(q))).reshape(n * q, n * q)
    of_nodes, of_times = found.trust
    below = tree.add_up(np.eye(n))
    leaves = np.einsum("kn,pn,nl->kpl", of_nodes, erring, below)
    weights = np.einsum("kpl,kt,qt->pqlt", leaves, of_times, times).reshape(-1, n * q)
    total = ((weights @ whole) * weights).sum(axis=1)
    return np.asarray(errors.fitted.factor * total.reshape(len(erring), len(times)))


def _told(found: CountErrors, nodes: Floats) -> Floats:
    """Conditioned on all measured nodes at once, step by step, (p, n_steps)."""
    known = found.variation
    below = known.tree.add_up(np.eye(len(known.tree.leaves)))
    measured = np.isfinite(known.noise)
    sums, total = below[measured], np.zeros((len(nodes), len(known.cover)))
    for step, block in zip(*np.nonzero(known.cover), strict=True):
        varied = known.counted[:, block]
        seen = (sums * varied) @ sums.T + np.diag(known.noise[measured])
        moved = ((nodes @ below) * known.parts[:, step] * varied) @ sums.T
        total[:, step] = (moved * np.linalg.solve(seen, moved.T).T).sum(axis=1)
    return total


def _of_small_leaves(found: CountErrors, leaves: Floats, times: Floats) -> Floats:
    """Each leaf conditioned on its own blocks; sizes of siblings go together."""
    errors = found.leaves
    assert errors is not None
    estimate, total = errors.estimate, np.zeros((len(leaves), len(times)))
    for one in errors.families:
        moved = times * errors.shapes[errors.parents[one.leaves[0]]]
        of_all, across = moved.sum(axis=1) ** 2, (moved @ one.across) ** 2
        for leaf in one.leaves:
            power = (estimate.strength * estimate.sizes[leaf]) ** 2
            told = across @ (power**2 / (power * one.spectrum + estimate.noise[leaf]))
            of_own = power * ((moved @ errors.alone) * moved).sum(axis=1) - told
            size = estimate.size_variances[leaf] + estimate.joined[leaf] ** 2
            total += np.outer(leaves[:, leaf] ** 2, size * of_all + of_own)
        total -= np.outer((leaves[:, one.leaves] @ estimate.joined[one.leaves]) ** 2, of_all)
    return estimate.factor * total

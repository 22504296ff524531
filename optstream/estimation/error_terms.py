"""A compact form of how errors hang together: a few terms, each a part of nodes times a part of steps."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_covariance import CovarianceOfSums
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
TOLERANCE = 2e-4
"""Relative: by how much a variance of those that are compared may differ from the exact one."""
TOLERANCE_OF_COUNTS = 0.01
"""The same of nodes of counts: each leaf varies by a shape of its own, and few terms do not have all."""
LEAST_OF_COUNTS = 1e-3
"""A variance of counts below it is compared as this: rounding to whole numbers alone has 1/12."""
MOST_TERMS = 96
COMPARED = 24
"""Sets of leaves, and spans of steps, of which the variances are compared."""


@dataclass(frozen=True, eq=False)
class ErrorTerms:
    """Covariances of the errors of one day: sums over terms of a factor of nodes times one of steps.

    Whether nodes or steps are ordered plays no role: `nodes` and `steps` are symmetric. For sums over a set
    of nodes and a set of steps that is exact, to `TOLERANCE`.

    Attributes:
        nodes: (n_terms, n_nodes, n_nodes).
        steps: (n_terms, n_steps, n_steps), in the squared unit of the readings.
        earlier: (n_terms, n_days), for the sum of all steps and that of each of the days before, the nearest
            first; n_days is 0 where days are independent.
    """

    nodes: Floats
    steps: Floats
    earlier: Floats

    def variance(self, nodes: Floats, steps: Floats) -> float:
        """Return the variance of the errors' sum, weighted by (n_nodes,) and (n_steps,)."""
        of_nodes = np.einsum("rij,i,j->r", self.nodes, nodes, nodes)
        return float(of_nodes @ np.einsum("rst,s,t->r", self.steps, steps, steps))


def error_terms(covariance: CovarianceOfSums, tree: AggregationTree, n_steps: int) -> ErrorTerms | None:
    """Return the terms of a covariance: as few as give its variances to a tolerance; None where `MOST_TERMS`
    are too few. Pure; free.

    Sums over sets of nodes and of steps weigh each pair of nodes alike in both orders. What is left of the
    covariance is a matrix of symmetric pairs of nodes by symmetric pairs of times, and its singular values
    fall fast: leaves that are estimated alike err alike. It is known as a sum of products already, in more
    terms, and the variances that are compared are exact.
    """
    every, spans = np.eye(len(tree.nodes)), _spans(n_steps, covariance.n_earlier)
    below = every if covariance.of_nodes else tree.add_up(np.eye(len(tree.leaves)))
    sets = _sets_of_leaves(tree)
    products = covariance.products(below, np.eye(spans.shape[1]))
    own = np.eye(spans.shape[1])[:n_steps]
    found = products.principal(_errors(products.variances(None, own).sum(axis=1)), MOST_TERMS)
    exact = np.vstack([products.variances(None, spans), products.variances(sets, spans)])
    allowed = TOLERANCE * exact
    if covariance.of_nodes:
        allowed = TOLERANCE_OF_COUNTS * np.maximum(exact, LEAST_OF_COUNTS)
    return _fewest(found, exact, sets, spans, n_steps, allowed)


def _fewest(
    products: Iterable[tuple[Floats, Floats]],
    exact: Floats,
    sets: Floats,
    spans: Floats,
    n_steps: int,
    allowed: Floats,
) -> ErrorTerms | None:
    """Return as few of the products as give the variances of the nodes and of some sets of them, to what is
    allowed; None where all are too few.
    """
    kept = []
    left = exact
    for nodes, steps in products:
        of_chosen = np.concatenate([nodes.diagonal(), ((sets @ nodes) * sets).sum(axis=1)])
        left = left - np.outer(of_chosen, ((spans @ steps) * spans).sum(axis=1))
        kept.append((nodes, steps))
        if (np.abs(left) <= allowed).all():
            break
    else:
        return None
    of_nodes, of_steps = map(np.stack, zip(*kept, strict=True))
    earlier = of_steps[:, :n_steps, n_steps:].sum(axis=1)
    return ErrorTerms(of_nodes, of_steps[:, :n_steps, :n_steps], earlier)


def _errors(variances: Floats) -> Floats:
    """Return the roots of variances, above 0."""
    errors = np.sqrt(np.maximum(variances, 0.0))
    return np.asarray(np.maximum(errors, 1e-12 * float(errors.max()) or 1.0))


def _sets_of_leaves(tree: AggregationTree) -> Floats:
    """Return some sets of leaves, as weights of nodes."""
    n_nodes, leaves = len(tree.nodes), tree.leaf_indices
    sets = np.zeros((COMPARED, n_nodes))
    borders = np.linspace(-0.8, 0.8, COMPARED)[:, None]
    sets[:, leaves] = _waves(COMPARED, leaves.size) * np.sqrt(leaves.size) > borders
    return np.asarray(sets[sets.any(axis=1)])


def _spans(n_steps: int, n_earlier: int) -> Floats:
    """Return single steps, spans of steps, and the day with each of the days before it, as weights."""
    times = n_steps + n_earlier
    at, day = np.arange(times), (np.arange(times) < n_steps).astype(np.float64)
    single = np.eye(n_steps, times)[:: max(1, n_steps // COMPARED)]
    ends = np.sort(np.rint((_waves(2, COMPARED).T * np.sqrt(COMPARED) + 1.0) * n_steps / 2), axis=1)
    longer = ((at >= ends[:, :1]) & (at < ends[:, 1:])).astype(np.float64)
    spans = np.vstack([day[None], single, longer, day + np.eye(times)[n_steps:]])
    return np.asarray(spans[spans.any(axis=1)])


def _waves(n_sums: int, n: int) -> Floats:
    """Return weights that are as good as random, (n_sums, n): cosines of quadratic phases.

    Nothing is drawn: the bytes of a release's file are a function of its measurements.
    """
    places = np.arange(1, n + 1, dtype=np.float64) ** 2
    phases = np.outer(np.sqrt(np.arange(2.0, n_sums + 2.0)), places)
    return np.asarray(np.cos(np.sqrt(2.0) * np.pi * phases) / np.sqrt(n))

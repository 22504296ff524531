"""A compact form of how errors hang together: a few terms, each a part of nodes times a part of steps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_covariance import CovarianceOfSums
from optstream.estimation.error_products import halves, wholes
from optstream.estimation.many_leaves.group_terms import GroupedNodes, grouped_nodes
from optstream.estimation.many_leaves.groups import in_line, leaves_below
from optstream.estimation.many_leaves.squares import Part
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
TOLERANCE = 2e-4
"""Relative: by how much a variance of those that are compared may differ from the exact one."""
TOLERANCE_OF_COUNTS = 0.01
"""The same of nodes of counts: each leaf varies by a shape of its own, and few terms do not have all."""
LEAST_OF_COUNTS = 1e-3
"""A variance of counts below it is compared as this: rounding to whole numbers alone has 1/12."""
PART, PART_OF_COUNTS = 0.2, 0.4
"""Of what is allowed: what matrices of times of nodes in groups may miss; the rest is left to squares."""
MOST_TERMS = 128
COMPARED = 24
"""Sets of leaves, and spans of steps, of which the variances are compared."""
MOST_FAMILIES = 64
"""Nodes of which all children, and every second one, are such sets."""
MOST_LOOKED_AT = 200
"""Nodes, of many, of which is seen how their errors hang together over time."""
LEAST_SQUARES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
"""Relative: squares of groups that count for less are left out; the first that gives the variances."""


@dataclass(frozen=True, eq=False)
class PairedNodes:
    """What the terms say of pairs of nodes, as a file lists them: each pair once, both orders of it together.

    Attributes:
        shape: How many terms and nodes there are.
        term, first, second: (n_pairs,), numbers of the term and of its two nodes.
        value: (n_pairs,), what the pair counts for.
    """

    shape: tuple[int, int]
    term: Integers
    first: Integers
    second: Integers
    value: Floats

    def __len__(self) -> int:
        return self.shape[0]

    def of_sum(self, weights: Floats) -> Floats:
        """Return what each term says of a sum of nodes, (n_terms,), by (n_nodes,)."""
        parts = self.value * weights[self.first] * weights[self.second]
        return np.bincount(self.term, parts, minlength=len(self)).astype(np.float64)

    def of_each(self) -> Floats:
        """Return what each term says of each node, (n_terms, n_nodes)."""
        found, own = np.zeros(self.shape), self.first == self.second
        found[self.term[own], self.first[own]] = self.value[own]
        return found


@dataclass(frozen=True, eq=False)
class ErrorTerms:
    """Covariances of the errors of one day: sums over terms of a factor of nodes times one of steps.

    Whether nodes or steps are ordered plays no role: `nodes` and `steps` are symmetric. For sums over a set
    of nodes and a set of steps that is exact, to `TOLERANCE`.

    Attributes:
        nodes: (n_terms, n_nodes, n_nodes), or the pairs of it; of many nodes what each counts alone and in
            groups.
        steps: (n_terms, n_steps, n_steps), in the squared unit of the readings.
        earlier: (n_terms, n_days), for the sum of all steps and that of each of the days before, the nearest
            first; n_days is 0 where days are independent.
    """

    nodes: Floats | PairedNodes | GroupedNodes
    steps: Floats
    earlier: Floats

    def variance(self, nodes: Floats, steps: Floats) -> float:
        """Return the variance of the errors' sum, weighted by (n_nodes,) and (n_steps,)."""
        return float(self.of_sum(nodes) @ np.einsum("rst,s,t->r", self.steps, steps, steps, optimize=True))

    def of_sum(self, nodes: Floats) -> Floats:
        """Return what each term says of a sum of nodes, (n_terms,), weighted by (n_nodes,)."""
        if not isinstance(self.nodes, np.ndarray):
            return self.nodes.of_sum(nodes)
        return np.asarray(np.einsum("rij,i,j->r", self.nodes, nodes, nodes, optimize=True))

    def of_each(self) -> Floats:
        """Return what each term says of each node, (n_terms, n_nodes)."""
        if not isinstance(self.nodes, np.ndarray):
            return self.nodes.of_each()
        return np.asarray(np.einsum("rnn->rn", self.nodes))


def error_terms(covariance: CovarianceOfSums, tree: AggregationTree, n_steps: int) -> ErrorTerms | None:
    """Return the terms of a covariance: as few as give its variances to a tolerance; None where `MOST_TERMS`
    are too few. Pure; free.

    Sums over sets of nodes and of steps weigh each pair of nodes alike in both orders. What is left of the
    covariance is a matrix of symmetric pairs of nodes by symmetric pairs of times, and its singular values
    fall fast: leaves that are estimated alike err alike. It is known as a sum of products already, in more
    terms, and the variances that are compared are exact.
    """
    from scipy.sparse import eye_array  # which a command's help does not wait for

    spans = _spans(n_steps, covariance.n_earlier)
    own = np.eye(n_steps, spans.shape[1])
    every = eye_array(len(tree.nodes), format="csr") if covariance.of_nodes else leaves_below(tree)
    if covariance.of_nodes or covariance.products(np.zeros((1, every.shape[1])), spans[:1]).groups:
        # a day before counts as one step: what such days have in common no term need tell
        lengths = np.r_[np.ones(n_steps), np.full(covariance.n_earlier, np.sqrt(n_steps))]
        products = covariance.products(every, np.diag(1.0 / lengths))
        return _in_groups(products.groups, tree, spans, n_steps, covariance.of_nodes)
    sets = _sets_of_leaves(tree)
    products = covariance.products(every.toarray(), np.eye(spans.shape[1]))
    found = products.principal(_errors(products.variances(None, own).sum(axis=1)), MOST_TERMS)
    exact = np.vstack([products.variances(None, spans), products.variances(sets, spans)])
    return _fewest(found, exact, sets, spans, n_steps)


def _fewest(
    products: Iterable[tuple[Floats, Floats]],
    exact: Floats,
    sets: Floats,
    spans: Floats,
    n_steps: int,
) -> ErrorTerms | None:
    """Return as few of the products as give the variances of the nodes and of some sets of them, to
    `TOLERANCE`; None where all are too few.
    """
    kept = []
    left = exact
    for nodes, steps in products:
        of_chosen = np.concatenate([nodes.diagonal(), ((sets @ nodes) * sets).sum(axis=1)])
        left = left - np.outer(of_chosen, ((spans @ steps) * spans).sum(axis=1))
        kept.append((nodes, steps))
        if (np.abs(left) <= TOLERANCE * exact).all():
            break
    else:
        return None
    of_nodes, of_steps = map(np.stack, zip(*kept, strict=True))
    earlier = of_steps[:, :n_steps, n_steps:].sum(axis=1)
    return ErrorTerms(of_nodes, of_steps[:, :n_steps, :n_steps], earlier)


def _in_groups(
    parts: tuple[Part, ...],
    tree: AggregationTree,
    spans: Floats,
    n_steps: int,
    are_counts: bool,
) -> ErrorTerms | None:
    """Return the terms of nodes in groups; None where `MOST_TERMS` are too few. parts: of nodes and times.

    The matrices of times are those that come nearest to what some nodes and sets of them have over all pairs
    of times; what all nodes have in these is exact, but for the squares that count for little.
    """
    own = np.diag(np.arange(spans.shape[1]) < n_steps)[None].astype(np.float64)
    scales = _errors(np.sum([one.told(own) for one in parts], axis=0)[:, 0])
    order = np.lexsort((scales, tree.depths))
    some = np.unique(order[np.linspace(0, scales.size - 1, MOST_LOOKED_AT).astype(np.int64)])
    looked = np.vstack([np.eye(1, scales.size, place) for place in some] + [_sets_of_nodes(tree)])
    of_looked = [one.of_sums(looked) for one in parts]
    exact = np.asarray(sum(one.variances(None, spans) for one in of_looked))
    both = np.asarray(sum(one.between for one in of_looked))  # one by one, for each is large
    least_known = LEAST_OF_COUNTS if are_counts else scales.min() ** 2  # above 0
    of_steps = np.maximum(np.einsum("xss->x", both[:, :n_steps, :n_steps]), least_known)
    directions = np.linalg.svd(halves(both / of_steps[:, None, None]), full_matrices=False)[2]
    times = wholes(directions[:MOST_TERMS], spans.shape[1])
    allowed = (TOLERANCE_OF_COUNTS if are_counts else TOLERANCE) * np.maximum(exact, least_known)
    n_terms = _n_terms(of_looked, times, spans, exact, (PART_OF_COUNTS if are_counts else PART) * allowed)
    if n_terms is None:
        return None
    times = times[:n_terms]
    of_spans = ((spans @ times) * spans).sum(axis=2)
    worths = np.abs(of_spans) @ (of_steps[:, None] / np.maximum(exact, least_known)).max(axis=0)
    twice, line = np.concatenate([times, -times]), in_line(tree)
    for least in LEAST_SQUARES[0 if are_counts else 4 :]:
        nodes = grouped_nodes(parts, line, times, scales, worths, least).rounded()
        found = nodes.of_sum(looked.T).T
        if (np.abs(found @ np.concatenate([of_spans, -of_spans]) - exact) <= allowed).all():
            earlier = np.sqrt(n_steps) * twice[:, :n_steps, n_steps:].sum(axis=1)
            return ErrorTerms(nodes, twice[:, :n_steps, :n_steps], earlier)
    return None


def _n_terms(
    parts: Sequence[Part], times: Floats, spans: Floats, exact: Floats, allowed: Floats
) -> int | None:
    """Return how many of the matrices of times give the variances to what is allowed; None if not all."""
    of_nodes = np.sum([part.told(times) for part in parts], axis=0)
    of_spans, left = ((spans @ times) * spans).sum(axis=2), exact.copy()
    for number, (nodes, of_times) in enumerate(zip(of_nodes.T, of_spans, strict=True), 1):
        left -= np.outer(nodes, of_times)
        if (np.abs(left) <= allowed).all():
            return number
    return None


def _errors(variances: Floats) -> Floats:
    """Return the roots of variances, above 0."""
    errors = np.sqrt(np.maximum(variances, 0.0))
    return np.asarray(np.maximum(errors, 1e-12 * float(errors.max()) or 1.0))


def _sets_of_leaves(tree: AggregationTree) -> Floats:
    """Return some sets of leaves, as weights of nodes."""
    return _sets_among(tree, tree.leaf_indices)


def _sets_of_nodes(tree: AggregationTree) -> Floats:
    """Return some sets of leaves, of nodes of a level and of the children of nodes, as weights of nodes."""
    parents = np.array(tree.parents)
    if parents.size == 1:
        return _sets_of_leaves(tree)
    above = np.unique(parents[1:])
    some = above[np.linspace(0, above.size - 1, 4).astype(np.int64)]
    children = [np.flatnonzero(parents == one) for one in some]
    every = [tree.leaf_indices, *(np.arange(one.start, one.stop) for one in tree.levels[1:]), *children]
    families = np.unique(above[np.linspace(0, above.size - 1, MOST_FAMILIES).astype(np.int64)])
    whole = (parents == families[:, None]).astype(np.float64)
    half = whole * (np.arange(parents.size) % 2)
    both = np.vstack([whole, half[half.any(axis=1)]])
    return np.vstack([*(_sets_among(tree, one)[::3] for one in every), both])


def _sets_among(tree: AggregationTree, nodes: Integers) -> Floats:
    """Return some sets of some nodes, as weights of all."""
    sets = np.zeros((COMPARED, len(tree.nodes)))
    borders = np.linspace(-0.8, 0.8, COMPARED)[:, None]
    sets[:, nodes] = _waves(COMPARED, nodes.size) * np.sqrt(nodes.size) > borders
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

"""A compact form of how errors hang together: a few terms, each a part of nodes times a part of steps."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_products import ErrorProducts
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
TOLERANCE = 2e-4
"""Relative: by how much a variance of those that are compared may differ from the exact one."""
TOLERANCE_OF_COUNTS = 0.01
"""The same of nodes of counts: each leaf varies by a shape of its own, and few terms do not have all."""
LEAST_OF_COUNTS = 1e-3
"""A variance of counts below it is compared as this: rounding to whole numbers alone has 1/12."""
MOST_TERMS = 96
MOST_EARLIER = 34
"""Days before a day with which its errors are said to hang together, where the estimate looks at them."""
COMPARED = 24
"""Sets of leaves, and spans of steps, of which the variances are compared."""


class CovarianceOfSums(Protocol):
    """What tells how the errors of leaves hang together: by weighted sums of leaves and of times.

    Times are the steps of a period, then the sums over each of `n_earlier` days before it, the nearest first.
    Where levels of a tree are trusted differently it tells of nodes in the place of leaves (`of_nodes`).
    """

    @property
    def n_earlier(self) -> int:
        """Days before; 0 where errors of days are independent."""

    @property
    def of_nodes(self) -> bool:
        """Whether weights are of all nodes of the tree, and not of its leaves."""

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of p times q sums adds up from, by weights (p, n_leaves), or (p,
        n_nodes) where it is of nodes, and (q, n_times).
        """


@dataclass(frozen=True, eq=False)
class SumsOfTimes:
    """What another covariance says of sums of its times.

    Attributes:
        inner: The other.
        times: (n_times, n_inner), weights: of a period's steps, then of the days before it.
        n_earlier: Of these days.
        factor: What variances are multiplied with.
    """

    inner: CovarianceOfSums
    times: Floats
    n_earlier: int
    factor: float

    @property
    def of_nodes(self) -> bool:
        """As the other says."""
        return self.inner.of_nodes

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of sums adds up from."""
        return self.inner.products(leaves, times @ self.times).scaled(self.factor)


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


@dataclass(frozen=True, eq=False)
class AskedTimes:
    """What the errors of a period hang together with, as sums of runs of steps.

    Attributes:
        weights: (n_times, n_runs): of the period's steps, then of the days before it.
        starts: (n_runs,), running index of each run's first step.
        lengths: (n_runs,), steps that follow each other on the public clock, within one day.
    """

    weights: Floats
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def of_steps(self) -> Floats:
        """The weights of single steps, (n_times, n_asked), from the first that is asked for to the last."""
        first = int(self.starts.min())
        found = np.zeros((len(self.weights), int((self.starts + self.lengths).max()) - first))
        for weights, start, length in zip(self.weights.T, self.starts - first, self.lengths, strict=True):
            found[:, start : start + length] = weights[:, None]
        return found


def times_before(days: PublicDays, steps: range, earliest: int, is_first: bool) -> AskedTimes:
    """Return what the errors of a period hang together with: each of its steps, then all steps of each whole
    day before it, the nearest first, up to `MOST_EARLIER`. A day is one run, or a few where clocks change.

    earliest: the first step that the estimate looks at. is_first: whether nothing was measured before that
    step: then its day counts as a whole one.
    """
    while is_first and days.day_of(earliest - 1) == days.day_of(earliest):
        earliest -= 1
    longest = MOST_EARLIER * (days.steps_per_day + 4)  # some days are longer
    before = np.arange(max(earliest, steps.start - longest), steps.start)
    clock = days.clock(before)
    of_days = clock // days.steps_per_day
    numbers = np.unique(of_days)[::-1]
    if numbers.size and days.day_of(int(before[0]) - 1) == numbers[-1]:
        numbers = numbers[:-1]  # of that day only the last steps are looked at
    asked = numbers[:MOST_EARLIER]
    is_first_of_run = np.ones(before.size, dtype=np.bool_)
    is_first_of_run[1:] = (np.diff(clock) != 1) | (np.diff(of_days) != 0)
    begins = np.flatnonzero(is_first_of_run)
    lengths = np.diff(begins, append=before.size)
    chosen = np.isin(of_days[begins], asked)
    begins, lengths = begins[chosen], lengths[chosen]
    n_steps, n_runs = len(steps), begins.size
    weights = np.zeros((n_steps + asked.size, n_steps + n_runs))
    weights[:n_steps, :n_steps] = np.eye(n_steps)
    weights[n_steps:, n_steps:] = of_days[begins] == asked[:, None]
    return AskedTimes(
        weights,
        np.concatenate([np.arange(steps.start, steps.stop), before[begins]]),
        np.concatenate([np.ones(n_steps, dtype=np.int64), lengths]),
    )

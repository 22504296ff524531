"""A compact form of error covariances: a few terms, each a factor of nodes times one of steps."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.groups import GroupedNodes, Part, grouped_nodes, in_line, leaves_below
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

# Covariances of weighted sums as a sum of products: a matrix of nodes times one of times, few of them.

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ErrorProducts:
    """The covariance of sums of leaves over sums of times, as a sum of products, symmetric in pairs.

    It is the sum over products of a matrix of nodes times one of times; and over any two columns a and b of
    column a times column b times forms[a, :, b, :].

    Attributes:
        nodes: (n_products, p, p), symmetric.
        times: (n_products, q, q), symmetric, in the squared unit of the readings.
        columns: (p, c), weights of the sums of leaves.
        forms: (c, q, c, q), in the same unit, with forms[a, s, b, t] = forms[b, t, a, s].
        groups: Shared parts of further groups of leaves, in place of matrices of many leaves.
    """

    nodes: Floats
    times: Floats
    columns: Floats
    forms: Floats
    groups: tuple[Part, ...] = ()

    @classmethod
    def of_groups(cls, groups: Iterable[Part], p: int, q: int) -> "ErrorProducts":
        """Return what groups of leaves alone share, in p sums over q sums of times."""
        nothing = np.zeros((0, p, p)), np.zeros((0, q, q)), np.zeros((p, 0)), np.zeros((0, q, 0, q))
        return cls(*nothing, tuple(groups))

    def joined(self, columns: Floats, forms: Floats) -> "ErrorProducts":
        """Return the sum of this and of what further columns, (p, d), with forms, (d, q, d, q), add."""
        n, (d, q) = self.columns.shape[1], forms.shape[:2]
        both = np.zeros((n + d, q, n + d, q))
        both[:n, :, :n], both[n:, :, n:] = self.forms, forms
        return replace(self, columns=np.column_stack([self.columns, columns]), forms=both)

    def plus(self, nodes: Floats, times: Floats) -> "ErrorProducts":
        """Return the sum of this and of further products, (n_further, p, p) and (n_further, q, q)."""
        every = np.concatenate([self.nodes, nodes]), np.concatenate([self.times, times])
        return replace(self, nodes=every[0], times=every[1])

    def scaled(self, factor: float) -> "ErrorProducts":
        """Return a multiple."""
        groups = tuple(one.scaled(factor) for one in self.groups)
        return replace(self, times=factor * self.times, forms=factor * self.forms, groups=groups)

    def of_sums(self, nodes: Floats, times: Floats) -> "ErrorProducts":
        """Return the same of sums of these sums, by weights (n_sums, p) and (n_spans, q)."""
        across = np.tensordot(self.forms @ times.T, times, axes=(1, 1)).transpose(0, 3, 1, 2)
        p = nodes.shape[0]
        return ErrorProducts(
            nodes @ self.nodes @ nodes.T if len(self.nodes) else np.zeros((0, p, p)),
            times @ self.times @ times.T,
            nodes @ self.columns,
            across,
            tuple(one.of_sums(nodes, times) for one in self.groups),
        )

    def variances(self, nodes: Floats | None = None, times: Floats | None = None) -> Floats:
        """Return the variances of the sums, (p, q), or of weighted sums of these."""
        columns = self.columns if nodes is None else nodes @ self.columns
        first, second, forms = self._pairs
        found: Floats | float = 0.0
        if len(self.nodes):
            found = _forms(self.nodes, nodes).T @ _forms(self.times, times)
        found = found + (columns[:, first] * columns[:, second]) @ _forms(forms, times)
        for one in self.groups:
            found = found + one.variances(nodes, times)
        return np.asarray(found)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Each unordered pair of columns, and its symmetric form for both orders, (n_pairs, q, q)."""
        first, second = np.triu_indices(self.columns.shape[1])
        forms = self.forms[first, :, second, :]
        both = np.where(first == second, 0.5, 1.0)[:, None, None]
        return first, second, both * (forms + forms.transpose(0, 2, 1))

    def principal(self, scales: Floats, most: int) -> Iterator[tuple[Floats, Floats]]:
        """Yield the `most` products that come nearest to the same sum, the largest first.

        In an orthonormal basis of the columns only the rest of the few `nodes` is factorised over all pairs
        of nodes. The products are then the singular vectors of a small matrix: a row for each pair of the
        basis and for each of the few, a column for each pair of times. `scales`, (p,), are the nodes' units
        of error.
        """
        basis, rest = np.linalg.qr(self.columns / scales[:, None])
        turned = np.tensordot(np.tensordot(rest, self.forms, axes=1), rest, axes=(2, 1)).transpose(0, 3, 1, 2)
        of_columns = halves(halves(0.5 * (turned + turned.transpose(0, 1, 3, 2))).transpose(2, 0, 1)).T
        nodes = self.nodes / np.outer(scales, scales)
        within = basis.T @ nodes @ basis
        left, remainder = np.linalg.qr(halves(nodes - basis @ within @ basis.T).T)
        times = halves(self.times)
        rows = np.vstack([of_columns + halves(within).T @ times, remainder @ times])
        for weight, of_times in zip(*_largest(rows, most), strict=True):
            inside, outside = np.split(weight, [len(of_columns)])
            found = basis @ wholes(inside, basis.shape[1]) @ basis.T + wholes(left @ outside, len(scales))
            yield found * np.outer(scales, scales), wholes(of_times, self.times.shape[1])


def _forms(matrices: Floats, weights: Floats | None) -> Floats:
    """Return what each matrix says of each sum alone, (..., n_sums). matrices: (..., p, p)."""
    if weights is None:
        return np.asarray(np.einsum("...ii->...i", matrices))
    return np.asarray(((weights @ matrices) * weights).sum(axis=-1))


def _largest(matrix: Floats, most: int) -> tuple[Floats, Floats]:
    """Return `most` or fewer rank-one terms nearest to a matrix, largest first, (n, n_rows), (n, n_columns).

    By its square, which leaves half the digits of small terms: more than enough here.
    """
    from scipy.linalg import eigh  # which a command's help does not wait for

    is_wide = len(matrix) <= matrix.shape[1]
    square = matrix @ matrix.T if is_wide else matrix.T @ matrix
    if not (np.isfinite(square).all() and square.any()):
        raise np.linalg.LinAlgError("the covariances are too large or too small for floats")
    n = len(square)
    vectors = eigh(square, subset_by_index=(max(n - most, 0), n - 1))[1].T[::-1]
    return (vectors, vectors @ matrix) if is_wide else (vectors @ matrix.T, vectors)


def outer_squares(rows: Floats) -> Floats:
    """Return each row times itself, (n, q, q)."""
    return np.asarray(rows[:, :, None] * rows[:, None, :])


def halves(matrices: Floats) -> Floats:
    """Return each pair once, so that lengths are those of whole matrices, (..., n_pairs)."""
    first, second = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., first, second] * np.where(first == second, 1.0, np.sqrt(2.0)))


def wholes(half: Floats, size: int) -> Floats:
    """Return the symmetric matrices, (..., size, size), from what `halves` made of them."""
    first, second = np.triu_indices(size)
    found = np.empty((*half.shape[:-1], size, size))
    once = half * np.where(first == second, 1.0, np.sqrt(0.5))
    found[..., first, second] = found[..., second, first] = once
    return found


# The error covariance of a period's estimate, by weighted sums of leaves and of times.

MOST_EARLIER = 34
"""Days before a day in its error covariance, where the estimate reads them."""


class CovarianceOfSums(Protocol):
    """The covariance of leaves' errors, by weighted sums of leaves and of times.

    Times are the steps of a period, then the sums over each of `n_earlier` days before it, the nearest first.
    Where levels of a tree are trusted differently it is of nodes in the place of leaves (`of_nodes`).
    """

    @property
    def n_earlier(self) -> int:
        """Days before; 0 where errors of days are independent."""

    @property
    def of_nodes(self) -> bool:
        """Whether weights are of all nodes of the tree, and not of its leaves."""

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return the covariance of sums, by weights of leaves or nodes, and of times (q, n_times)."""


@dataclass(frozen=True, eq=False)
class SumsOfTimes:
    """Another covariance over weighted sums of its times, (n_times, n_inner), times a factor."""

    inner: CovarianceOfSums
    times: Floats
    n_earlier: int
    factor: float

    @property
    def of_nodes(self) -> bool:
        """As the other says."""
        return self.inner.of_nodes

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return the covariance of sums, as a sum of products."""
        return self.inner.products(leaves, times @ self.times).scaled(self.factor)


@dataclass(frozen=True, eq=False)
class ErrorTimes:
    """The times of an error covariance, as sums of runs of steps.

    Attributes:
        weights: (n_times, n_runs): of the period's steps, then of the days before it.
        starts: (n_runs,), running index of each run's first step.
        lengths: (n_runs,), consecutive steps on the public clock, within one day.
    """

    weights: Floats
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def of_steps(self) -> Floats:
        """The weights of single steps, (n_times, n_steps), from the first to the last of the runs."""
        first = int(self.starts.min())
        found = np.zeros((len(self.weights), int((self.starts + self.lengths).max()) - first))
        for weights, start, length in zip(self.weights.T, self.starts - first, self.lengths, strict=True):
            found[:, start : start + length] = weights[:, None]
        return found


def times_before(days: PublicDays, steps: range, earliest: int, is_first: bool) -> ErrorTimes:
    """Return each step of a period, then each whole day before it, the nearest first, up to `MOST_EARLIER`.

    A day is one run, or a few where clocks change; the day of `earliest` counts as whole if nothing was
    measured before that step (`is_first`).
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
    return ErrorTimes(
        weights,
        np.concatenate([np.arange(steps.start, steps.stop), before[begins]]),
        np.concatenate([np.ones(n_steps, dtype=np.int64), lengths]),
    )


Integers = NDArray[np.int64]
TOLERANCE = 2e-4
"""Largest relative difference of a compared variance from the exact one."""
TOLERANCE_OF_COUNTS = 0.01
"""The same of nodes of counts: each leaf varies by a shape of its own, and few terms do not have all."""
LEAST_OF_COUNTS = 1e-3
"""A variance of counts below it is compared as this: rounding to whole numbers alone has 1/12."""
PART, PART_OF_COUNTS = 0.2, 0.4
"""Of the tolerance: the part of matrices of times of nodes in groups; the rest is for squares."""
MOST_TERMS = 128
COMPARED = 24
"""Sets of leaves, and spans of steps, of which the variances are compared."""
MOST_FAMILIES = 64
"""Nodes of which all children, and every second one, are such sets."""
MOST_LOOKED_AT = 200
"""Nodes, of many, whose error covariance over time is sampled."""
LEAST_SQUARES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
"""Relative: squares of groups that count for less are left out; the first that gives the variances."""


@dataclass(frozen=True, eq=False)
class PairedNodes:
    """The terms' entries for pairs of nodes, as a file lists them: each pair once, both orders together."""

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

    `nodes` and `steps` are symmetrised, which is exact, to `TOLERANCE`, for sums over a set of nodes and a
    set of steps.

    Attributes:
        nodes: (n_terms, n_nodes, n_nodes), or its pairs; of many nodes, by themselves and in groups.
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
    """Return as few terms as give a covariance's variances to a tolerance; None where `MOST_TERMS` are too
    few.

    The rest of the covariance is a matrix of symmetric pairs of nodes by symmetric pairs of times, whose
    singular values fall fast: leaves that are estimated alike err alike.
    """
    from scipy.sparse import eye_array  # which a command's help does not wait for

    spans = _spans(n_steps, covariance.n_earlier)
    own = np.eye(n_steps, spans.shape[1])
    every = eye_array(len(tree.nodes), format="csr") if covariance.of_nodes else leaves_below(tree)
    if covariance.of_nodes or covariance.products(np.zeros((1, every.shape[1])), spans[:1]).groups:
        # a day before counts as one step: no term need have the covariance of two such days
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
    """Return as few products as give the variances of nodes and of some sets to `TOLERANCE`, or None."""
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
    """Return the terms of nodes in groups; None where `MOST_TERMS` are too few.

    The matrices of times are those nearest to the parts of some nodes and sets of them over all pairs of
    times; the parts of all nodes in these are exact, but for negligible squares.
    """
    own = np.diag(np.arange(spans.shape[1]) < n_steps)[None].astype(np.float64)
    scales = _errors(np.sum([one.parts_of_times(own) for one in parts], axis=0)[:, 0])
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
    weights = np.abs(of_spans) @ (of_steps[:, None] / np.maximum(exact, least_known)).max(axis=0)
    twice, line = np.concatenate([times, -times]), in_line(tree)
    for least in LEAST_SQUARES[0 if are_counts else 4 :]:
        nodes = grouped_nodes(parts, line, times, scales, weights, least).rounded()
        found = nodes.of_sum(looked.T).T
        if (np.abs(found @ np.concatenate([of_spans, -of_spans]) - exact) <= allowed).all():
            earlier = np.sqrt(n_steps) * twice[:, :n_steps, n_steps:].sum(axis=1)
            return ErrorTerms(nodes, twice[:, :n_steps, :n_steps], earlier)
    return None


def _n_terms(
    parts: Sequence[Part], times: Floats, spans: Floats, exact: Floats, allowed: Floats
) -> int | None:
    """Return how many of the matrices of times give the variances to the tolerance; None if not all."""
    of_nodes = np.sum([part.parts_of_times(times) for part in parts], axis=0)
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
    """Return reproducible pseudo-random weights, (n_sums, n): cosines of quadratic phases."""
    places = np.arange(1, n + 1, dtype=np.float64) ** 2
    phases = np.outer(np.sqrt(np.arange(2.0, n_sums + 2.0)), places)
    return np.asarray(np.cos(np.sqrt(2.0) * np.pi * phases) / np.sqrt(n))


# Errors as sums of independent parts: from them follows the error of any sum of values.

BAND = 1.96
"""Standard errors on each side of a value in a band of 95 %."""
NOTHING = 1e-15
"""Relative: of the largest variance of a sum of times, where rounding alone is left."""


@dataclass(frozen=True)
class SumOfValues:
    """A sum of released values, and its standard errors.

    Attributes:
        value: The sum of the values as they are released, in their unit.
        standard_error: Of the estimate's whole error, as far as the mechanism knows it; None where it does
            not.
        noise_standard_error: Of the noise's part alone; None where that is not known.
        estimate: The sum before the lower bound, and of published values before rounding, which lift sums of
            values near the bound: the errors are of this sum.
    """

    value: float
    standard_error: float | None
    noise_standard_error: float | None
    estimate: float

    @property
    def band(self) -> tuple[float, float] | None:
        """A band of 95 % around the estimate; None where the whole error is not known."""
        if self.standard_error is None:
            return None
        return self.estimate - BAND * self.standard_error, self.estimate + BAND * self.standard_error


@dataclass(frozen=True, eq=False)
class ErrorFactor:
    """The errors of some series at some steps, as sums of independent parts of variance 1.

    `parts`, (n_series, n_steps, n_parts), are in the unit of the readings; the covariance of two values'
    errors is the scalar product of their rows.
    """

    parts: Floats
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = False

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return the covariance of sums, by weights of series, (p, n_series), and of steps, (q, n_steps)."""
        sums = np.tensordot(times, self.parts, axes=(1, 1))
        flat = sums.reshape(len(times), -1)
        # few numbers in time are drawn of each leaf: sums of times lie in as few directions
        squares, basis = np.linalg.eigh(flat @ flat.T)
        basis = basis[:, ~(squares < NOTHING * squares[-1])]  # also of what floats cannot hold
        parts = leaves @ np.tensordot(basis.T, sums, axes=1)
        first, second = np.triu_indices(len(parts))
        once = np.where(first == second, 0.25, 0.5)[:, None, None]
        of_nodes = np.concatenate([np.tensordot(parts[at:], one, (2, 1)) for at, one in enumerate(parts)])
        of_times = basis.T[first][:, :, None] * basis.T[second][:, None, :]
        nodes, of_both = (one + one.transpose(0, 2, 1) for one in (of_nodes, of_times))
        no_columns = np.zeros((len(leaves), 0)), np.zeros((0, len(times), 0, len(times)))
        return ErrorProducts(once * nodes, of_both, *no_columns)


@dataclass(frozen=True, eq=False)
class SeparableFactor:
    """An `ErrorFactor` with a part for each pair of a column of `series` and one of `steps`."""

    series: Floats
    steps: Floats
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = False

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return the covariance of sums, by weights of series, (p, n_series), and of steps, (q, n_steps)."""
        series, steps, n_times = leaves @ self.series, times @ self.steps, len(times)
        no_columns = np.zeros((len(leaves), 0)), np.zeros((0, n_times, 0, n_times))
        return ErrorProducts((series @ series.T)[None], (steps @ steps.T)[None], *no_columns)

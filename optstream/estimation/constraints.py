"""Public facts that an estimate keeps next to consistency and the lower bound, by cvxpy: post-processing."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.bounded import held_from_above
from optstream.estimation.least_squares import BoundRule
from optstream.estimation.problem import LeastSquares
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
Kind = Literal["at_most", "most_change", "never_falls", "totals"]

HOLDS = 1e-9  # of the largest value: a fact that is missed by less holds
CLASHES = 1e-9  # relative to the facts' smallest figure: the least miss that counts as a clash
FINE = 1e3  # the facts' smallest figure in the unit of the linear program, whose limits hold to 1e-7
DIGITS = 1e-13  # relative to the facts' largest figure: the error of sums of floats
PENALTY = 1e9
"""Weight of the square of a missed fact, in the metric of the estimate, where facts clash by less."""
TOLERANCES, NEVER = (1e-12, 1e-10), 1e-14
"""Of the solver: of an answer, tight first; of a clash, known before, for large multipliers look like one."""
MOST_TRIED = 100  # most clashing facts that are tried one by one; more take minutes, and an error names few
SURE = 1e-6  # relative to the program's least: a larger gap shows that the solver failed
NO_ANSWER = 1e300  # the gap where the solver had none
LEAST_ROOT = 1e-6
"""Relative to the median, the least square root of a weight: tiny weights must not end the solver."""


@dataclass(frozen=True, eq=False)
class Fact:
    """One public fact of a period, of the sum of some nodes' values, each times its weight. words: for
    errors. weights: by the node's place in `tree.nodes`. at_most: at each step. most_change: from one to the
    next. never_falls: `most` is 0. totals: over the steps it adds up to `most`. stated: in the words of the
    statement."""

    words: str
    weights: Mapping[int, float]
    kind: Kind
    most: float
    stated: Mapping[str, Any] = field(default_factory=dict)

    def over(self, n_steps: int) -> Floats:
        """Return the rows, (n_rows, n_steps), that times the sum are at most `most`."""
        falls = np.eye(n_steps)[:-1] - np.eye(n_steps)[1:]
        changes = {"never_falls": falls, "most_change": np.concatenate([falls, -falls])}
        return changes.get(self.kind, np.ones((1, n_steps)) if self.kind == "totals" else np.eye(n_steps))

    def beyond(self, values: Floats) -> Floats:
        """Return the rows for values, (n_nodes, n_steps), less `most`."""
        total = np.array([*self.weights.values()]) @ values[[*self.weights]]
        return self.over(values.shape[1]) @ total - self.most

    def missed(self, values: Floats) -> float:
        """Return by how much values miss the fact; 0 where they keep it."""
        beyond = self.beyond(values)
        return float(np.abs(beyond).max() if self.kind == "totals" else beyond.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Kept:
    """Values that keep facts, (n_nodes, n_steps), and the program's primal less dual objective."""

    values: Floats
    facts: tuple[Fact, ...]
    gap: float = 0.0
    converged: bool = True


def keep(
    facts: Sequence[Fact],
    tree: AggregationTree,
    estimate: tuple[LeastSquares, BoundRule],
    free: Floats,
    bounded: Floats,
    lower_bound: float,
    resolution: float,
) -> Kept:
    """Return the values nearest to an estimate that keep all facts, which must not `clash`. estimate: its
    least squares and the rule of its bound. free: without the lower bound; bounded: with it. "held" takes two
    steps (docs/decisions/0030-constraints.md)."""
    from optstream.estimation.rounding import BITS  # loads what settings alone do not need

    (problem, rule), start, found = estimate, free, Kept(bounded, tuple(facts))
    if rule == "held":
        if not _hold(facts, free):
            found = _nearest(facts, tree, problem, free, None)
            start = found.values
        problem = held_from_above(problem, tree, start)
    is_low = found.values[tree.leaf_indices].min() < lower_bound
    if is_low or (start is free and not _hold(facts, bounded)):
        second = _nearest(facts, tree, problem, start, lower_bound)
        gap, converged = max(found.gap, second.gap), found.converged and second.converged
        found = replace(second, gap=gap, converged=converged)
    if found.gap == NO_ANSWER or found.values is bounded:
        return replace(found, values=bounded)
    leaves, sums = np.maximum(found.values[tree.leaf_indices], lower_bound), _sums_of(facts, tree)
    for fact, own in zip(facts, np.split(sums.indices, sums.indptr[1:-1]), strict=True):
        if fact.kind == "at_most" and [*fact.weights.values()] == [1.0]:
            # a node at its bound is not rounded up if it is below by what rounding counts its leaves to
            floor = own.size * lower_bound
            room = max(fact.most - own.size * resolution * 2.0**-BITS - floor, 0.0)
            share = room / np.maximum(leaves[own].sum(axis=0) - floor, room or 1.0)
            leaves[own] = lower_bound + (leaves[own] - lower_bound) * share
    return replace(found, values=tree.add_up(leaves))


def _hold(facts: Sequence[Fact], values: Floats) -> bool:
    return max(fact.missed(values) for fact in facts) <= HOLDS * float(np.abs(values).max())


def _nearest(
    facts: Sequence[Fact],
    tree: AggregationTree,
    problem: LeastSquares,
    start: Floats,
    lower_bound: float | None,
) -> Kept:
    """Return the values nearest to `start` that keep all facts; `start` where the solver has no answer."""
    import cvxpy  # over a second, which nothing else needs
    from scipy.sparse import diags_array, kron, vstack

    n_steps, leaves, sums = start.shape[1], tree.leaf_indices, _sums_of(facts, tree)
    roots = np.sqrt(problem.weights).ravel()
    measured = np.flatnonzero(roots)
    unit = 1.0 / float(np.median(roots[measured]))
    roots = np.maximum(roots * unit, LEAST_ROOT)
    misfits = (diags_array(roots) @ kron(_leaves_below(tree), problem.rows)).tocsr()[measured]
    change = cvxpy.Variable(len(leaves) * n_steps)

    def solve(is_exact: bool) -> tuple[Any, list[Any]]:
        limits, cost = list[Any](), 0.5 * cvxpy.sum_squares(misfits @ change)
        for is_equal in (True, False):
            some = [number for number, fact in enumerate(facts) if (fact.kind == "totals") is is_equal]
            if not some:
                continue
            left = vstack([kron(sums[[one]], facts[one].over(n_steps)) for one in some]).tocsr() @ change
            limit = np.concatenate([-facts[one].beyond(start) / unit for one in some])
            if not is_exact:
                missed = cvxpy.Variable(limit.size)
                left, cost = left - missed, cost + PENALTY * cvxpy.sum_squares(missed)
            limits.append(left == limit if is_equal else left <= limit)
        if lower_bound is not None:
            limits.append(-change <= (start[leaves] - lower_bound).ravel() / unit)
        program = cvxpy.Problem(cvxpy.Minimize(cost), limits)
        for tolerance in TOLERANCES:
            reached = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
            reached |= dict.fromkeys(("tol_infeas_abs", "tol_infeas_rel"), NEVER)
            with warnings.catch_warnings(), suppress(cvxpy.SolverError):
                warnings.simplefilter("ignore")  # an inexact answer is stated
                if program.status != cvxpy.OPTIMAL:
                    program.solve(solver=cvxpy.CLARABEL, direct_solve_method="qdldl", **reached)
        return program, limits

    gap = NO_ANSWER
    for is_exact in (True, False):
        program, limits = solve(is_exact)
        if change.value is not None:
            gap = sum(float(np.abs(one.dual_value) @ np.abs(one.expr.value)) for one in limits)
            # where facts clash by little, the solver's optimum may be anywhere
            if gap <= SURE * (1.0 + program.value):
                break
    if change.value is None:
        return Kept(start, tuple(facts), NO_ANSWER, converged=False)
    values = start + tree.add_up(change.value.reshape(-1, n_steps) * unit)
    return Kept(values, tuple(facts), gap, program.status == cvxpy.OPTIMAL)


def _leaves_below(tree: AggregationTree) -> Any:
    """Return which leaves each node holds, (n_nodes, n_leaves)."""
    from scipy.sparse import csr_array, eye_array

    n_nodes = len(tree.nodes)
    # the root is the sum of the tree's nodes below it, not of a margin's too
    parts, wholes = (np.concatenate(one) for one in zip(*tree.sums[:1], *tree.sums[2:], strict=True))
    up = csr_array((np.ones(len(parts)), (wholes, parts)), shape=(n_nodes, n_nodes))
    found = own = eye_array(n_nodes).tocsr()[:, tree.leaf_indices]
    for _ in range(tree.n_levels):
        found = own + up @ found
    return found


def _sums_of(facts: Sequence[Fact], tree: AggregationTree) -> Any:
    """Return the weights of the leaves in each fact's sum, (n_facts, n_leaves)."""
    from scipy.sparse import csr_array

    entries = [(w, row, node) for row, fact in enumerate(facts) for node, w in fact.weights.items()]
    weights, rows, nodes = zip(*entries, strict=True)
    of_nodes = csr_array((weights, (rows, nodes)), shape=(len(facts), len(tree.nodes)))
    return of_nodes @ _leaves_below(tree)


def clash(
    facts: Sequence[Fact], tree: AggregationTree, n_steps: int, lower_bound: float
) -> tuple[tuple[Fact, ...], bool]:
    """Return facts that no values keep together, () where all can be kept, and whether the bound is one.

    Lemma: values that keep all facts exist if and only if constant ones do: the mean over the steps of values
    that keep them keeps each bound and total, which are convex, and neither changes nor falls. So one step
    decides. A linear program finds the least miss; where that is above 0, the facts with multipliers clash
    (Farkas). Of at most `MOST_TRIED` each is left out without which the others still do.
    """
    asked = [fact for fact in facts if fact.kind in ("at_most", "totals")]
    if not asked:
        return (), False
    import cvxpy

    sums = _sums_of(asked, tree)
    keys = np.sin(np.arange(1.0, len(asked) + 1)) @ sums  # which no sum of others equals
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    rows, is_total = sums[:, first], np.array([fact.kind == "totals" for fact in asked])
    figures = np.array([fact.most for fact in asked]) / np.where(is_total, n_steps, 1)
    sizes = [abs(one) for one in (*figures.tolist(), lower_bound) if one] or [1.0]
    unit = min(sizes) / FINE
    least_clash = CLASHES * FINE + DIGITS * max(sizes) / unit

    def multipliers(places: Sequence[int], bound: float | None) -> list[int]:
        """Return which of some facts have multipliers; none where they do not clash."""
        at = np.array(places)
        values, missed = cvxpy.Variable(len(counts)), cvxpy.Variable(len(at), nonneg=True)
        beyond = rows[at] @ values - figures[at] / unit
        limits = [beyond <= missed, cvxpy.multiply(is_total[at], -beyond) <= missed]
        floor = [] if bound is None else [values >= counts * bound / unit]
        least = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(missed)), [*limits, *floor])
        try:
            clashes = least.solve(solver=cvxpy.HIGHS) > least_clash
        except (ValueError, cvxpy.SolverError):  # no verdict of figures that lie too far apart
            clashes = False
        return at[sum(limit.dual_value != 0 for limit in limits) > 0].tolist() if clashes else []

    found = multipliers(range(len(asked)), lower_bound)
    bound = lower_bound if found and not multipliers(found, None) else None
    for place in found if len(found) <= MOST_TRIED else ():
        others = [one for one in found if one != place]
        if others and multipliers(others, bound):
            found = others
    return tuple(asked[place] for place in found), bound is not None

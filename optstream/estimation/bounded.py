"""The bounded estimate at any size: Newton's method on the inner nodes' multipliers."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import Optimality
from optstream.estimation.problem import LeastSquares
from optstream.estimation.system import Holders, System, holders_of, inverses, known_enough, product
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]

LEAST_WEIGHT = 2.0**-60  # relative to the leaves' largest weight: the least weight of any leaf's target
CHUNK = 1 << 16  # numbers that are looked at together, so that they stay in the processor's cache
MOST_ROUNDS = 100
SHORTEST = 2.0**-60  # of a Newton step, before the search gives up
LEAST_RISE = 1e-4  # of a step's predicted gain: less is no success
CLOSE = 1e-7  # in standard errors: how far any linear function of the answer may be from the optimum's
ROUGH = 1e-3  # of the first gap: how exactly a start is found from the steps alone, without features
HOLD = 100.0
"""How much more than measured a node counts in `held_from_above`, for each level above the deepest."""
MOST_HELD = 1e9  # how much more the root of a deep tree is held: beyond, a sum's rounding would count


@dataclass(frozen=True, eq=False)
class Pulls:
    """Multipliers of the dual program. above: (n_groups, n_steps), sums of the multipliers of the nodes above
    each group of leaves. claimed: (n_above, n_steps), the values of the nodes above at which these are their
    multipliers. of_parts, claimed_parts: (n_leaves, n_parts), likewise of the leaves' own features."""

    above: Floats
    claimed: Floats
    of_parts: Floats
    claimed_parts: Floats

    def moved(self, step: "Pulls", length: float) -> "Pulls":
        """Return these pulls plus so much of a step."""
        pairs = zip(vars(self).values(), vars(step).values(), strict=True)
        return Pulls(*(own + length * other for own, other in pairs))


@dataclass(eq=False)
class Point:
    """A point of the dual, and the values with which leaves answer it. sums: (n_groups, n_steps). shift:
    their change by the Newton step of the leaves' features. covariance: derivative of the sums by the
    multipliers from above, (n_groups, 1, n_steps, n_steps), or (n_groups, n_steps, 1, 1) without features.
    value: of the dual. gap: primal less dual; largest: its largest term. kept: for each chunk the inputs of
    its features' Newton step."""

    pulls: Pulls
    sums: Floats
    shift: Floats
    covariance: Floats
    value: float = 0.0
    gap: float = 0.0
    largest: float = 0.0
    kept: list[tuple[Floats, Floats, Floats, Floats]] = field(default_factory=list)


class Dual:
    """The dual of `solve_bounded`'s program, few numbers for each inner node and no constraint. Given the
    multipliers lambda from above and nu of its features, a leaf's value at each step is max(bound, y +
    (lambda + R' nu) / d): y its target there, d that target's weight, R the features' parts."""

    def __init__(self, problem: LeastSquares, holders: Holders, bounds: Floats) -> None:
        self.holders, self.groups, self.bounds = holders, holders.groups, bounds
        self.rows, self.n_steps = problem.rows, problem.rows.shape[1]
        self.weights, self.targets = (part[holders.above] for part in (problem.weights, problem.targets))
        self.leaf_weights, self.leaf_targets = problem.weights, problem.targets
        self.parts = np.ascontiguousarray(problem.rows[self.n_steps :])
        self.least = LEAST_WEIGHT * float(problem.weights[holders.leaves, : self.n_steps].max())
        pairs = self.parts[:, None, :] * self.parts[None, :, :]
        self.pairs = np.ascontiguousarray(pairs.reshape(-1, self.n_steps).T)
        if len(self.parts):
            weighted = self.weights[:, :, None] * self.rows[None]
            self.precision = np.matmul(self.rows.T[None], weighted)[:, None]
        else:
            self.precision = self.weights[:, :, None, None]

    def maximise(self, rough: Pulls | None = None, share: float = 0.0) -> tuple[Pulls, Optimality]:
        """Return the best multipliers, to a gap of `share` of the first one, and their certificate."""
        at = self._at(self._start(rough))
        enough, rounds = max(0.5 * (0.1 * CLOSE) ** 2, share * at.gap), 0
        while rounds < MOST_ROUNDS and at.gap > enough:
            found = None
            with suppress(np.linalg.LinAlgError):  # whether a day appears must not hang on a matrix
                found = self._searched(at)
            if found is None:
                break
            at, rounds = found, rounds + 1
        converged = bool(np.sqrt(2.0 * at.gap) <= CLOSE)
        return at.pulls, Optimality(at.gap, float(np.sqrt(at.largest)), rounds, converged)

    def values(self, pulls: Pulls) -> Floats:
        """Return the values of all leaves at these pulls, (n_leaves, n_steps), in `holders.leaves` order."""
        found = np.empty_like(self.bounds)
        for rows in self._chunks():
            found[rows] = self._respond(pulls, rows)[0]
        return found

    def _chunks(self) -> Iterator[slice]:
        """Yield all leaves, some at a time, as rows of `holders.leaves`."""
        size = max(1, CHUNK // (self.n_steps * max(len(self.parts), 1)))
        return (slice(at, at + size) for at in range(0, len(self.holders.leaves), size))

    def _searched(self, at: Point) -> Point | None:
        """Return a better point on the Newton step, its end if that will do; None if none is found."""
        (step, slope), length = self._newton(at), 1.0
        while length > SHORTEST:
            found = self._at(at.pulls.moved(step, length))
            # near the end the dual's rise is lost in rounding, the gap is not
            if found.value > at.value + LEAST_RISE * length * slope or found.gap < 0.25 * at.gap:
                return found
            length *= 0.5
        return None

    def _start(self, rough: Pulls | None) -> Pulls:
        """Return pulls with the values at which nodes pull so; without `rough` the free estimate's."""
        nodes, steps = self.holders.leaves, np.s_[:, : self.n_steps]
        weights, targets = (part[nodes, self.n_steps :] for part in (self.leaf_weights, self.leaf_targets))
        pulled = (self.weights * self.targets) @ self.rows
        if rough is None:
            above = self.groups.pulled(pulled)
            return Pulls(above, np.zeros_like(pulled), weights * targets, np.zeros_like(weights))
        pulled -= self.weights[steps] * (self.targets[steps] - rough.claimed)
        shape = (*self.precision.shape[:-1], 1)
        claimed = product(inverses(self.precision), pulled.reshape(shape)).reshape(pulled.shape)
        return Pulls(rough.above, claimed, np.zeros_like(weights), np.where(weights > 0, targets, 0.0))

    def _at(self, pulls: Pulls) -> Point:
        """Return the point with these pulls, in one pass over the leaves; only `kept` is of their size."""
        n_groups, n = pulls.above.shape
        shape = (n_groups, 1, n, n) if len(self.parts) else (n_groups, n, 1, 1)
        found = Point(pulls, np.zeros_like(pulls.above), np.zeros_like(pulls.above), np.zeros(shape))
        for rows in self._chunks():
            values, pull, inverse, free = self._respond(pulls, rows)
            off = values - self.leaf_targets[self.holders.leaves[rows], : self.n_steps]
            found.value += float(np.sum(0.5 * off**2 / inverse - pull * values))
            moves = np.where(free, inverse, 0.0)
            if len(self.parts):
                self._join_features(found, rows, values, moves)
            self._gather(found, rows, values, moves)
        off = self.weights * ((self.groups.sums(found.sums) - pulls.claimed) @ self.rows.T) ** 2
        claimed = self.weights * (self.targets**2 - (pulls.claimed @ self.rows.T) ** 2)
        found.value += 0.5 * float(np.sum(claimed))
        found.gap += 0.5 * float(off.sum())
        found.largest = max(found.largest, float(off.max(initial=0.0)))
        return found

    def _respond(self, pulls: Pulls, rows: slice) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Return some leaves' values, what pulls at them, 1/d, and which of the values are off the bound."""
        nodes = self.holders.leaves[rows]
        inverse = 1.0 / np.maximum(self.leaf_weights[nodes, : self.n_steps], self.least)
        pull = pulls.of_parts[rows] @ self.parts + pulls.above[self.holders.group[rows]]
        values = self.leaf_targets[nodes, : self.n_steps] + pull * inverse
        free = values >= self.bounds[rows]
        return np.where(free, values, self.bounds[rows]), pull, inverse, free

    def _join_features(self, found: Point, rows: slice, values: Floats, moves: Floats) -> None:
        """Eliminate the chunk's nu: nu + dnu = U (s - R z - R A (dlambda + R' dnu)), A = diag(moves)."""
        nodes, n_parts, pulls = self.holders.leaves[rows], len(self.parts), found.pulls
        weights, targets = (part[nodes, self.n_steps :] for part in (self.leaf_weights, self.leaf_targets))
        sums, claimed = values @ self.parts.T, pulls.claimed_parts[rows]
        off = weights * (sums - claimed) ** 2
        found.value += 0.5 * float(np.sum(weights * (targets**2 - claimed**2)))
        found.gap += 0.5 * float(off.sum())
        found.largest = max(found.largest, float(off.max(initial=0.0)))
        inside = (moves @ self.pairs).reshape(-1, n_parts, n_parts)
        solved = np.linalg.inv(np.eye(n_parts) + weights[:, :, None] * inside)
        missing = weights * (targets - sums) - pulls.of_parts[rows]
        own = np.matmul(solved, missing[..., None])[..., 0]
        found.kept.append((solved * weights[:, None, :], own, sums, moves))

    def _gather(self, found: Point, rows: slice, values: Floats, moves: Floats) -> None:
        """Add a chunk's values and their covariance, A - A R' (U^-1 + R A R')^-1 R A, to their groups."""
        group = self.holders.group[rows]
        begin = np.flatnonzero(np.diff(group, prepend=-1))
        groups, n_steps = group[begin], self.n_steps
        found.sums[groups] += np.add.reduceat(values, begin, axis=0)
        diagonal = np.add.reduceat(moves, begin, axis=0)
        if not len(self.parts):
            found.covariance[groups, :, 0, 0] += diagonal
            return
        gain, own, _, _ = found.kept[-1]
        found.shift[groups] += np.add.reduceat(moves * (own @ self.parts), begin, axis=0)
        right = self.parts[None] * moves[:, None, :]
        left = np.matmul(gain, right)
        ends = [*begin[1:].tolist(), len(values)]
        for at, end, number in zip(begin.tolist(), ends, groups.tolist(), strict=True):
            one, other = (part[at:end].reshape(-1, n_steps) for part in (right, left))
            found.covariance[number, 0] -= one.T @ other
        every = np.arange(n_steps)
        found.covariance[groups[:, None], 0, every, every] += diagonal

    def _newton(self, at: Point) -> tuple[Pulls, float]:
        """Return the step to the maximum of the dual's quadratic piece, and how fast the dual rises on it."""
        pulls = at.pulls
        system = System(self.groups, self.precision, at.covariance)
        missed = pulls.claimed - self.groups.sums(at.sums)
        right = missed - self.groups.sums(at.shift)
        step, change = system.solve(right.reshape((*self.precision.shape[:-1], 1)))
        claimed = -product(system.noise, step).reshape(right.shape)
        change, slope = change.reshape(pulls.above.shape), float(np.sum(missed * step.reshape(right.shape)))
        of_parts, claims = np.empty_like(pulls.of_parts), np.empty_like(pulls.claimed_parts)
        # without features nothing is kept, and there is nothing to do
        for rows, (gain, own, sums, moves) in zip(self._chunks(), at.kept, strict=False):
            moved = change[self.holders.group[rows]]
            of_parts[rows] = own - np.matmul(gain, ((moves * moved) @ self.parts.T)[..., None])[..., 0]
            answered = sums + (moves * (moved + of_parts[rows] @ self.parts)) @ self.parts.T
            claims[rows] = answered - pulls.claimed_parts[rows]
            slope += float(np.sum((pulls.claimed_parts[rows] - sums) * of_parts[rows]))
        return Pulls(change, claimed, of_parts, claims), slope


def solve_bounded(
    problem: LeastSquares, tree: AggregationTree, lower_bound: float, free: Floats
) -> tuple[Floats, Optimality]:
    """Solve the quadratic program of one period, with a bound on the leaves.

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2 / 2
        subject to z >= lower_bound

    over leaf series z (n_leaves, n_steps), S adding them up over the tree.

    The dual (`Dual`) is smooth, concave, unconstrained and quadratic in pieces, so Newton's method with a
    line search ends after finitely many steps. nu is eliminated leaf by leaf, leaves family by family, and
    one pass up and down the inner nodes solves the rest. The gap between primal and dual is sum(weights / 2 *
    (claimed - actual values)^2), known without cancellation.

    Time of a round: leaves times steps, and inner nodes times steps^3 (steps without features). Weights are
    above 0 at all steps of the leaves, and at all or none of an inner node's; the answer is sought as a
    change of `free`, any series that add up. The bound and the sums hold also without convergence. Source:
    semismooth Newton on the dual (Qi and Sun 1993; Li, Sun and Toh 2018);
    docs/decisions/0015-bounded-program.md.
    """
    holders = holders_of(tree)
    bounds = lower_bound - free[holders.leaves]
    weights = known_enough(problem.weights, tree)
    change = LeastSquares(problem.rows, problem.targets - free @ problem.rows.T, weights)
    dual, rough, n_steps = Dual(change, holders, bounds), None, problem.rows.shape[1]
    if len(problem.rows) > n_steps:
        of_steps = LeastSquares(np.eye(n_steps), change.targets[:, :n_steps], weights[:, :n_steps])
        rough = Dual(of_steps, holders, bounds).maximise(share=ROUGH)[0]
    pulls, optimality = dual.maximise(rough)
    moved = dual.values(pulls)
    values = np.empty_like(free)
    values[holders.leaves] = np.where(moved > bounds, free[holders.leaves] + moved, lower_bound)
    return tree.add_up(np.maximum(values[tree.leaf_indices], lower_bound)), optimality


def held_from_above(problem: LeastSquares, tree: AggregationTree, free: Floats) -> LeastSquares:
    """Return the program that keeps parents at their estimates, `free`, and lets children pay for the bound:
    a node counts `HOLD` times as much as its children (docs/decisions/0015-bounded-program.md)."""
    heights = tree.heights
    factors = min(HOLD, MOST_HELD ** (1.0 / max(heights.max(), 1))) ** heights.astype(np.float64)
    return replace(problem, targets=free @ problem.rows.T, weights=problem.weights * factors[:, None])

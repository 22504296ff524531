"""The bounded estimate at any size: Newton's method on the inner nodes' multipliers."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import Optimality
from optstream.estimation.lattice import Parts, System, inverses, known_enough, parts_of
from optstream.estimation.problem import Families, LeastSquares
from optstream.stream import AggregationTree
from optstream.stream.lattice import Lattice

# What leaves answer to what pulls at them from above: bounded values, and how these move.

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_WORTH = 2.0**-60
"""Of the leaves' largest weight: a leaf of which less is known is held to its target by this much."""
CHUNK = 1 << 16
"""Numbers that are looked at together, so that they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Pulls:
    """A point of the dual program.

    Attributes:
        above: (n_inner, n_steps), the sum of the multipliers of an inner node and of all above it.
        claimed: (n_inner, n_steps), the inner nodes' values at which these are their multipliers.
        of_parts: (n_leaves, n_parts), multipliers of the leaves' own features.
        claimed_parts: (n_leaves, n_parts), the sums at which these are their multipliers.
    """

    above: Floats
    claimed: Floats
    of_parts: Floats
    claimed_parts: Floats

    def moved(self, step: "Pulls", length: float) -> "Pulls":
        """Return the point that lies `length` times the step from this one."""
        return Pulls(
            self.above + length * step.above,
            self.claimed + length * step.claimed,
            self.of_parts + length * step.of_parts,
            self.claimed_parts + length * step.claimed_parts,
        )


@dataclass(eq=False)
class Answers:
    """The leaves' values at a point of the dual.

    Attributes:
        sums: (n_inner, n_steps), the leaves' values added up over each inner node's own leaves.
        shift: The same shape: the change of the sums by the Newton step of the leaves' features.
        covariance: Derivative of the sums by the multipliers from above: (n_inner, 1, n_steps, n_steps), or
            (n_inner, n_steps, 1, 1) without features, for then steps do not depend on each other.
        dual: The leaves' part of the dual objective.
        gap: The leaves' part of the gap between primal and dual.
        largest: The largest term of that part, a squared number of standard deviations.
        kept: For each chunk of leaves the inputs of the Newton step of its features.
    """

    sums: Floats
    shift: Floats
    covariance: Floats
    dual: float = 0.0
    gap: float = 0.0
    largest: float = 0.0
    kept: list[tuple[Floats, Floats, Floats, Floats]] = field(default_factory=list)


class Leaves:
    """The leaves of a problem, family by family.

    Given the multipliers lambda from above and nu of its features, a leaf's value at each step by itself is
    max(bound, y + (lambda + R' nu) / d): y its target there, d that target's weight, R the features' parts.
    nu solves as many equations as there are parts.
    """

    def __init__(self, problem: LeastSquares, families: Families, bounds: Floats) -> None:
        self.problem, self.families, self.bounds = problem, families, bounds
        self.n_steps = problem.rows.shape[1]
        self.parts = np.ascontiguousarray(problem.rows[self.n_steps :])
        self.least = LEAST_WORTH * float(problem.weights[families.leaves, : self.n_steps].max())
        n_parts = len(self.parts)
        pairs = (self.parts[:, None, :] * self.parts[None, :, :]).reshape(n_parts**2, self.n_steps)
        self.pairs = np.ascontiguousarray(pairs.T)

    def chunks(self) -> Iterator[tuple[slice, Integers]]:
        """Yield all leaves, some at a time: their rows in `families.leaves`, and their places in the tree."""
        size = max(1, CHUNK // (self.n_steps * max(len(self.parts), 1)))
        for at in range(0, len(self.families.leaves), size):
            rows = slice(at, at + size)
            yield rows, self.families.leaves[rows]

    def values(self, pulls: Pulls) -> Floats:
        """Return the values of all leaves at these pulls, (n_leaves, n_steps), in `families.leaves` order."""
        found = np.empty_like(self.bounds)
        for rows, nodes in self.chunks():
            found[rows] = self._respond(pulls, rows, nodes)[0]
        return found

    def answer(self, pulls: Pulls) -> Answers:
        """Return all leaves' values at a point of the dual, in one pass; only `kept` is of their size."""
        n_inner, n_steps, n_parts = len(pulls.above), self.n_steps, len(self.parts)
        shape = (n_inner, 1, n_steps, n_steps) if n_parts else (n_inner, n_steps, 1, 1)
        found = Answers(np.zeros((n_inner, n_steps)), np.zeros((n_inner, n_steps)), np.zeros(shape))
        for rows, nodes in self.chunks():
            values, pull, inverse, free = self._respond(pulls, rows, nodes)
            off = values - self.problem.targets[nodes, :n_steps]
            found.dual += float(np.sum(0.5 * off**2 / inverse - pull * values))
            moves = np.where(free, inverse, 0.0)
            if n_parts:
                self._join_features(found, pulls, rows, values, moves)
            if n_inner:
                self._gather(found, rows, values, moves)
        return found

    def features_step(self, pulls: Pulls, found: Answers, change: Floats) -> tuple[Floats, Floats, float]:
        """Return the Newton step of `of_parts` and `claimed_parts`, given the step `change` of the
        multipliers from above, and the slope of the dual along it.
        """
        of_parts, claims = np.empty_like(pulls.of_parts), np.empty_like(pulls.claimed_parts)
        slope = 0.0
        # without features nothing is kept, and there is nothing to do
        for (rows, _), (gain, own, sums, moves) in zip(self.chunks(), found.kept, strict=False):
            moved = change[self.families.family[rows]] if len(change) else np.zeros_like(moves)
            of_parts[rows] = own - np.matmul(gain, ((moves * moved) @ self.parts.T)[..., None])[..., 0]
            answered = sums + (moves * (moved + of_parts[rows] @ self.parts)) @ self.parts.T
            claims[rows] = answered - pulls.claimed_parts[rows]
            slope += float(np.sum((pulls.claimed_parts[rows] - sums) * of_parts[rows]))
        return of_parts, claims, slope

    def _respond(
        self, pulls: Pulls, rows: slice, nodes: Integers
    ) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Return some leaves' values, what pulls at them, 1/d, and which of the values are off the bound."""
        inverse = 1.0 / np.maximum(self.problem.weights[nodes, : self.n_steps], self.least)
        pull = pulls.of_parts[rows] @ self.parts
        if len(pulls.above):
            pull += pulls.above[self.families.family[rows]]
        values = self.problem.targets[nodes, : self.n_steps] + pull * inverse
        free = values >= self.bounds[rows]
        return np.where(free, values, self.bounds[rows]), pull, inverse, free

    def _join_features(
        self, found: Answers, pulls: Pulls, rows: slice, values: Floats, moves: Floats
    ) -> None:
        """Eliminate the chunk's nu: nu + dnu = U (s - R z - R A (dlambda + R' dnu)), A = diag(moves)."""
        nodes, n_parts = self.families.leaves[rows], len(self.parts)
        weights = self.problem.weights[nodes, self.n_steps :]
        targets = self.problem.targets[nodes, self.n_steps :]
        sums, claimed = values @ self.parts.T, pulls.claimed_parts[rows]
        off = weights * (sums - claimed) ** 2
        found.dual += 0.5 * float(np.sum(weights * (targets**2 - claimed**2)))
        found.gap += 0.5 * float(off.sum())
        found.largest = max(found.largest, float(off.max(initial=0.0)))
        inside = (moves @ self.pairs).reshape(-1, n_parts, n_parts)
        solved = np.linalg.inv(np.eye(n_parts) + weights[:, :, None] * inside)
        missing = weights * (targets - sums) - pulls.of_parts[rows]
        own = np.matmul(solved, missing[..., None])[..., 0]
        found.kept.append((solved * weights[:, None, :], own, sums, moves))

    def _gather(self, found: Answers, rows: slice, values: Floats, moves: Floats) -> None:
        """Add a chunk's values and their covariance, A - A R' (U^-1 + R A R')^-1 R A, to their families."""
        family = self.families.family[rows]
        begin = np.flatnonzero(np.concatenate([[True], family[1:] != family[:-1]]))
        families, n_steps = family[begin], self.n_steps
        found.sums[families] += np.add.reduceat(values, begin, axis=0)
        diagonal = np.add.reduceat(moves, begin, axis=0)
        if not len(self.parts):
            found.covariance[families, :, 0, 0] += diagonal
            return
        gain, own, _, _ = found.kept[-1]
        found.shift[families] += np.add.reduceat(moves * (own @ self.parts), begin, axis=0)
        right = self.parts[None] * moves[:, None, :]
        left = np.matmul(gain, right)
        ends = [*begin[1:].tolist(), len(values)]
        for at, end, number in zip(begin.tolist(), ends, families.tolist(), strict=True):
            one, other = (part[at:end].reshape(-1, n_steps) for part in (right, left))
            found.covariance[number, 0] -= one.T @ other
        every = np.arange(n_steps)
        found.covariance[families[:, None], 0, every, every] += diagonal


# The dual of the bounded program: few numbers for each inner node, and no constraint.


MOST_ROUNDS = 100
SHORTEST = 2.0**-60
"""Of a Newton step, before the search gives up."""
LEAST_RISE = 1e-4
"""Of a step's predicted gain: less is no success."""
CLOSE = 1e-7
"""In standard errors: how far any linear function of the answer may be from the optimum's."""


@dataclass(frozen=True, eq=False)
class _At:
    """A dual point, what leaves answer there, the dual's value, the gap and its largest term."""

    pulls: Pulls
    answers: Answers
    value: float
    gap: float
    largest: float


class Dual:
    """The dual of `solve_bounded`'s program, and Newton's method on it.

    `precision` is W of the inner nodes, (n_inner, 1, n_steps, n_steps), and `pulled` W y; without features
    steps are problems by themselves, (n_inner, n_steps, 1, 1) and (n_inner, n_steps, 1).
    """

    def __init__(self, problem: LeastSquares, families: Families, bounds: Floats) -> None:
        self.problem, self.families = problem, families
        self.leaves = Leaves(problem, families, bounds)
        rows, self.weights = problem.rows, problem.weights[families.inner]
        self.targets = problem.targets[families.inner]
        pulled = (self.weights * self.targets) @ rows
        self.flat = pulled.shape
        if len(rows) > rows.shape[1]:
            self.precision = np.matmul(rows.T[None], self.weights[:, :, None] * rows[None])[:, None]
            self.pulled = pulled[:, None, :]
        else:
            self.precision, self.pulled = self.weights[:, :, None, None], pulled[:, :, None]

    def maximise(self, above: Floats | None, share: float = 0.0) -> tuple[Pulls, Optimality]:
        """Return the best multipliers and their certificate, from `above` on, 0 if None.

        A gap of `share` of the first one is good enough.
        """
        at = self._at(self._start(above))
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

    def _searched(self, at: _At) -> _At | None:
        """Return a better point on the Newton step, its end if that will do; None if none is found."""
        (step, slope), length = self._newton(at), 1.0
        while length > SHORTEST:
            found = self._at(at.pulls.moved(step, length))
            # near the end the dual's rise is lost in rounding, the gap is not
            if found.value > at.value + LEAST_RISE * length * slope or found.gap < 0.25 * at.gap:
                return found
            length *= 0.5
        return None

    def _at(self, pulls: Pulls) -> _At:
        rows, answers = self.problem.rows, self.leaves.answer(pulls)
        off = self.weights * ((self.families.add_up(answers.sums) - pulls.claimed) @ rows.T) ** 2
        claimed = self.weights * (self.targets**2 - (pulls.claimed @ rows.T) ** 2)
        return _At(
            pulls,
            answers,
            value=answers.dual + 0.5 * float(np.sum(claimed)),
            gap=answers.gap + 0.5 * float(off.sum()),
            largest=max(answers.largest, float(off.max(initial=0.0))),
        )

    def _start(self, above: Floats | None) -> Pulls:
        """Return pulls with the values at which nodes pull so: W^-1 (W y - mu), 0 without measurements."""
        n_steps, leaves = self.flat[1], self.families.leaves
        weights, targets = (part[leaves, n_steps:] for part in (self.problem.weights, self.problem.targets))
        pulls = np.zeros(self.flat) if above is None else above
        claimed = np.zeros(self.pulled.shape)
        known = np.abs(self.precision).max(axis=(2, 3), initial=0.0) > 0
        left = (self.pulled - self.families.own_parts(pulls).reshape(claimed.shape))[known]
        claimed[known] = np.linalg.solve(self.precision[known], left[..., None])[..., 0]
        return Pulls(
            pulls, claimed.reshape(self.flat), np.zeros(weights.shape), np.where(weights > 0, targets, 0.0)
        )

    def _newton(self, at: _At) -> tuple[Pulls, float]:
        """Return the step to the maximum of the dual's quadratic piece, and how fast the dual rises on it."""
        pulls, answers = at.pulls, at.answers
        above, claimed = (part.reshape(self.flat) for part in self._piece_maximum(pulls, answers))
        change = above - pulls.above
        of_parts, claims, slope = self.leaves.features_step(pulls, answers, change)
        missed = pulls.claimed - self.families.add_up(answers.sums)
        slope += float(np.sum(missed * self.families.own_parts(change)))
        return Pulls(change, claimed - pulls.claimed, of_parts, claims), slope

    def _piece_maximum(self, pulls: Pulls, answers: Answers) -> tuple[Floats, Floats]:
        """Return the multipliers from above and the inner nodes' values at which both fit, if leaves are
        linear.

        x_n = mean_n + C_n lambda_n, sums of leaves at first; lambda_n = lambda_parent + W_n (y_n - x_n). So
        lambda_n = (1 + W C)^-1 (lambda_parent + W (y - mean)): upwards x_n as a function of lambda_parent
        joins the parent's, downwards all are known. Neither W nor C is inverted: either may be singular.
        """
        shape, up = self.pulled.shape, self.families.up
        covariance = answers.covariance.copy()
        mean = (answers.sums + answers.shift).reshape(shape) - _times(covariance, pulls.above.reshape(shape))
        one, solved = np.eye(shape[-1]), {}
        for number, level in reversed(list(enumerate(self.families.levels))):
            below = covariance[level]
            wanted = self.pulled[level] - _times(self.precision[level], mean[level])
            right = np.concatenate([wanted[..., None], np.broadcast_to(one, below.shape)], axis=-1)
            solved[number] = np.linalg.solve(one + self.precision[level] @ below, right)
            if number:
                np.add.at(mean, up[level], mean[level] + _times(below, solved[number][..., 0]))
                np.add.at(covariance, up[level], below @ solved[number][..., 1:])
        above, claimed = np.zeros(shape), np.zeros(shape)
        for number, level in enumerate(self.families.levels):
            over = above[up[level]] if number else np.zeros((len(level), *shape[1:]))
            above[level] = solved[number][..., 0] + _times(solved[number][..., 1:], over)
            claimed[level] = mean[level] + _times(covariance[level], above[level])
        return above, claimed


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.matmul(matrices, vectors[..., None])[..., 0])


# The bounded estimate of a lattice: the tree's Newton method, with the lattice's own system for a step.


def solve_bounded_lattice(
    problem: LeastSquares, lattice: Lattice, lower_bound: float, free: Floats
) -> tuple[Floats, Optimality]:
    """Solve the program of `solve_bounded` for a lattice.

    Its dual is the tree's, but a cell has holders in two ways, so the Newton step is a solve of `System` in
    place of passes along a tree, D being the derivative of the cells by the multipliers from above.
    """
    parts, leaves = parts_of(lattice), lattice.leaf_indices
    weights = known_enough(problem.weights, parts)
    change = LeastSquares(problem.rows, problem.targets - free @ problem.rows.T, weights)
    dual = LatticeDual(change, parts, lower_bound - free[leaves])
    pulls, optimality = dual.maximise(None)
    moved = dual.leaves.values(pulls)
    cells = np.where(moved > dual.leaves.bounds, free[leaves] + moved, lower_bound)
    return lattice.add_up(np.maximum(cells, lower_bound)), optimality


@dataclass(frozen=True, eq=False)
class _Cells(Families):
    """Cells as `Leaves` takes them, each by itself, and the nodes above, which add up both ways."""

    parts: Parts

    def add_up(self, own: Floats) -> Floats:
        return self.parts.sums(own)


class LatticeDual(Dual):
    """The dual of a lattice's program; `Pulls.above` is of each cell, `claimed` of each node above."""

    def __init__(self, problem: LeastSquares, parts: Parts, bounds: Floats) -> None:
        none, every = np.zeros(0, dtype=np.int64), np.arange(len(parts.leaves))
        self.parts = parts
        super().__init__(problem, _Cells(parts.leaves, every, parts.above, none, (), parts), bounds)
        self.variances = inverses(self.precision)

    def _start(self, above: Floats | None) -> Pulls:
        """Return the pulls that leave the free estimate where it is, but for the bound."""
        n_steps, leaves = self.flat[1], self.parts.leaves
        weights, targets = (part[leaves, n_steps:] for part in (self.problem.weights, self.problem.targets))
        pulled = self.parts.pulled(self.pulled.reshape(self.flat))
        return Pulls(pulled, np.zeros(self.flat), weights * targets, np.zeros(weights.shape))

    def _newton(self, at: Any) -> tuple[Pulls, float]:
        """Return the step to the maximum of the dual's quadratic piece, and how fast the dual rises on it."""
        pulls, answers = at.pulls, at.answers
        system = System(self.parts, self.precision, answers.covariance)
        missed = pulls.claimed - self.parts.sums(answers.sums)
        right = missed - self.parts.sums(answers.shift)
        step = system.solve(right.reshape(self.pulled.shape)[..., None])
        claimed = -(self.variances @ step).reshape(self.flat)
        step = step.reshape(self.flat)
        change = self.parts.pulled(step)
        of_parts, claims, slope = self.leaves.features_step(pulls, answers, change)
        return Pulls(change, claimed, of_parts, claims), slope + float(np.sum(missed * step))


ROUGH = 1e-3
"""Of the first gap: how exactly a start is found from the steps alone, without features."""
HOLD = 100.0
"""How much more than measured a node counts in `held_from_above`, for each level above the deepest."""
MOST_HELD = 1e9
"""How much more the root of a deep tree is held: beyond, a sum's rounding would count."""


def solve_bounded(
    problem: LeastSquares,
    tree: AggregationTree,
    lower_bound: float,
    free: Floats,
    families: Families | None = None,
) -> tuple[Floats, Optimality]:
    """Solve the quadratic program of one period, with a bound on the leaves.

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2 / 2
        subject to z >= lower_bound

    over leaf series z (n_leaves, n_steps), S adding them up over the tree.

    Method: the multiplier at a leaf from above is the sum of its ancestors' multipliers mu_n = W_n (y_n -
    x_n), few numbers, for inner nodes are few. Given that sum lambda and the multipliers nu of its own
    features, a leaf's value at each step is explicit (`Leaves`). So the dual is a smooth concave function of
    mu and nu without constraints, quadratic in pieces, and Newton's method with a line search ends after
    finitely many steps. nu is eliminated leaf by leaf, leaves family by family, and one pass up and down the
    inner nodes solves the rest. The gap between primal and dual is sum(weights / 2 * (claimed - actual
    values)^2), known at each step without cancellation.

    Time of a round: leaves times steps, and inner nodes times steps^3 (inner nodes times steps without
    features). Memory: nodes times steps, and inner nodes times steps^2. Weights are above 0 at all steps of
    the leaves, and at all or none of an inner node's; the answer is sought as a change of `free`, any series
    that add up, so that large values cost no digits. Leaves are at least the bound and inner nodes their sums
    also where the certificate says that the optimum was not reached.

    Source: semismooth Newton on the dual (Qi and Sun 1993, "A nonsmooth version of Newton's method"; Li, Sun
    and Toh 2018 for such a dual with a line search); alternatives: docs/decisions/0015-bounded-program.md.
    """
    if isinstance(tree, Lattice):
        return solve_bounded_lattice(problem, tree, lower_bound, free)
    families = families or Families.of(tree)
    n_steps = problem.rows.shape[1]
    bounds = lower_bound - free[families.leaves]
    change = LeastSquares(problem.rows, problem.targets - free @ problem.rows.T, problem.weights)
    above = None
    if len(problem.rows) > n_steps:
        of_steps = LeastSquares(
            change.rows[:n_steps], change.targets[:, :n_steps], change.weights[:, :n_steps]
        )
        above = Dual(of_steps, families, bounds).maximise(None, ROUGH)[0].above
    dual = Dual(change, families, bounds)
    pulls, optimality = dual.maximise(above)
    moved = dual.leaves.values(pulls)
    values = np.empty_like(free)
    values[families.leaves] = np.where(moved > bounds, free[families.leaves] + moved, lower_bound)
    leaves = np.maximum(values[tree.leaf_indices], lower_bound)
    return tree.add_up(leaves), optimality


def held_from_above(problem: LeastSquares, tree: AggregationTree, free: Floats) -> LeastSquares:
    """Return the program that keeps parents at their estimates and lets children pay for the bound.

    Targets are the estimate without the bound, `free`, and a node counts `HOLD` times as much as its
    children. The plain program is the most likely series of all that respect the bound, and biased: of many
    leaves near the bound those that noise took up stay, and their sum takes the parent along, however well
    that is known. Here the bound is paid for within the smallest subtree that can. Measured in
    docs/decisions/0015-bounded-program.md.
    """
    heights = tree.heights
    factors = min(HOLD, MOST_HELD ** (1.0 / max(heights.max(), 1))) ** heights.astype(np.float64)
    return LeastSquares(problem.rows, free @ problem.rows.T, problem.weights * factors[:, None])

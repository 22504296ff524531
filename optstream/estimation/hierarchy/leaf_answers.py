"""What leaves answer to what pulls at them from above: bounded values, and how these move."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.families import Families
from optstream.estimation.hierarchy.problem import LeastSquares

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_WORTH = 2.0**-60
"""Of the leaves' largest weight: a leaf of which less is known is held to its target by this much."""
CHUNK = 1 << 16
"""Numbers that are looked at together, so that they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Pulls:
    """A point of the dual program: what pulls at the leaves, and the values at which it would pull so.

    Attributes:
        above: (n_inner, n_steps), the sum of the pulls of an inner node and of all above it.
        claimed: (n_inner, n_steps), the values at which the inner nodes would pull so.
        of_parts: (n_leaves, n_parts), pulls of the leaves' own features.
        claimed_parts: (n_leaves, n_parts), the sums at which these would pull so.
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
    """What the leaves answer to some pulls.

    Attributes:
        sums: (n_inner, n_steps), the leaves' values added up over each inner node's own leaves.
        shift: the same shape: what the Newton step of the leaves' features adds to the sums.
        covariance: how the sums move with the pulls from above: (n_inner, 1, n_steps, n_steps), or
            (n_inner, n_steps, 1, 1) without features, for then steps do not depend on each other.
        dual: the leaves' part of the dual objective.
        gap: the leaves' part of the gap between primal and dual.
        largest: the largest term of that part, a squared number of standard deviations.
        kept: for each chunk of leaves what the Newton step of its features needs.
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

    Given the pulls lambda from above and nu of its features, a leaf's value at each step by itself is
    max(bound, y + (lambda + R' nu) / d): y its target there, d that target's weight, R the features' parts.
    nu solves as many equations as there are parts.

    Args:
        problem: one period's least squares; weights of the leaves' steps above 0.
        families: of its tree.
        bounds: (n_leaves, n_steps), the least of each leaf's value, in the order of `families.leaves`.
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
        """Return what all leaves answer at a point of the dual, in one pass over them; of what that holds
        only `kept` is of the leaves' size.
        """
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
        """Return the Newton step of the features' pulls, given the step `change`, (n_inner, n_steps), of the
        pulls from above: of `of_parts` and of `claimed_parts`, (n_leaves, n_parts) each, and how fast the
        dual rises along them.

        pulls: where the step begins; found: what the leaves answer there.
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

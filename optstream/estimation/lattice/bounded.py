"""The bounded estimate of a lattice: the tree's Newton method, with the lattice's own system for a step."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.dual import Dual
from optstream.estimation.hierarchy.families import Families
from optstream.estimation.hierarchy.leaf_answers import Pulls
from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.estimation.lattice.system import Parts, System, inverses, known_enough, parts_of
from optstream.estimation.optimality import Optimality
from optstream.stream.lattice import Lattice

Floats = NDArray[np.float64]


def solve_bounded_lattice(
    problem: LeastSquares, lattice: Lattice, lower_bound: float, free: Floats
) -> tuple[Floats, Optimality]:
    """Solve the quadratic program of `hierarchy.bounded.solve_bounded`, with its arguments and answer, for a
    lattice.

    Its dual is the tree's: mu_n = W_n (y_n - x_n) is what a node above the cells pulls at them, and a cell
    answers to the sum of its holders' pulls (`Leaves`). A cell has holders in two ways, so the Newton step is
    a solve of `System` in place of passes along a tree, D being how the cells move with what pulls: matrices
    of steps with features, a number a step without.
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

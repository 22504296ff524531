"""The bounded estimate of a lattice, a step at a time: Newton's method on what the nodes above pull."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.hierarchy.dual import CLOSE, LEAST_RISE, MOST_ROUNDS, SHORTEST
from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.estimation.lattice.system import Parts, System, leaf_variances, parts_of
from optstream.estimation.optimality import Optimality, worst
from optstream.stream.lattice import Lattice

Floats = NDArray[np.float64]


def solve_bounded_lattice(
    problem: LeastSquares, lattice: Lattice, lower_bound: float, free: Floats
) -> tuple[Floats, Optimality]:
    """Solve the quadratic program of `hierarchy.bounded.solve_bounded` for a lattice, without features.

    Every step is a program by itself. Its dual has one unknown for each measured node above the cells, mu_n =
    w_n (y_n - x_n), what it pulls at its cells; given their sum s at a cell, the cell is the larger of the
    bound and y + D s. So the dual is concave, smooth and quadratic in pieces, and Newton's method with a line
    search ends after finitely many rounds, each a solve of `System` with D = 0 for the cells at the bound.
    The gap between primal and dual is sum(w / 2 (what the pulls claim - what the cells add up to)^2).

    Args:
        problem: One period's, its queries the steps alone; weights above 0 at all cells.
        lattice: The hierarchy with its margin.
        lower_bound: Of every cell.
        free: (n_nodes, n_steps), the estimate without bound; the answer is sought as a change of it.

    Returns:
        The values (n_nodes, n_steps), cells at least the bound and all others their sums; the certificate.

    Raises:
        ParameterError: For features.

    Source: as `solve_bounded`.
    """
    if len(problem.rows) > problem.rows.shape[1]:
        raise ParameterError("features are not taken with a margin: leave features or margin out")
    parts = parts_of(lattice)
    cells, found = free[parts.leaves].copy(), []
    for step in range(free.shape[1]):
        one = _Step(
            parts,
            problem.weights[:, step],
            problem.targets[:, step] - free[:, step],
            lower_bound - free[parts.leaves, step],
        )
        moved, optimality = one.maximise()
        cells[:, step] = np.where(moved > one.bounds, cells[:, step] + moved, lower_bound)
        found.append(optimality)
    whole = worst(found)
    assert whole is not None
    return lattice.add_up(np.maximum(cells, lower_bound)), whole


@dataclass(frozen=True, eq=False)
class _At:
    """A dual point: pulls of families and of the rest, the cells, what is missed, the dual, gap's terms."""

    pulls: tuple[Floats, Floats]
    cells: Floats
    missed: tuple[Floats, Floats]
    value: float
    terms: Floats

    @property
    def gap(self) -> float:
        return 0.5 * float(self.terms.sum())


class _Step:
    """The program of one step, as a change of the free estimate."""

    def __init__(self, parts: Parts, weights: Floats, targets: Floats, bounds: Floats) -> None:
        self.parts, self.weights, self.bounds = parts, weights, bounds
        self.own, self.variances = targets[parts.leaves], leaf_variances(weights, parts)
        places = parts.families, parts.rest
        self.inner = tuple(weights[at] for at in places)
        self.targets = tuple(np.where(weights[at] > 0, targets[at], 0.0) for at in places)

    def maximise(self) -> tuple[Floats, Optimality]:
        """Return the cells' changes and how near the optimum they are."""
        # at the free estimate all that is missed is pulled at
        at = self._at(tuple(w * y for w, y in zip(self.inner, self.targets, strict=True)))
        enough, rounds = 0.5 * (0.1 * CLOSE) ** 2, 0
        while rounds < MOST_ROUNDS and at.gap > enough:
            better = None
            with suppress(np.linalg.LinAlgError):  # whether a day appears must not hang on a matrix
                better = next(self._searched(at), None)
            if better is None:
                break
            at, rounds = better, rounds + 1
        converged = bool(np.sqrt(2.0 * at.gap) <= CLOSE)
        return at.cells, Optimality(at.gap, float(np.sqrt(at.terms.max(initial=0.0))), rounds, converged)

    def _searched(self, at: _At) -> Iterator[_At]:
        """Yield better points on the Newton step, the longest first."""
        system = System(self.parts, self.weights, np.where(at.cells > self.bounds, self.variances, 0.0))
        step = system.solve(*at.missed)
        slope = sum(float(one @ missed) for one, missed in zip(step, at.missed, strict=True))
        length = 1.0
        while length > SHORTEST:
            found = self._at(tuple(mu + length * one for mu, one in zip(at.pulls, step, strict=True)))
            # near the end the dual's rise is lost in rounding, the gap is not
            if found.value > at.value + LEAST_RISE * length * slope or found.gap < 0.25 * at.gap:
                yield found
            length *= 0.5

    def _at(self, pulls: tuple[Floats, ...]) -> _At:
        first, second = pulls
        pulled = self.parts.above(first, second)
        cells = np.maximum(self.bounds, self.own + self.variances * pulled)
        value = float((0.5 * (cells - self.own) ** 2 / self.variances - pulled * cells).sum())
        missed, terms = [], []
        for mu, w, y, own in zip(pulls, self.inner, self.targets, self.parts.sums(cells), strict=True):
            given = np.divide(mu, w, out=np.zeros_like(mu), where=w > 0)
            missed.append(np.where(w > 0, y - given - own, 0.0))
            terms.append(w * missed[-1] ** 2)
            value += float((mu * (y - 0.5 * given)).sum())
        return _At((first, second), cells, (missed[0], missed[1]), value, np.concatenate(terms))

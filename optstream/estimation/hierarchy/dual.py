"""The dual of the bounded program: few numbers for each inner node, and no constraint."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.families import Families
from optstream.estimation.hierarchy.leaf_answers import Answers, Leaves, Pulls
from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.estimation.optimality import Optimality

Floats = NDArray[np.float64]

MOST_ROUNDS = 100
SHORTEST = 2.0**-60
"""Of a Newton step, before the search gives up."""
LEAST_RISE = 1e-4
"""Of what a step promises: less is no success."""
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
    """The dual of `bounded.solve_bounded`'s program, and Newton's method on it.

    Attributes:
        precision: W of the inner nodes, (n_inner, 1, n_steps, n_steps), and pulled: W y,
            (n_inner, 1, n_steps); (n_inner, n_steps, 1, 1) and (n_inner, n_steps, 1) without features, for
            then steps are problems by themselves.
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
        """Return the best pulls and their certificate.

        above: pulls to begin with, 0 if None. share: of the first gap that is good enough.
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
        """Return the pulls from above and the inner nodes' values at which both fit, if leaves are linear.

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

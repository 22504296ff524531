"""Budgets that keep the total leakage at alpha: by its supremum (Algorithm 7) and exactly (Algorithm 8)."""

from dataclasses import dataclass

import numpy as np

from optstream.errors import ParameterError
from optstream.privacy.exact import whole
from studies.leakage.amounts import Floats, checked_number
from studies.leakage.loss import Known, loss_of
from studies.leakage.suprema import border, supremum


@dataclass(frozen=True)
class Budgets:
    """Algorithm 8's epsilons, for two steps or more.

    first: of the first step. middle: of each step between. last: of the last step.
    """

    first: float
    middle: float
    last: float

    def series(self, n_steps: int) -> Floats:
        """Return one epsilon a step.

        n_steps: of the history. Returns shape (n_steps,). Raises ParameterError for fewer than two steps.
        """
        whole(n_steps, "n_steps", 2)
        return np.array([self.first, *[self.middle] * (n_steps - 2), self.last])


SUPREMA_ROUNDED = 1e-12
"""Which part of alpha rounding may hide of the suprema."""


def constant_budget(alpha: float, *, backward: Known, forward: Known) -> float:
    """Return the greatest epsilon a step that keeps total leakage at or below alpha at all times.

    The sum of both suprema, minus epsilon, rises with epsilon; bisection, rounded down by what rounding may
    hide of the suprema. Source: Cao et al. 2018, Algorithm 7.

    alpha: the bound on the total leakage at any step, > 0. Returns 0 where a supremum is infinite at any
    epsilon > 0 (identity): then `exact_budgets` can still bound a finite history. Raises ParameterError if
    alpha is not above 0, or as `LossFunction`.
    """
    bound, before, after = _positive(alpha), loss_of(backward), loss_of(forward)

    def total(epsilon: float) -> float:
        return supremum(before, epsilon) + supremum(after, epsilon) - epsilon

    if not (before.pieces.q.size or after.pieces.q.size):
        return bound  # neither direction tells anything
    return border(lambda epsilon: total(epsilon) > bound * (1 - SUPREMA_ROUNDED), bound)[0]


def exact_budgets(alpha: float, *, backward: Known, forward: Known) -> Budgets:
    """Return epsilons with which the total leakage is alpha at every step of a history, however long.

    With b = BPL and f = FPL constant over time, b = first, f = last, middle = b - L_B(b), and

        b + L_F(f) = alpha  (first step),  b + f - middle = alpha  (between),  L_B(b) + f = alpha  (last).

    Inserting f = alpha - L_B(b) leaves one equation in b whose left side never falls; bisection. Where many b
    solve it (identity both ways: all do), the middle one. A single step has epsilon alpha. Source: Cao et al.
    2018, Algorithm 8.

    alpha: the bound on the total leakage at any step, > 0. Returns epsilons of the first step, the last and
    those between. Raises ParameterError as `constant_budget`.
    """
    bound, before, after = _positive(alpha), loss_of(backward), loss_of(forward)
    # equal within rounding counts as solved, from either side
    rounding = 1e-14 * bound

    def excess(first: float) -> float:
        return first + after.at(max(bound - before.at(first), 0.0)) - bound

    least = border(lambda first: excess(first) >= -rounding, bound)[1]
    most = border(lambda first: excess(first) > rounding, bound)[0]
    first = (least + most) / 2
    carried = before.at(first)
    return Budgets(first, max(first - carried, 0.0), max(bound - carried, 0.0))


def _positive(alpha: float) -> float:
    bound = checked_number(alpha, "alpha")
    if bound == 0:
        raise ParameterError("alpha must be greater than 0: the bound on the total leakage; got 0")
    return bound

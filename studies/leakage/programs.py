"""Computes the loss function from the linear-fractional programs that define it, by an LP solver (HiGHS).

What Figure 6 times beside the closed form, and the oracle of the tests.
"""

import math
from collections.abc import Iterable
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog


def loss_of_pair(q: NDArray[np.float64], d: NDArray[np.float64], a: float) -> float:
    """Return max log(q·x / d·x) over x > 0 whose entries differ by a factor of at most e^a.

    Charnes-Cooper: x is scaled so that d·x = 1, which leaves a linear program. The constraints between all
    pairs of entries say only that all lie in [e^-a top, top], with one more variable, the largest entry: x_j
    = e^-a top + s_j with 0 <= s_j <= (1 - e^-a) top, so n + 1 variables and n inequalities instead of the
    paper's n (n - 1). Rows add up to 1. Raises ArithmeticError if the solver stops without an answer.
    """
    n_states, low = len(q), math.exp(-a)
    columns = np.hstack([np.eye(n_states), np.full((n_states, 1), low - 1)])
    found = linprog(
        -np.append(q, low),
        A_ub=columns,
        b_ub=np.zeros(n_states),
        A_eq=np.append(d, low)[None, :],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        raise ArithmeticError(f"the solver stopped: {found.message}")
    return math.log(-found.fun)


def loss_by_programs(
    transition: ArrayLike, a: float, pairs: Iterable[tuple[int, int]] | None = None
) -> float:
    """Return the largest over the ordered pairs of rows, all of them unless some are named."""
    rows = np.asarray(transition, dtype=float)
    chosen = permutations(range(len(rows)), 2) if pairs is None else pairs
    return max((loss_of_pair(rows[i], rows[j], a) for i, j in chosen), default=0.0)

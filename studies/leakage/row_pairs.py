"""Algorithm 1: the loss for one a, pair of rows by pair of rows. The slow way, and the check on the fast."""

import numpy as np
from numpy.typing import ArrayLike

from studies.leakage.amounts import Floats, checked_number
from studies.leakage.log_ratio import log_ratio
from studies.leakage.transition import checked_transition

SLACK = 1e-14
"""Relative. For large a the whole's ratio differs from its best column's by less than rounding; with <= a
column would be dropped for its own rounding error, and the loss would become 0 (seen beyond a = 36)."""


def loss_by_row_pairs(transition: ArrayLike, a: float) -> float:
    """Return L(a) of a transition matrix by Algorithm 1: the largest loss over ordered pairs of rows.

    For rows q and d the loss is the greatest log(q·x / d·x) over x whose entries differ by a factor of at
    most e^a; at the optimum some columns have the greater entry. Start from those with q_j > d_j, drop those
    whose q_j/d_j is below the whole's ratio, until none is. O(n_states^3) and more.

    transition: (n_states, n_states), rows add up to 1. a: the leakage one step away, at least 0. Raises
    ParameterError as `LossFunction`.
    """
    rows, amount = checked_transition(transition), checked_number(a, "a")
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    return max(float(_losses_of_row(rows, logs, row, amount).max()) for row in range(len(rows)))


def _losses_of_row(rows: Floats, logs: Floats, row: int, a: float) -> Floats:
    """Return the losses of the pairs (row, every row), shape (n_states,)."""
    kept = rows[row] > rows
    with np.errstate(invalid="ignore"):
        ratios = np.where(kept, logs[row] - logs, -np.inf)
    while True:
        q, d = np.where(kept, rows[row], 0).sum(axis=1), np.where(kept, rows, 0).sum(axis=1)
        losses = log_ratio(q, d, np.asarray(a))
        dropped = kept & (ratios < (losses * (1 - SLACK))[:, None])
        if not dropped.any():
            return losses
        kept &= ~dropped

"""The loss function of a transition matrix: what a leakage becomes one step further."""

from bisect import bisect_right

import numpy as np
from numpy.typing import ArrayLike

from studies.leakage.amounts import Amounts, Floats, checked, shaped_as
from studies.leakage.log_ratio import log_ratio, log_ratio_of_numbers
from studies.leakage.pieces import Pieces, find_pieces
from studies.leakage.transition import checked_transition


class LossFunction:
    """How much of a leakage `a` about the value one step away reaches the value at this step: L(a).

    Calling it with a scalar or an array of any shape, unit of epsilon (nats), >= 0, gives the same shape. It
    is continuous, rises, L(0) = 0, L(a) <= a, and grows nowhere faster than a. Identity: L(a) = a; equal
    rows: 0. `.pieces` is the closed form, precomputed once in O(n^3 log n); a call searches the pieces.

    Source: Cao et al. 2018, equations 11 to 14, Algorithms 2 to 5.

    transition: (n_states, n_states), row-stochastic. Row i is what the adversary expects of the neighbouring
    value given that this one is i: a backward matrix, Pr(l_t-1 = j | l_t = i), for backward leakage, a
    forward matrix, Pr(l_t+1 = j | l_t = i), for forward leakage. The states are values of one customer within
    alpha of each other: epsilons are what a change of alpha costs. Raises ParameterError for a matrix that is
    not square, has no state, an entry that is negative or not finite, or a row that does not add up to 1
    within 1e-9; and an `a` that is negative or not finite.
    """

    def __init__(self, transition: ArrayLike) -> None:
        rows = checked_transition(transition)
        self.n_states = len(rows)
        self.pieces: Pieces = find_pieces(rows)
        self._starts = self.pieces.starts.tolist()
        self._corners = list(zip(self.pieces.q.tolist(), self.pieces.d.tolist(), strict=True))

    def __call__(self, a: Amounts) -> Amounts:
        amounts = checked(a, "a")
        if not self._corners:
            return shaped_as(np.zeros_like(amounts), a)
        if amounts.ndim == 0:
            return shaped_as(np.array(self.at(float(amounts))), a)
        piece = np.searchsorted(self.pieces.starts, amounts, side="right") - 1
        losses: Floats = log_ratio(self.pieces.q[piece], self.pieces.d[piece], amounts)
        return shaped_as(losses, a)

    def at(self, a: float) -> float:
        """Return L of one float, unchecked, in about a microsecond. a: known to be finite and at least 0."""
        if not self._corners:
            return 0.0
        q, d = self._corners[bisect_right(self._starts, a) - 1]
        return log_ratio_of_numbers(q, d, a)

    @property
    def carried_in_the_limit(self) -> float:
        """Return lim L(a) - a for large a: log q of the piece with d = 0, or -inf where L is bounded."""
        if not self._corners or self._corners[-1][1] > 0:
            return -np.inf
        return float(np.log(self._corners[-1][0]))

    def __repr__(self) -> str:
        return f"LossFunction(n_states={self.n_states}, n_pieces={len(self._corners)})"


Known = ArrayLike | LossFunction | None
"""What an adversary knows of one direction: a matrix, its loss function, or nothing (None)."""


def loss_of(known: Known) -> LossFunction:
    """Return the loss function of what an adversary knows; 0 everywhere for None. Raises ParameterError as
    `LossFunction`.
    """
    if isinstance(known, LossFunction):
        return known
    return LossFunction([[1.0]] if known is None else known)


def followed(epsilons: Floats, loss: LossFunction, leakage: float = 0.0) -> Floats:
    """Return x with x_1 = L(leakage) + e_1, x_t = L(x_t-1) + e_t, (n_steps,); L(0) is 0."""
    found = []
    for epsilon in epsilons.tolist():
        leakage = loss.at(leakage) + epsilon
        found.append(leakage)
    return np.array(found, dtype=np.float64)

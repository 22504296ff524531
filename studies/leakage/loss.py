"""Transition matrices and their loss function: Algorithm 1 by row pairs, its pieces, and linear programs.

Everything is computed with logarithms, so that no e^a swallows a column.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from optstream.errors import ParameterError

# Amounts of privacy as the functions of this package take them: scalars or arrays, and the same out.

Floats = NDArray[np.float64]
Amounts = TypeVar("Amounts", float, Floats)
"""A float or an array of floats; a list or an exact number is taken too, and comes out as its like."""


def checked(amounts: ArrayLike, name: str) -> Floats:
    """Return the amounts as floats of their own shape. Raises ParameterError where one is not finite or below
    0. name: of the parameter, for the error.
    """
    try:
        given = np.asarray(amounts, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or an array of numbers, at least 0") from None
    wrong = ~(np.isfinite(given) & (given >= 0))
    if wrong.any():
        raise ParameterError(f"{name} must be finite and at least 0; got {float(given[wrong].flat[0])}")
    return given


def checked_series(epsilons: ArrayLike) -> Floats:
    """Return the same, one a step, (n_steps,): a scalar is a series of one. Raises ParameterError as
    `checked`, and for more dimensions.
    """
    given = checked(epsilons, "epsilons")
    if given.ndim > 1:
        raise ParameterError(f"epsilons must be a number or have one dimension, steps; got {given.ndim}")
    return np.atleast_1d(given)


def checked_number(amount: ArrayLike, name: str) -> float:
    """Return one amount as a float. Raises ParameterError for an array, or as `checked`."""
    given = checked(amount, name)
    if given.ndim:
        raise ParameterError(f"{name} must be one number; got an array")
    return float(given)


def shaped_as(result: Floats, given: Amounts) -> Amounts:
    """Return the result as a float where the amounts that it was computed from were a scalar, else as the
    array that it is.
    """
    if isinstance(given, np.ndarray) or np.ndim(given):
        return result  # type: ignore[return-value]  # mypy: no type variable says list in, array out
    return float(result.reshape(-1)[0])


# Transition matrices: what is a legal one, its stationary distribution, and time reversed.

ROW_TOLERANCE = 1e-9


def checked_transition(transition: ArrayLike, name: str = "transition") -> Floats:
    """Return a row-stochastic matrix as float64, shape (n_states, n_states), each row divided by its sum.

    Row i is the distribution given state i: of the next value for a forward matrix, of the previous one for a
    backward matrix. Raises ParameterError, with the parameter's name, where it is not square, has no state or
    an entry that is negative or not finite, or a row does not add up to 1 within 1e-9.
    """
    try:
        given = np.array(transition, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a matrix of numbers") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] < 1:
        raise ParameterError(f"{name} must be a square matrix of at least one state; got shape {given.shape}")
    wrong = np.argwhere(~(np.isfinite(given) & (given >= 0)))
    if wrong.size:
        row, column = wrong[0]
        raise ParameterError(
            f"{name} must hold probabilities, finite and at least 0; "
            f"got {given[row, column]} at row {row}, column {column} (counted from 0)"
        )
    sums = given.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > ROW_TOLERANCE)
    if off.size:
        row = int(off[0])
        raise ParameterError(
            f"rows of {name} must add up to 1 within {ROW_TOLERANCE:g}: row i is the distribution given "
            f"state i; row {row} (counted from 0) adds up to {sums[row]:.12g}"
        )
    normalised: Floats = given / sums[:, None]
    return normalised


def stationary_distribution(transition: ArrayLike) -> Floats:
    """Return the distribution that a chain keeps, all of it greater than 0.

    Source: Grassmann, Taksar and Heyman, Operations Research 1985: elimination without subtractions, so that
    small probabilities keep their relative precision.

    transition: of the chain, (n_states, n_states). Returns shape (n_states,). Raises ParameterError for a
    matrix that is not legal, or a reducible chain (one that cannot come from every state to every other): it
    keeps several distributions, or none without a 0.
    """
    reduced = checked_transition(transition).copy()
    n_states = len(reduced)
    if not _irreducible(reduced):
        raise ParameterError(
            "the chain is reducible: it has no unique stationary distribution that is greater than 0 in "
            "every state; give a prior, or the backward matrix itself"
        )
    for last in range(n_states - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.ones(n_states)
    for state in range(1, n_states):
        weights[state] = weights[:state] @ reduced[:state, state]
    distribution: Floats = weights / weights.sum()
    return distribution


def backward_transition(transition: ArrayLike, prior: ArrayLike | None = None) -> Floats:
    """Return the backward matrix of a forward chain, by Bayes: its rows are the values one step earlier.

        backward[i, j] = Pr(l_t-1 = j | l_t = i) = prior[j] transition[j, i] / sum_k prior[k] transition[k, i]

    transition: forward, row i is the distribution of the next value given i, Pr(l_t = j | l_t-1 = i). prior:
    distribution of the value at a step, shape (n_states,); None is the stationary one, the only one for which
    the result is the same at every step. Raises ParameterError for a prior that is no distribution, a state
    that is never entered under it (what came before it is then not defined), or as `stationary_distribution`.
    """
    forward = checked_transition(transition)
    before = stationary_distribution(forward) if prior is None else _checked_prior(prior, len(forward))
    joint = before[:, None] * forward
    entered = joint.sum(axis=0)
    if (entered == 0).any():
        state = int(np.flatnonzero(entered == 0)[0])
        raise ParameterError(
            f"prior must let every state be entered; state {state} (counted from 0) never is: "
            "give the backward matrix itself"
        )
    return checked_transition((joint / entered).T, "backward matrix")


def _irreducible(transition: Floats) -> bool:
    """Return whether every state leads to every other: paths of up to 1, 2, 4, … steps."""
    n_states = len(transition)
    reached = (transition > 0) | np.eye(n_states, dtype=bool)
    for _ in range(n_states.bit_length()):
        # float32 products go through BLAS; counts stay exact below 2^24 states
        paths = reached.astype(np.float32)
        reached = (paths @ paths) > 0
    return bool(reached.all())


def _checked_prior(prior: ArrayLike, n_states: int) -> Floats:
    given = np.asarray(prior, dtype=np.float64)
    if given.shape != (n_states,) or not (np.isfinite(given) & (given >= 0)).all():
        raise ParameterError(
            f"prior must have a probability, at least 0, for each of {n_states} states; "
            f"got shape {given.shape}"
        )
    if abs(given.sum() - 1) > ROW_TOLERANCE:
        raise ParameterError(f"prior must add up to 1 within {ROW_TOLERANCE:g}; got {given.sum():.12g}")
    normalised: Floats = given / given.sum()
    return normalised


# log((q (e^a - 1) + 1) / (d (e^a - 1) + 1)): one piece of a loss function, safe for every finite a.

LARGEST_EXPONENT = 700.0
"""Up to here e^a is far from overflow, and the form with log1p and expm1 holds its precision at both ends."""


def log_ratio(q: Floats, d: Floats, a: Floats) -> Floats:
    """Return the logarithm elementwise, for q of at most 1, d in 0 .. q, and a at least 0 and finite;
    broadcast.

    Up to 700 as log1p((q - d)(e^a - 1) / (1 + d (e^a - 1))), which is also exact for small a; beyond it both
    sides are divided by e^a, and d = 0 leaves a + log q: no overflow, and nothing that silently becomes 0.
    """
    rise = np.expm1(np.minimum(a, LARGEST_EXPONENT))
    common = np.log1p((q - d) * rise / (1 + d * rise))
    if not (np.asarray(a) > LARGEST_EXPONENT).any():
        return np.asarray(common)
    decay = np.exp(-a)
    with np.errstate(divide="ignore"):
        above = np.log(q + (1 - q) * decay)
        below = np.where(d > 0, np.log(d + (1 - d) * decay), -a)
        far = np.where(q > 0, above - below, 0.0)
    return np.where(a > LARGEST_EXPONENT, far, common)


def log_ratio_of_numbers(q: float, d: float, a: float) -> float:
    """Return the same for three floats, without numpy's overhead: time series are followed step by step."""
    if a <= LARGEST_EXPONENT:
        rise = math.expm1(a)
        return math.log1p((q - d) * rise / (1 + d * rise))
    if q <= 0:
        return 0.0
    decay = math.exp(-a)
    below = math.log(d + (1 - d) * decay) if d > 0 else -a
    return math.log(q + (1 - q) * decay) - below


# Algorithm 1: the loss for one a, pair of rows by pair of rows. The slow way, and the check on the fast.

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


# Algorithms 2 to 5: L as few pieces, each with its own q and d, precomputed from a transition matrix.

CELLS_AT_ONCE = 2**17
"""Entries of the arrays in which pairs of rows are compared: a few megabytes."""

Points = tuple[Floats, Floats]
"""d and q of points, of the same shape."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of L, all of shape (n_pieces,); no piece where L is 0 everywhere.

    From a = starts[k] up to the next start, L(a) = log((q[k] (e^a - 1) + 1) / (d[k] (e^a - 1) + 1)). Along
    the pieces both q and d fall: large a belongs to the columns that tell two rows apart best.

    starts: rising, starts[0] = 0. q: of each piece. d: of each piece.
    """

    starts: Floats
    q: Floats
    d: Floats


def find_pieces(transition: Floats) -> Pieces:
    """Return the fewest pieces of a legal matrix, (n_states, n_states). Time O(n^3 log n), memory O(n^2)."""
    with np.errstate(divide="ignore"):
        logs = np.log(transition)
    n_states = len(transition)
    at_once = max(1, CELLS_AT_ONCE // n_states**2)
    chunks = (slice(first, first + at_once) for first in range(0, n_states, at_once))
    fronts = [_front(*_prefix_sums(transition, logs, rows)) for rows in chunks]
    d, q = _front(*(np.concatenate(column) for column in zip(*fronts, strict=True)))
    d, q = _hull(d, q)
    return Pieces(_starts(d, q)[::-1], q[::-1], d[::-1])


def _prefix_sums(transition: Floats, logs: Floats, rows: slice) -> Points:
    """Return the sums over the best columns, for the pairs (one of `rows`, any row): all points with q > d,
    flat.
    """
    own = transition[rows, None]
    better = own > transition
    with np.errstate(invalid="ignore"):
        # logarithms, for q_j/d_j may overflow where d_j is tiny
        ratios = np.where(better, logs - logs[rows, None], np.inf)
    order = np.argsort(ratios, axis=-1)
    q = np.take_along_axis(np.where(better, own, 0), order, axis=-1).cumsum(axis=-1)
    d = np.take_along_axis(np.where(better, transition, 0), order, axis=-1).cumsum(axis=-1)
    proper = q > d
    return d[proper], np.minimum(q[proper], 1.0)


def _front(d: Floats, q: Floats) -> Points:
    """Return the points that have a greater q than all of smaller d: d and q rise. Of equal d some may be too
    many.
    """
    order = np.argsort(d)
    d, q = d[order], q[order]
    best_before = np.concatenate(([-np.inf], np.maximum.accumulate(q)[:-1])) if q.size else q
    kept = q > best_before
    return d[kept], q[kept]


def _hull(d: Floats, q: Floats) -> Points:
    """Return the corners of the upper hull from the origin on, as far as its edges are steeper than 1."""
    chain = [(0.0, 0.0)]
    for point in zip(d.tolist(), q.tolist(), strict=True):
        while len(chain) > 1 and _lies_below(chain[-1], chain[-2], point):
            chain.pop()
        chain.append(point)
    corners = np.array(chain)
    steps = np.diff(corners, axis=0)
    steep = steps[:, 1] > steps[:, 0]
    return corners[1:][steep, 0], corners[1:][steep, 1]


def _lies_below(middle: tuple[float, float], left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Return whether the middle point is not strictly above the line through the others."""
    to_middle = (middle[0] - left[0], middle[1] - left[1])
    to_right = (right[0] - left[0], right[1] - left[1])
    return to_middle[0] * to_right[1] >= to_middle[1] * to_right[0]


def _starts(d: Floats, q: Floats) -> Floats:
    """Return from which a on each corner is best, in the hull's order: falling, the last 0.

    The edge from corner k to the next, drawn on, meets the diagonal at (-u, -u); a = log(1 + 1/u).
    """
    if not q.size:
        return q
    run, rise = np.diff(d), np.diff(q)
    with np.errstate(divide="ignore", invalid="ignore"):
        # by logarithms: 1/u may overflow where d is tiny
        log_z = np.log(rise - run) - np.log(np.maximum(q[:-1] * run - d[:-1] * rise, 0))
    starts = np.append(np.logaddexp(0, log_z), 0.0)
    falling: Floats = np.maximum.accumulate(starts[::-1])[::-1]
    return falling


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


# Computes the loss function from the linear-fractional programs that define it, by an LP solver (HiGHS).


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

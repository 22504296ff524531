"""The loss to an adversary who knows how one customer's values follow each other: a Markov chain.

Source of all: Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release
Under Temporal Correlations, IEEE TKDE 2018. docs/research/leakage.md says what it is for. Matrices are
(n_states, n_states), row-stochastic; row i of a forward matrix is the distribution of the next value given i,
of a backward matrix that of the value before. The states are values of one customer within alpha of each
other. Epsilons are what a change of alpha in one step costs, (n_steps,). Everything is computed with
logarithms, so that no e^a swallows a column. Functions raise ParameterError for a matrix that is not square
or legal, and for epsilons that are negative or not finite.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError

Floats = NDArray[np.float64]
ROW_TOLERANCE = 1e-9
LARGEST_EXPONENT = 700.0
"""Up to here e^a is far from overflow, and the form with log1p and expm1 holds its precision at both ends."""
CELLS_AT_ONCE = 2**17
"""Entries of the arrays that compare pairs of rows: a few megabytes."""


def checked(amounts: ArrayLike, name: str) -> Floats:
    """Return amounts of privacy as floats. Raises ParameterError where one is not finite or below 0."""
    try:
        given = np.asarray(amounts, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or an array of numbers, at least 0") from None
    wrong = ~(np.isfinite(given) & (given >= 0))
    if wrong.any():
        raise ParameterError(f"{name} must be finite and at least 0; got {float(given[wrong].flat[0])}")
    return given


def checked_transition(transition: ArrayLike) -> Floats:
    """Return a row-stochastic matrix, each row divided by its sum."""
    try:
        given = np.array(transition, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("a transition matrix must be a matrix of numbers") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] < 1:
        raise ParameterError(f"a transition matrix must be square with at least one state; got {given.shape}")
    wrong = np.argwhere(~(np.isfinite(given) & (given >= 0)))
    if wrong.size:
        row, column = wrong[0]
        raise ParameterError(
            "a transition matrix must hold probabilities, finite and at least 0; "
            f"got {given[row, column]} at row {row}, column {column} (counted from 0)"
        )
    sums = given.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > ROW_TOLERANCE)
    if off.size:
        row = int(off[0])
        raise ParameterError(
            f"rows of a transition matrix must add up to 1 within {ROW_TOLERANCE:g}: row i is the "
            f"distribution given state i; row {row} (counted from 0) adds up to {sums[row]:.12g}"
        )
    normalised: Floats = given / sums[:, None]
    return normalised


def stationary_distribution(transition: ArrayLike) -> Floats:
    """Return the distribution that a chain keeps, (n_states,), all of it greater than 0.

    Source: Grassmann, Taksar and Heyman, Operations Research 1985: elimination without subtractions.
    """
    reduced = checked_transition(transition).copy()
    n_states = len(reduced)
    reached = (reduced > 0) | np.eye(n_states, dtype=bool)
    for _ in range(n_states.bit_length()):  # paths of up to 1, 2, 4, … steps
        paths = reached.astype(np.float32)
        reached = (paths @ paths) > 0
    if not reached.all():
        raise ParameterError(
            "the chain is reducible: it has no unique stationary distribution that is greater than 0 in "
            "every state; give the backward matrix itself"
        )
    for last in range(n_states - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.ones(n_states)
    for state in range(1, n_states):
        weights[state] = weights[:state] @ reduced[:state, state]
    distribution: Floats = weights / weights.sum()
    return distribution


def backward_transition(transition: ArrayLike) -> Floats:
    """Return the backward matrix of a forward chain in its stationary distribution, by Bayes."""
    forward = checked_transition(transition)
    joint = stationary_distribution(forward)[:, None] * forward
    return checked_transition((joint / joint.sum(axis=0)).T)


def log_ratio(q: float, d: float, a: float) -> float:
    """Return log((q (e^a - 1) + 1) / (d (e^a - 1) + 1)), a piece of L, for 0 <= d <= q <= 1 and a >= 0."""
    if a <= LARGEST_EXPONENT:
        rise = math.expm1(a)
        return math.log1p((q - d) * rise / (1 + d * rise))
    if q <= 0:
        return 0.0
    decay = math.exp(-a)
    below = math.log(d + (1 - d) * decay) if d > 0 else -a
    return math.log(q + (1 - q) * decay) - below


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of L, all of shape (n_pieces,); no piece where L is 0 everywhere.

    From a = starts[k] up to the next start, L(a) = log((q[k] (e^a - 1) + 1) / (d[k] (e^a - 1) + 1)).
    """

    starts: Floats
    q: Floats
    d: Floats


def find_pieces(transition: Floats) -> Pieces:
    """Return the fewest pieces of a legal matrix. Time O(n^3 log n), memory O(n^2)."""
    with np.errstate(divide="ignore"):
        logs = np.log(transition)
    n_states = len(transition)
    at_once = max(1, CELLS_AT_ONCE // n_states**2)
    chunks = (slice(first, first + at_once) for first in range(0, n_states, at_once))
    fronts = [_front(*_prefix_sums(transition, logs, rows)) for rows in chunks]
    d, q = _hull(*_front(*(np.concatenate(column) for column in zip(*fronts, strict=True))))
    return Pieces(_starts(d, q)[::-1], q[::-1], d[::-1])


def _prefix_sums(transition: Floats, logs: Floats, rows: slice) -> tuple[Floats, Floats]:
    """Return d and q, the sums over the best columns, of the pairs (one of `rows`, any row), where q > d."""
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


def _front(d: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return the points that have a greater q than all of smaller d: d and q rise."""
    order = np.argsort(d)
    d, q = d[order], q[order]
    best_before = np.concatenate(([-np.inf], np.maximum.accumulate(q)[:-1])) if q.size else q
    kept = q > best_before
    return d[kept], q[kept]


def _hull(d: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the upper hull from the origin on, as far as its edges are steeper than 1."""
    chain = [(0.0, 0.0)]
    for right in zip(d.tolist(), q.tolist(), strict=True):
        while len(chain) > 1:
            middle, left = chain[-1], chain[-2]
            rise = (middle[0] - left[0]) * (right[1] - left[1])
            if rise < (middle[1] - left[1]) * (right[0] - left[0]):
                break
            chain.pop()
        chain.append(right)
    corners = np.array(chain)
    steps = np.diff(corners, axis=0)
    steep = steps[:, 1] > steps[:, 0]
    return corners[1:][steep, 0], corners[1:][steep, 1]


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

    Source: equations 11 to 14, Algorithms 2 to 5. transition: backward for backward leakage, else forward.
    """

    def __init__(self, transition: ArrayLike) -> None:
        rows = checked_transition(transition)
        self.n_states = len(rows)
        self.pieces: Pieces = find_pieces(rows)
        self._starts = self.pieces.starts.tolist()
        self._corners = list(zip(self.pieces.q.tolist(), self.pieces.d.tolist(), strict=True))

    def __call__(self, a: ArrayLike) -> Floats:
        """Return L of each amount. Raises ParameterError for one that is negative or not finite."""
        return np.asarray(np.vectorize(self.at, otypes=[np.float64])(checked(a, "a")))

    def at(self, a: float) -> float:
        """Return L of one float, unchecked."""
        if not self._corners:
            return 0.0
        return log_ratio(*self._corners[bisect_right(self._starts, a) - 1], a)

    @property
    def carried_in_the_limit(self) -> float:
        """Return lim L(a) - a for large a: log q of the piece with d = 0, or -inf where L is bounded."""
        if not self._corners or self._corners[-1][1] > 0:
            return -np.inf
        return float(np.log(self._corners[-1][0]))


Known = ArrayLike | LossFunction | None
"""What an adversary knows of one direction: a matrix, its loss function, or nothing."""


def loss_of(known: Known) -> LossFunction:
    """Return the loss function of what an adversary knows; 0 everywhere for None."""
    if isinstance(known, LossFunction):
        return known
    return LossFunction([[1.0]] if known is None else known)


# Over time.


def _series(epsilons: ArrayLike) -> Floats:
    given = np.atleast_1d(checked(epsilons, "epsilons"))
    if given.ndim > 1:
        raise ParameterError(f"epsilons must be a number or have one dimension, steps; got {given.ndim}")
    return given


def _followed(epsilons: Floats, loss: LossFunction, leakage: float = 0.0) -> Floats:
    """Return x with x_1 = L(leakage) + e_1, x_t = L(x_t-1) + e_t; L(0) is 0."""
    found = []
    for epsilon in epsilons.tolist():
        leakage = loss.at(leakage) + epsilon
        found.append(leakage)
    return np.array(found, dtype=np.float64)


def backward_leakage(epsilons: ArrayLike, transition: Known) -> Floats:
    """Return what the releases up to each step tell about its value: equations 10 to 12."""
    return _followed(_series(epsilons), loss_of(transition))


def forward_leakage(epsilons: ArrayLike, transition: Known) -> Floats:
    """Return what the releases from each step on tell about its value: equations 13 and 14."""
    return _followed(_series(epsilons)[::-1], loss_of(transition))[::-1]


def total_leakage(epsilons: ArrayLike, *, backward: Known, forward: Known) -> Floats:
    """Return what all releases tell about the value at each step: BPL_t + FPL_t - epsilon_t, equation 15."""
    series = _series(epsilons)
    return backward_leakage(series, backward) + forward_leakage(series, forward) - series


def sequence_leakage(epsilons: ArrayLike, length: int, *, backward: Known, forward: Known) -> Floats:
    """Return what all releases tell about the values at `length` steps from each on together.

    BPL_t + FPL_t+length-1 + the epsilons strictly between. Source: Theorem 3 and Corollary 1.
    """
    series = _series(epsilons)
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= series.size:
        raise ParameterError(f"length must be an integer in [1, {series.size}], steps; got {length!r}")
    before, after = backward_leakage(series, backward), forward_leakage(series, forward)
    starts = series.size - length + 1
    if length == 1:
        return before + after - series
    running = np.concatenate(([0.0], np.cumsum(series)))
    between = running[length - 1 : length - 1 + starts] - running[1 : 1 + starts]
    together: Floats = before[:starts] + np.maximum(between, 0) + after[length - 1 :]
    return together


# Where leakage ends if releases continue without end.

ROUNDING = 4 * np.finfo(np.float64).eps
HALVINGS = 200
SUPREMA_ROUNDED = 1e-12
"""Which part of alpha rounding may hide of the suprema."""


def supremum(transition: Known, epsilon: float) -> float:
    """Return the supremum over time of the backward (or forward) leakage at `epsilon` a step; it may be inf.

    The leakage rises to the one a with a = L(a) + epsilon: a quadratic equation in e^a for each piece of L.
    Source: Theorem 11 and Algorithm 6.
    """
    pieces, given = loss_of(transition).pieces, float(checked(epsilon, "epsilon"))
    corners = zip(pieces.q.tolist(), pieces.d.tolist(), strict=True)
    return max((given, *(_fixed_point(q, d, given) for q, d in corners))) if given else 0.0


def _fixed_point(q: float, d: float, epsilon: float) -> float:
    """Return the a > 0 with e^a (d (e^a - 1) + 1) = e^epsilon (q (e^a - 1) + 1), or inf.

    In w = (e^a - 1) e^-epsilon it reads d w^2 + slope w = offset: no overflow, and no cancellation.
    """
    decay = np.exp(-epsilon)
    # (1 + d) e^-epsilon - q, written so that q near 1 keeps its digits, and so does a small q
    slope = (1 - q) + d + (1 + d) * np.expm1(-epsilon) if q > 0.5 else (1 + d) * decay - q
    offset = -np.expm1(-epsilon) * decay
    root = np.sqrt(slope**2 + 4 * d * offset)
    if slope > (0 if d > 0 else ROUNDING):
        log_w = np.log(2 * offset) - np.log(slope + root)
    elif d > 0:
        log_w = np.log(root - slope) - math.log(2 * d)
    else:
        return math.inf
    return float(np.logaddexp(0, epsilon + log_w))


def repeated_leakage(epsilons: ArrayLike, *, backward: Known, forward: Known) -> tuple[Floats, Floats]:
    """Return the backward and forward leakage, (n_steps,) each, where a period is repeated without end."""
    series = _series(epsilons)
    return _cycle(series, loss_of(backward)), _cycle(series[::-1], loss_of(forward))[::-1]


def _cycle(epsilons: Floats, loss: LossFunction) -> Floats:
    """Return the values on which x -> L(x) + e settles when the e come round and round."""
    mean, carried = math.fsum(epsilons) / len(epsilons), loss.carried_in_the_limit
    if mean == 0:
        return np.zeros(len(epsilons))
    if mean + carried >= -ROUNDING:
        return np.full(len(epsilons), np.inf)
    # once round grows a by less the larger a is, so the fixed point is bracketed, then halved
    high = 1.0
    while _followed(epsilons, loss, high)[-1] > high:
        high *= 2
    settled = _border(lambda leakage: _followed(epsilons, loss, leakage)[-1] <= leakage, high)[1]
    return _followed(epsilons, loss, settled)


def _border(beyond: Callable[[float], bool], high: float) -> tuple[float, float]:
    """Return neighbours in [0, high] between which `beyond` turns from false to true; or an end twice."""
    if beyond(0.0):
        return 0.0, 0.0
    if not beyond(high):
        return high, high
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return low, high


# Budgets that keep the total leakage at alpha.


@dataclass(frozen=True)
class Budgets:
    """Algorithm 8's epsilons of the first step, each step between and the last, for two steps or more."""

    first: float
    middle: float
    last: float


def constant_budget(alpha: float, *, backward: Known, forward: Known) -> float:
    """Return the greatest epsilon a step that keeps total leakage at or below alpha at all times.

    Source: Algorithm 7, by bisection. Returns 0 where a supremum is infinite at any epsilon > 0 (identity).
    """
    bound, before, after = _positive(alpha), loss_of(backward), loss_of(forward)
    if not (before.pieces.q.size or after.pieces.q.size):
        return bound  # neither direction tells anything

    def exceeds(epsilon: float) -> bool:
        total = supremum(before, epsilon) + supremum(after, epsilon) - epsilon
        return total > bound * (1 - SUPREMA_ROUNDED)

    return _border(exceeds, bound)[0]


def exact_budgets(alpha: float, *, backward: Known, forward: Known) -> Budgets:
    """Return epsilons with which the total leakage is alpha at every step of a history, however long.

    With b = BPL and f = FPL constant over time, b = first, f = last, middle = b - L_B(b), and

        b + L_F(f) = alpha  (first step),  b + f - middle = alpha  (between),  L_B(b) + f = alpha  (last).

    Inserting f = alpha - L_B(b) leaves one equation in b whose left side never falls. Source: Algorithm 8.
    """
    bound, before, after = _positive(alpha), loss_of(backward), loss_of(forward)
    rounding = 1e-14 * bound  # equal within it counts as solved, from either side

    def excess(first: float) -> float:
        return first + after.at(max(bound - before.at(first), 0.0)) - bound

    least = _border(lambda first: excess(first) >= -rounding, bound)[1]
    most = _border(lambda first: excess(first) > rounding, bound)[0]
    first = (least + most) / 2
    carried = before.at(first)
    return Budgets(first, max(first - carried, 0.0), max(bound - carried, 0.0))


def _positive(alpha: float) -> float:
    bound = float(checked(alpha, "alpha"))
    if bound == 0:
        raise ParameterError("alpha must be greater than 0: the bound on the total leakage; got 0")
    return bound

"""Backward, forward and total leakage over time, and of several steps together."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from optstream.privacy.exact import whole
from studies.leakage.loss import (
    Amounts,
    Floats,
    Known,
    LossFunction,
    checked,
    checked_number,
    checked_series,
    followed,
    loss_of,
    shaped_as,
)


def backward_leakage(epsilons: Amounts, transition: Known) -> Amounts:
    """Return what the releases up to each step tell about the value at that step.

        BPL_1 = epsilon_1,  BPL_t = L(BPL_t-1) + epsilon_t

    Source: Cao et al. 2018, equations 10 to 12.

    epsilons: what each step's release loses when only that step changes, by at most alpha, shape (n_steps,);
    a scalar is one step. transition: the backward matrix, row i is Pr(l_t-1 | l_t = i), or a `LossFunction`
    of it; None: the adversary does not know it, and BPL = epsilon. Raises ParameterError for epsilons that
    are negative, not finite or not 1-D, or as `LossFunction`.
    """
    return shaped_as(followed(checked_series(epsilons), loss_of(transition)), epsilons)


def forward_leakage(epsilons: Amounts, transition: Known) -> Amounts:
    """Return what the releases from each step on tell about the value at that step.

        FPL_T = epsilon_T,  FPL_t = L(FPL_t+1) + epsilon_t

    Source: Cao et al. 2018, equations 13 and 14.

    transition: the forward matrix, row i is Pr(l_t+1 | l_t = i), or a `LossFunction` of it, or None. Raises
    ParameterError as `backward_leakage`.
    """
    series = checked_series(epsilons)
    return shaped_as(followed(series[::-1], loss_of(transition))[::-1], epsilons)


def total_leakage(epsilons: Amounts, *, backward: Known, forward: Known) -> Amounts:
    """Return what all releases tell about the value at each step: BPL_t + FPL_t - epsilon_t.

    Source: Cao et al. 2018, equation 15.

    backward: the transition matrix as in `backward_leakage`; None where the adversary does not know it.
    forward: the one as in `forward_leakage`, or None. Raises ParameterError as `backward_leakage`.
    """
    series = checked_series(epsilons)
    total = backward_leakage(series, backward) + forward_leakage(series, forward) - series
    return shaped_as(total, epsilons)


def sequence_leakage(epsilons: ArrayLike, length: int, *, backward: Known, forward: Known) -> Floats:
    """Return what all releases tell about the values at `length` consecutive steps together.

    BPL_t + FPL_t+length-1 + the epsilons strictly between; for length 1 it is the total leakage. Over the
    whole history it is the sum of the epsilons: correlation adds nothing to what protects all steps at once.
    Source: Cao et al. 2018, Theorem 3 and Corollary 1.

    length: steps of a sequence. Returns shape (n_steps - length + 1,); entry t is about the steps t .. t +
    length - 1. Raises ParameterError for a length that is no integer in [1, n_steps], or as `total_leakage`.
    """
    series = checked_series(epsilons)
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


# Where leakage ends if releases continue without end: Theorem 11, Algorithm 6, and for a repeated period.

ROUNDING = 4 * np.finfo(np.float64).eps
HALVINGS = 200


def supremum(transition: Known, epsilon: Amounts) -> Amounts:
    """Return the supremum over time of the backward (or forward) leakage at `epsilon` a step; it may be inf.

    The leakage rises to the one a with a = L(a) + epsilon. For a piece (q, d) of L it solves a quadratic
    equation in e^a; the largest over pieces is the answer. Without a solution it is infinite: d = 0 and
    epsilon >= log(1/q), so for q = 1, d = 0 at any epsilon > 0. In between, within rounding of that border,
    inf is said.

    Source: Cao et al. 2018, Theorem 11 and Algorithm 6.

    transition: as `backward_leakage` (or forward). epsilon: of each step, a scalar, or an array of such
    cases. Raises ParameterError as `LossFunction`.
    """
    pieces, epsilons = loss_of(transition).pieces, checked(epsilon, "epsilon")
    found = epsilons.copy()
    for q, d in zip(pieces.q.tolist(), pieces.d.tolist(), strict=True):
        found = np.maximum(found, _fixed_point(q, d, epsilons))
    return shaped_as(np.where(epsilons == 0, 0.0, found), epsilon)


def _fixed_point(q: float, d: float, epsilon: Floats) -> Floats:
    """Return the a > 0 with e^a (d (e^a - 1) + 1) = e^epsilon (q (e^a - 1) + 1), or inf.

    In w = (e^a - 1) e^-epsilon it reads d w^2 + slope w = offset, with neither overflow nor, for small
    epsilon, cancellation.
    """
    decay = np.exp(-epsilon)
    # (1 + d) e^-epsilon - q, written so that q near 1 keeps its digits, and so does a small q
    slope = (1 - q) + d + (1 + d) * np.expm1(-epsilon) if q > 0.5 else (1 + d) * decay - q
    offset = -np.expm1(-epsilon) * decay
    root = np.sqrt(slope**2 + 4 * d * offset)
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.log(2 * offset) - np.log(slope + root)
        falling = np.log(root - slope) - math.log(2 * d) if d > 0 else np.full_like(slope, np.inf)
        log_w = np.where(slope > (0 if d > 0 else ROUNDING), rising, falling)
        return np.asarray(np.logaddexp(0, epsilon + log_w))


def repeated_leakage(epsilons: ArrayLike, *, backward: Known, forward: Known) -> tuple[Floats, Floats]:
    """Return the backward and forward leakage where a period was and is repeated without end.

    BPL + FPL - epsilons is then the supremum of the total leakage at each step of the period. inf everywhere
    if the mean epsilon is at least log(1/q) for a piece with d = 0: Theorem 11, for epsilons that differ.

    epsilons: of each step of the period, shape (n_steps,), at least one. Returns BPL and FPL, each of shape
    (n_steps,). Raises ParameterError for an empty period, or as `total_leakage`.
    """
    series = checked_series(epsilons)
    if not series.size:
        raise ParameterError("epsilons must have at least one step; got none")
    before, after = _cycle(series, loss_of(backward)), _cycle(series[::-1], loss_of(forward))
    return before, after[::-1]


def _cycle(epsilons: Floats, loss: LossFunction) -> Floats:
    """Return the values on which x -> L(x) + e settles when the e come round and round."""
    mean, carried = math.fsum(epsilons) / len(epsilons), loss.carried_in_the_limit
    if mean == 0:
        return np.zeros(len(epsilons))
    if mean + carried >= -ROUNDING:
        return np.full(len(epsilons), np.inf)
    # once round grows a by less the larger a is, so the fixed point is bracketed, then halved
    high = 1.0
    while followed(epsilons, loss, high)[-1] > high:
        high *= 2
    settled = border(lambda leakage: followed(epsilons, loss, leakage)[-1] <= leakage, high)[1]
    return followed(epsilons, loss, settled)


def border(beyond: Callable[[float], bool], high: float) -> tuple[float, float]:
    """Return neighbours in [0, high] between which `beyond`, false below and true above, turns; or an end
    twice.
    """
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


# Budgets that keep the total leakage at alpha: by its supremum (Algorithm 7) and exactly (Algorithm 8).


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

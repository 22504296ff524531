"""Where leakage ends if releases continue without end: Theorem 11, Algorithm 6, and for a repeated period."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from studies.leakage.amounts import Amounts, Floats, checked, checked_series, shaped_as
from studies.leakage.loss import Known, LossFunction, followed, loss_of

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

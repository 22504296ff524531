"""Backward, forward and total leakage over time, and of several steps together."""

import numpy as np
from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from studies.leakage.amounts import Amounts, Floats, checked_series, shaped_as
from studies.leakage.loss import Known, followed, loss_of


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

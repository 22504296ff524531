"""Standard errors of windows' sums and differences, and the most that they can be."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StepErrors:
    """The errors of some nodes at the steps of one day.

    Attributes:
        single: (n_nodes, n_steps), standard errors; nan where not known.
        parts: (n_nodes, n_steps, n_parts), how errors move with independent variables of variance 1; None
            where not known.
        days_independent: Whether what the parts say is independent of other days' errors.
    """

    single: Floats
    parts: Floats | None = None
    days_independent: bool = False


def errors_of_windows(days: Sequence[StepErrors], window: int, is_difference: bool) -> tuple[Floats, Floats]:
    """Return the standard errors of all windows of a span of days, and bounds of them; free.

    Within a day whose parts are known the standard error is exact, and so it is over days with independent
    errors. Else it is unknown, and at most the sum of the steps' standard errors (Minkowski's inequality,
    whatever the errors' covariance), or of the days'.

    days: of the same nodes, one after another without a gap; they have at least `window` steps.
    is_difference: whether windows are asked for their last value less their first, not for their sum. Returns
    the standard errors, nan where they are not known, and the most that they can be, nan where a step's is
    not known: (n_nodes, n_windows) each. Entry i ends at step i + window - 1 of the span.
    """
    n_steps = sum(day.single.shape[1] for day in days)
    firsts = np.arange(n_steps - window + 1)
    lasts = firsts + window - 1
    n_nodes, start = days[0].single.shape[0], 0
    most, squares = np.zeros((2, n_nodes, firsts.size))
    exact = np.ones((n_nodes, firsts.size), dtype=bool)
    n_days = np.zeros(firsts.size, dtype=np.int64)
    alone = np.ones(firsts.size, dtype=bool)
    for day in days:
        length = day.single.shape[1]
        touched = _touched(firsts - start, lasts - start, length, is_difference)
        error = _of_day(day, firsts - start, lasts - start, is_difference)
        most += error
        squares += error**2
        one_step = touched == 1
        n_days += touched > 0
        alone &= (touched == 0) | day.days_independent
        exact &= (touched == 0) | one_step if day.parts is None else True
        start += length
    known = exact & ((n_days == 1) | alone)
    found = np.where(known, np.sqrt(squares), np.nan)
    return found, np.where(known, found, most)


def _touched(
    firsts: NDArray[np.int64], lasts: NDArray[np.int64], length: int, ends: bool
) -> NDArray[np.int64]:
    """Return how many of a day's steps each window asks for."""
    if ends:
        return ((firsts >= 0) & (firsts < length)).astype(np.int64) + ((lasts >= 0) & (lasts < length))
    counted: NDArray[np.int64] = np.clip(np.minimum(lasts, length - 1) - np.maximum(firsts, 0) + 1, 0, None)
    return counted


def _of_day(day: StepErrors, firsts: NDArray[np.int64], lasts: NDArray[np.int64], ends: bool) -> Floats:
    """Return the error of each window's part in a day: exact by its parts, else at most; 0 for no part."""
    steps = np.moveaxis(day.single[..., None] if day.parts is None else day.parts, 1, 0)
    length = len(steps)
    if ends:
        padded = np.concatenate([steps, np.zeros_like(steps[:1])])
        first = padded[np.where((firsts >= 0) & (firsts < length), firsts, length)]
        last = padded[np.where((lasts >= 0) & (lasts < length), lasts, length)]
        # of single errors the sum: the most that a difference can err
        pieces = last + first if day.parts is None else last - first
    else:
        unknown = np.isnan(steps)
        low, high = np.clip(firsts, 0, length), np.clip(lasts + 1, 0, length)
        pieces = _between(np.nan_to_num(steps), low, high)
        if unknown.any():
            pieces[_between(unknown.astype(np.float64), low, high) > 0] = np.nan
    found: Floats = np.linalg.norm(pieces, axis=-1).T
    return found


def _between(steps: Floats, low: NDArray[np.int64], high: NDArray[np.int64]) -> Floats:
    """Return the sums of steps from `low` up to `high`, along the first axis."""
    sums = np.concatenate([np.zeros_like(steps[:1]), np.cumsum(steps, axis=0)])
    found: Floats = sums[high] - sums[low]
    return found

"""Questions to counts that have been released: sums over windows, low signal, jumps and drops. All are free.

Entry i of an answer is about the window that ends at step i + length - 1. On smoothed counts these are
PeGaSus' event queries; `smoothing.smoothed_window_sums` gives sums that use all that is known of a group.
Source: Chen, Machanavajjhala, Hay and Miklau 2017, sections 2.2 and 4.
"""

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.pegasus.smoothing import Floats

Answers = NDArray[np.bool_]


def window_sums(counts: Floats, length: int) -> Floats:
    """Return the sum of the last `length` steps, (n_series, n_steps - length + 1), of counts (n_series,
    n_steps). Raises ParameterError for a length outside [1, n_steps].
    """
    _check(counts, length)
    sums: Floats = np.lib.stride_tricks.sliding_window_view(counts, length, axis=1).sum(axis=2)
    return sums


def low_signal(sums: Floats, most: float) -> Answers:
    """Return where a window's sum, as `window_sums` or `smoothed_window_sums` gives it, is at most `most`."""
    low: Answers = sums <= most
    return low


def jumps(counts: Floats, length: int, least: float) -> Answers:
    """Return where a window's last step is at least `least` above its first, (n_series, n_steps - length +
    1); drops are jumps of -counts. Raises ParameterError for a length outside [1, n_steps], or a `least` that
    is not above 0.
    """
    _check(counts, length)
    if not least > 0:
        raise ParameterError(f"least must be greater than 0; got {least!r}")
    higher: Answers = counts[:, length - 1 :] - counts[:, : counts.shape[1] - length + 1] >= least
    return higher


def _check(counts: Floats, length: int) -> None:
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= counts.shape[1]:
        raise ParameterError(f"length must be an integer in [1, {counts.shape[1]}]; got {length!r}")

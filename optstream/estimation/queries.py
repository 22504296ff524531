"""Other questions to a released series: sums over sliding windows, and events. They cost nothing.

Events as in Chen, Machanavajjhala, Hay and Miklau 2017: a predicate on the last steps of a series that is
private already.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError


def window_sums(values: ArrayLike, length: int) -> NDArray[np.float64]:
    """Return the sum of each `length` consecutive steps: what happened in the last so many steps.

    values: (…, n_steps), released. Returns (…, n_steps - length + 1): entry i ends at step i + length - 1.
    What was published at each step is added up; `smoothing.smoothed_window_sums` knows better where there are
    groups. Costs no privacy. Raises ParameterError for a length outside [1, n_steps].
    """
    series = _series(values)
    _check_whole(length, 1, series.shape[-1], "length")
    windows = np.lib.stride_tricks.sliding_window_view(series, length, axis=-1)
    sums: NDArray[np.float64] = windows.sum(axis=-1)
    return sums


def low_signal(values: ArrayLike, length: int, at_most: float) -> NDArray[np.bool_]:
    """Return whether the sum of the last `length` steps is at most `at_most`: hardly anyone was there.

    values, length: as for `window_sums`, and so the shape returned. at_most: unit of the values. Costs no
    privacy.
    """
    low: NDArray[np.bool_] = window_sums(values, length) <= _amount(at_most, "at_most")
    return low


def jumps(values: ArrayLike, lag: int, by: float) -> NDArray[np.bool_]:
    """Return whether a step's value is at least `by` above that of `lag` steps before.

    values: (…, n_steps), released. by: unit of the values. Returns (…, n_steps - lag): entry i is about step
    i + lag. The paper's event compares both ends of a window of w steps, lag = w - 1, and is either a
    jump or a drop. Costs no privacy. Raises ParameterError for a lag outside [1, n_steps - 1].
    """
    risen: NDArray[np.bool_] = _rises(values, lag) >= _amount(by, "by")
    return risen


def drops(values: ArrayLike, lag: int, by: float) -> NDArray[np.bool_]:
    """Return whether a step's value is at least `by` below that of `lag` steps before. As `jumps`
    otherwise.
    """
    fallen: NDArray[np.bool_] = -_rises(values, lag) >= _amount(by, "by")
    return fallen


def _rises(values: ArrayLike, lag: int) -> NDArray[np.float64]:
    series = _series(values)
    _check_whole(lag, 1, series.shape[-1] - 1, "lag")
    return series[..., lag:] - series[..., :-lag]


def _series(values: ArrayLike) -> NDArray[np.float64]:
    series = np.asarray(values, dtype=np.float64)
    if not series.ndim or not series.shape[-1]:
        raise ParameterError(f"values must have shape (…, n_steps), at least one step; got {series.shape}")
    return series


def _check_whole(value: int, lowest: int, highest: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ParameterError(f"{name} must be an integer in [{lowest}, {highest}]; got {value!r}")


def _amount(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        raise ParameterError(f"{name} must be a finite number; got {value!r}")
    return value

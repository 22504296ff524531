"""Each step from the noisy values of its group, as far as they are known at that step."""

from bisect import insort
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.estimate import Estimate
from optstream.stream import Measured

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MEDIAN_EXCESS = 2 * np.sqrt(2 / np.pi)
"""How a median's variance nears its limit: E|Z|^3 of a standard normal Z."""


def smooth(measured: Measured, smoother: str) -> Estimate:
    """Return each step's estimate from the noisy values of its group up to that step; it is never revised.

    measured: points at every step, and in choices["groups"] the running index of the first step of each
    step's group; before["noisy"] has the noisy values of each open group. smoother: a key of `SMOOTHERS`,
    else ParameterError. Variances are of the noise alone (`NOISE_LEFT`); nan for a median of three or more.
    Source: Chen, Machanavajjhala, Hay and Miklau 2017, section 3.
    """
    if smoother not in SMOOTHERS:
        raise ParameterError(f"smoother must be one of {', '.join(SMOOTHERS)}; got {smoother!r}")
    assert measured.point_variances is not None
    assert measured.choices is not None
    values, variances, noise = np.empty((3, *measured.points.shape))
    earlier = (measured.before or {}).get("noisy", ())
    for series, groups in enumerate(measured.choices["groups"]):
        points, single = measured.points[series], float(measured.point_variances[series, 0])
        for first, end in pairwise([0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]):
            known = list(earlier[series]) if groups[first] < measured.first_step else []
            noisy = np.array([*known, *points[first:end].tolist()], dtype=np.float64)
            sizes = np.arange(len(known) + 1, noisy.size + 1)
            values[series, first:end] = SMOOTHERS[smoother](noisy)[len(known) :]
            variances[series, first:end] = left = single * NOISE_LEFT[smoother](sizes)
            noise[series, first:end] = np.where((sizes <= 2) | (smoother != "median"), left, np.nan)
    unit = float(measured.resolution)
    return Estimate(values * unit, variances * unit**2, noise * unit**2)


def _running_average(noisy: Floats) -> Floats:
    return np.asarray(np.cumsum(noisy) / np.arange(1, noisy.size + 1))


def _running_median(noisy: Floats) -> Floats:
    ordered: list[float] = []
    medians = np.empty(noisy.size)
    for place, value in enumerate(noisy.tolist()):
        insort(ordered, value)
        middle = len(ordered) // 2
        medians[place] = (ordered[middle] + ordered[-middle - 1]) / 2
    return medians


def _running_james_stein(noisy: Floats) -> Floats:
    """Return the mean of the first n values plus an n-th of the last one's distance from it, for each n."""
    means = _running_average(noisy)
    return np.asarray(means + (noisy - means) / np.arange(1, noisy.size + 1))


def _median_left(sizes: Integers) -> Floats:
    """Return a median's variance, of Laplace noise of variance 2 b^2: b^2 / n (1 + 2 sqrt(2 / pi) / sqrt(n)),
    an expansion, never above the mean's."""
    return np.asarray(np.minimum(1.0 + MEDIAN_EXCESS / np.sqrt(sizes), 2.0) / (2.0 * sizes))


def _james_stein_left(sizes: Integers) -> Floats:
    """Return the rest where the last of n values has weight a + 1/n, the others a = (n - 1) / n^2."""
    others = (sizes - 1) / sizes**2
    return np.asarray((sizes - 1) * others**2 + (others + 1.0 / sizes) ** 2)


SMOOTHERS: Mapping[str, Callable[[Floats], Floats]] = {
    "average": _running_average,
    "median": _running_median,
    "james_stein": _running_james_stein,
}
"""From a group's noisy values in the order of time to each one's estimate: the least squares fit of a
constant, the likeliest constant under Laplace noise, and a shrunken mean."""

NOISE_LEFT: Mapping[str, Callable[[Integers], Floats]] = {
    "average": lambda sizes: 1.0 / sizes,
    "median": _median_left,
    "james_stein": _james_stein_left,
}
"""What part of one value's noise variance is left by a smoother over n values."""

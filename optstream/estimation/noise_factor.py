"""What the noise of measurements did to a linear estimate, found by moving the numbers that were drawn."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_terms import ErrorFactor, SeparableFactor
from optstream.estimation.estimate import UNKNOWN
from optstream.stream import Measured

Floats = NDArray[np.float64]
Row = tuple[tuple[int, ...], tuple[int, ...]]
"""Of which series a number was drawn: in which part of the measurements, and where in its arrays."""
Column = tuple[int, int]
"""At which place in time: points or which answer, and which of them."""
Number = tuple[Row, Column]
Estimator = Callable[[Measured], Floats]

MOST_ENTRIES = 2**24
"""Of a factor: 128 MiB. One of more, of many leaves, is not made."""
MOST_DRAWN = 2**17
"""Numbers, of which a separable factor is made: 2,730 nodes at half-hours."""
APART = 1e-3
"""Relative: columns whose own effect on the steps is less than this are dependent."""
SAME = 1e-6
"""Relative: variances that differ by less are one."""
PUSH = 2.0**20
"""Units of the resolution by which a number is moved: far above its rounding, far below 2^53."""


def noise_factor(estimate: Estimator, measured: Measured, variances: Floats) -> ErrorFactor | None:
    """Return the effect of the measurements' noise on a linear estimate, each drawn number moved alone.

    Every number is one part: independent of the others, or, in a group of joint noise, not correlated with
    them. None where the factor's squares do not add up to `variances`, for then noise of earlier periods is
    in the values, or they are not linear (medians).
    """
    if not np.isfinite(variances).all():
        return None
    n_parts, rest = _n_drawn(measured), estimate(measured)
    parts = np.zeros((*variances.shape, n_parts))
    for number, (moved, deviation) in enumerate(_moved(measured)):
        parts[..., number] = (estimate(moved) - rest) * (deviation / PUSH)
    squares = (parts**2).sum(axis=-1)
    exact = np.allclose(squares, variances, rtol=SAME, atol=SAME * variances.max(initial=0.0))
    return ErrorFactor(parts) if exact else None


def separable_factor(estimate: Estimator, measured: Measured, variances: Floats) -> SeparableFactor | None:
    """Return the factor of many series that were all measured alike; None as `noise_factor`.

    The effect of a number is then that of its row on the series, times that of its column on the steps. So
    the first row is moved column by column; then as many rows at once as there are columns with different
    effects, each in a column of its own. All numbers are moved at once, by amounts in no simple proportion,
    to test this: linear maps that agree there agree everywhere, but for a coincidence.
    """
    if not np.isfinite(variances).all():
        return None
    deviation = {(row, column): value for row, column, value in _drawn(measured)}
    rows = list(dict.fromkeys(row for row, _ in deviation))
    columns = list(dict.fromkeys(column for _, column in deviation))
    if not rows or len(deviation) != len(rows) * len(columns):
        return None
    rest = estimate(measured)

    def moved(numbers: Iterable[Number], by: Iterable[float]) -> Floats:
        every = {one: PUSH * deviation[one] * amount for one, amount in zip(numbers, by, strict=True)}
        return (estimate(_moved_by(measured, every)) - rest) / PUSH

    effects = [moved([(rows[0], column)], [1.0]) for column in columns]
    leaf, step = np.unravel_index(np.argmax(np.abs(effects[0])), effects[0].shape)
    if effects[0][leaf, step] == 0.0:
        return None
    steps = np.column_stack([effect[leaf] for effect in effects]) / effects[0][leaf, step]
    apart = _apart(steps)
    series = np.empty((len(variances), len(rows)))
    for first in range(0, len(rows), len(apart)):
        some = rows[first : first + len(apart)]
        own = apart[: len(some)]
        numbers = [(row, columns[place]) for row, place in zip(some, own, strict=True)]
        both = moved(numbers, [1.0] * len(some))
        series[:, first : first + len(some)] = both @ np.linalg.pinv(steps[:, own]).T
    # in no simple proportion to each other, and the same each time
    amounts = np.cos(np.sqrt(2.0) * np.arange(1.0, 1.0 + len(deviation)) ** 2).reshape(len(rows), -1)
    found = moved(product(rows, columns), amounts.flat)
    largest = variances.max(initial=0.0)
    holds = np.allclose(found, series @ amounts @ steps.T, rtol=0.0, atol=SAME * np.sqrt(largest))
    squares = np.outer((series**2).sum(axis=1), (steps**2).sum(axis=1))
    exact = np.allclose(squares, variances, rtol=SAME, atol=SAME * largest)
    return SeparableFactor(series, steps) if holds and exact else None


def _apart(columns: Floats) -> list[int]:
    """Return the places of as many linearly independent columns as there are, by pivoted Gram-Schmidt."""
    left, found, longest = columns.copy(), list[int](), 0.0
    for _ in range(min(columns.shape)):
        lengths = np.linalg.norm(left, axis=0)
        place = int(np.argmax(lengths))
        longest = longest or lengths[place]
        if lengths[place] <= APART * longest:
            break
        found.append(place)
        one = left[:, place] / lengths[place]
        left -= np.outer(one, one @ left)
    return found


def factor_that_fits(
    measured: Measured, n_series: int
) -> Callable[[Estimator, Measured, Floats], ErrorFactor | SeparableFactor | None] | None:
    """Return `noise_factor` within `MOST_ENTRIES`, else `separable_factor` within `MOST_DRAWN`, else None."""
    n_drawn = _n_drawn(measured)
    if n_series * measured.n_steps * n_drawn <= MOST_ENTRIES:
        return noise_factor
    return separable_factor if n_drawn <= MOST_DRAWN else None


def _moved(measured: Measured) -> Iterator[tuple[Measured, float]]:
    """Yield for each number that was drawn the measurements with it moved, and its standard deviation."""
    for row, column, deviation in _drawn(measured):
        yield _moved_by(measured, {(row, column): PUSH}), deviation


def _drawn(measured: Measured, within: tuple[int, ...] = ()) -> Iterator[tuple[Row, Column, float]]:
    """Yield series, place in time and standard deviation of each drawn number, in `within` parts."""
    for place, part in enumerate(measured.parts):
        yield from _drawn(part, (*within, place))
    for number, variances in enumerate(_variances(measured)):
        for *row, column in np.argwhere(_was_drawn(variances)).tolist():
            yield (within, tuple(row)), (number, column), float(np.sqrt(variances[(*row, column)]))


def _moved_by(measured: Measured, amounts: Mapping[Number, float]) -> Measured:
    """Return the measurements with these numbers moved, each by its amount."""
    parts: dict[int, dict[Number, float]] = {}
    touched = {number for (within, _), (number, _) in amounts if not within}
    arrays = [
        np.array(entry, dtype=np.float64) if number in touched else entry
        for number, entry in enumerate((measured.points, *measured.answers.values))
    ]
    for ((within, row), (number, column)), amount in amounts.items():
        if within:
            parts.setdefault(within[0], {})[(within[1:], row), (number, column)] = amount
            continue
        arrays[number][(*row, column)] += amount
    answers = replace(measured.answers, values=tuple(arrays[1:]))
    moved = [
        _moved_by(part, parts[place]) if place in parts else part for place, part in enumerate(measured.parts)
    ]
    return replace(measured, points=arrays[0], answers=answers, parts=tuple(moved))


def _n_drawn(measured: Measured) -> int:
    own = sum(int(_was_drawn(variances).sum()) for variances in _variances(measured))
    return own + sum(_n_drawn(part) for part in measured.parts)


def _was_drawn(variances: Floats) -> NDArray[np.bool_]:
    return (variances > 0) & (variances < UNKNOWN)


def _variances(measured: Measured) -> tuple[Floats, ...]:
    """Return the variance of each point and of each answer; nothing where they are unknown."""
    known = measured.point_variances, measured.answers.variances
    if known[0] is None or known[1] is None:
        return ()
    arrays = (measured.points, *measured.answers.values)
    return tuple(np.broadcast_to(v, a.shape) for v, a in zip((known[0], *known[1]), arrays, strict=True))

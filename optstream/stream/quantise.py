"""Readings become integers: clamped to public bounds, rounded half up on exact decimals."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError

LARGEST_UNITS = 2**50
"""Integers stay below this, so that they are exact as floats and their sums fit int64."""

LONGEST_IN_INT64 = 2**12
"""Steps of a period up to which measurements multiply and add readings in int64: chosen by how long a period
is, never by how large its readings are, for what holds more takes time and memory that others do not."""


def quantise(values: NDArray[Any], resolution: Fraction) -> NDArray[np.int64]:
    """Return floor(value / resolution + 1/2) for each value, computed exactly, same shape.

    A float stands for its shortest decimal ("0.1" for the double nearest to one tenth), as it was
    delivered. What lies beyond 2^50 units, infinities included, is clamped to that, and NaN counts as 0: no
    reading decides whether there is an answer. Lemma 2 (docs/privacy.md): two values at most alpha apart give
    integers at most ceil(alpha / resolution) apart. Half-even rounding or a float product can differ by one
    unit more.

    Raises ParameterError for values that are no numbers by their type.
    """
    values = np.asarray(values)
    if values.dtype.kind not in "iuf":
        raise ParameterError(f"values must be integers or floats to be counted; got dtype {values.dtype}")
    if values.dtype.kind in "iu":
        scale = 1 / resolution
        if scale.denominator == 1 and _all_below(values, LARGEST_UNITS / float(scale)):
            return values.astype(np.int64) * int(scale)
    else:
        values = np.where(np.isnan(values), values.dtype.type(0), values)
    # A little outside, so that floating point cannot clamp what is within.
    size, largest = values.astype(np.float64), LARGEST_UNITS * float(resolution) * (1 + 2.0**-40)
    above, below = size >= largest, size <= -largest
    values = np.where(above | below, values.dtype.type(0), values)
    # The product is within a few ulp of the exact quotient; where that could decide, decide exactly.
    quotients = values.astype(np.float64) / float(resolution)
    units = np.floor(quotients + 0.5)
    doubtful = (
        np.abs(quotients + 0.5 - np.rint(quotients + 0.5)) <= np.abs(quotients) * _margin(values) + 1e-9
    )
    distinct, which = np.unique(values[doubtful], return_inverse=True)
    decided = [math.floor(Fraction(Decimal(str(value))) / resolution + Fraction(1, 2)) for value in distinct]
    units[doubtful] = np.array(decided, dtype=np.float64)[which]
    units = np.where(above, LARGEST_UNITS, np.where(below, -LARGEST_UNITS, units))
    return np.clip(units, -LARGEST_UNITS, LARGEST_UNITS).astype(np.int64)


def _margin(values: NDArray[Any]) -> float:
    """Return the relative distance between a float and its shortest decimal, with a margin for two
    roundings.
    """
    return 4 * float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 1e-15


def _all_below(values: NDArray[Any], bound: float) -> bool:
    return bool(np.all((values > -bound) & (values < bound)))

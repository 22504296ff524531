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


def quantise(values: NDArray[Any], resolution: Fraction) -> NDArray[np.int64]:
    """Return floor(value / resolution + 1/2) for each value, computed exactly, same shape.

    A float stands for its shortest decimal ("0.1" for the double nearest to one tenth), as it was
    delivered. Lemma 2 (docs/privacy.md): two values at most alpha apart give integers at most
    ceil(alpha / resolution) apart. Half-even rounding or a float product can differ by one unit more.

    Raises ParameterError for values that are not finite numbers or too large; the message shows none.
    """
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        scale = 1 / resolution
        if scale.denominator == 1 and _all_below(values, LARGEST_UNITS / float(scale)):
            return values.astype(np.int64) * int(scale)
    elif values.dtype.kind != "f":
        raise ParameterError(f"values must be integers or floats to be counted; got dtype {values.dtype}")
    if not np.all(np.isfinite(values)):
        raise ParameterError("values must be finite: clean null, NaN and infinity by the input's rule first")
    if not _all_below(values, LARGEST_UNITS * float(resolution)):
        raise ParameterError(
            f"values must be below 2^50 units of the resolution {resolution} in size; "
            "check the unit of the column, or choose a coarser resolution"
        )
    # The product is within a few ulp of the exact quotient; where that could decide, decide exactly.
    quotients = values.astype(np.float64) / float(resolution)
    units = np.floor(quotients + 0.5)
    doubtful = (
        np.abs(quotients + 0.5 - np.rint(quotients + 0.5)) <= np.abs(quotients) * _margin(values) + 1e-9
    )
    distinct, which = np.unique(values[doubtful], return_inverse=True)
    decided = [math.floor(Fraction(Decimal(str(value))) / resolution + Fraction(1, 2)) for value in distinct]
    units[doubtful] = np.array(decided, dtype=np.float64)[which]
    return units.astype(np.int64)


def _margin(values: NDArray[Any]) -> float:
    """Relative distance between a float and its shortest decimal, with room for two roundings."""
    return 4 * float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 1e-15


def _all_below(values: NDArray[Any], bound: float) -> bool:
    return bool(np.all((values > -bound) & (values < bound)))

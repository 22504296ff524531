"""Columns of floats become exact integers; and where floating point alone leaves no doubt of them."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.stream.quantise import quantise

LARGEST_DECIMAL = 10**15
"""Below it two decimals of one scale are never the same float64, so the one that fits is the shortest."""
Numbers = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class FloatCounter:
    """Counts readings of one float type: clamped to the public bounds, rounded half up to the resolution."""

    number: type[np.float32] | type[np.float64]
    bounds: tuple[Fraction, Fraction]
    resolution: Fraction

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The bounds in units."""
        low, high = (math.floor(bound / self.resolution + Fraction(1, 2)) for bound in self.bounds)
        return low, high

    @cached_property
    def doubt(self) -> float:
        """How near to a tie a quotient may be that floating point cannot decide.

        The errors of the decimal's float, of the resolution's and its inverse's, and of two operations are
        together below 4 eps of the largest quotient; `quantise` itself allows as much.
        """
        largest = max(abs(limit) for limit in self.limits) + 1.0
        return 4 * float(np.finfo(self.number).eps) * largest + 1e-9

    def quotient(self, value: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """The rounded quotient of a reading within the bounds, float64, and whether it is beyond doubt."""
        shifted = value.cast(pl.Float64) / float(self.resolution) + 0.5
        rounded = shifted.floor()
        return rounded, (shifted - rounded).is_between(self.doubt, 1 - self.doubt, closed="none")

    @cached_property
    def digits(self) -> int:
        """The most decimals at which readings within the bounds are short and their quotients fit int64."""
        largest = max(abs(bound) for bound in self.bounds) + 1
        top, bottom = self.resolution.as_integer_ratio()
        fits = (
            digits
            for digits in range(15, -1, -1)
            if largest * 10**digits < LARGEST_DECIMAL
            and 2 * largest * 10**digits * bottom + 10**digits * top < 2**62
        )
        return next(fits, -1)

    def count(self, raw: Numbers) -> NDArray[np.int64]:
        """The units of each reading, (n,) int64, exactly; 0 where it is NaN."""
        low, high = (self.number(float(bound)) for bound in self.bounds)
        # a little outside the bounds, so that what lies beyond is in range and stays beyond
        below = np.nextafter(low, self.number(-np.inf))
        above = np.nextafter(high, self.number(np.inf))
        absent = np.isnan(raw)
        cut = np.clip(np.where(absent, self.number(0), raw), below, above)
        units, decided = self._short_decimals(cut)
        units[~decided] = quantise(cut[~decided], self.resolution)
        return np.where(absent, 0, np.clip(units, *self.limits))

    def _short_decimals(self, values: Numbers) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Units of the float64 values that are whole numbers of 10^-digits, in integers; and which those are.

        Of fewer than 16 digits, one decimal at most is read as a given float64: if dividing the integer gives
        the value back, it is the value's shortest decimal, for which the value stands.
        """
        if self.number is not np.float64 or self.digits < 0:
            return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)
        scale = 10**self.digits
        mantissas = np.rint(values * float(scale))
        decided = mantissas / float(scale) == values
        top, bottom = self.resolution.as_integer_ratio()
        whole = np.where(decided, mantissas, 0.0).astype(np.int64)
        return (2 * bottom * whole + scale * top) // (2 * scale * top), decided

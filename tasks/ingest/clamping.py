"""A reading becomes an exact integer: absent, clamped to its bounds, rounded, by the type of its column."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import polars as pl

from optstream.stream.private_period import quantise

FLOATS: dict[pl.DataType | type[pl.DataType], type[np.float32 | np.float64]] = {
    pl.Float32: np.float32,
    pl.Float64: np.float64,
}
LARGEST_MANTISSA = 2**62
MOST_DIGITS = 38
"""Of a decimal column that polars can read; a schema may have more."""
LARGEST_DECIMAL = 10**MOST_DIGITS
"""Above the integer of any decimal, and within 128 bits."""
KINDS = ("sound", "absent", "infinite", "out_of_bounds")
"""What a reading is found to be."""
SOUND, ABSENT, INFINITE, OUT_OF_BOUNDS = range(len(KINDS))
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Reading:
    """Expressions over a value column. units: int64, 0 where absent. kind: place in `KINDS`, int64."""

    units: pl.Expr
    kind: pl.Expr


def countable(dtype: pl.DataType) -> bool:
    """Whether a column of this type can be counted exactly."""
    if isinstance(dtype, pl.Decimal):
        return dtype.precision <= MOST_DIGITS
    # A UInt128 can overflow on its way to a number with a sign: a reading would decide whether a day appears.
    return dtype in FLOATS or (dtype.is_integer() and dtype != pl.UInt128)


def kept_digits(scale: int, resolution: Fraction) -> int:
    """How many decimals decide the rounding: further ones only fall between multiples of half the resolution.

    Rounding half up looks at whole halves of the resolution alone, so digits below are cut, downwards,
    without changing any result; none where such a half has endless digits itself, as with a factor of 3.
    Writers choose a decimal column's scale by its longest reading, so that one must not decide whether the
    column can be counted.
    """
    half = resolution / 2
    return next((digits for digits in range(scale) if (half * 10**digits).denominator == 1), scale)


@lru_cache(maxsize=64)
def reading(column: str, dtype: pl.DataType, bounds: Bounds, resolution: Fraction) -> Reading:
    """How a column of this type is read: clamped to the bounds, then rounded half up to the resolution.

    Rounding never decreases, so clamping the integers to the rounded bounds gives the same as clamping the
    readings; the readings are first cut a little outside the bounds, to keep them in range.
    """
    limits = [math.floor(bound / resolution + Fraction(1, 2)) for bound in bounds]
    if dtype in FLOATS:
        return _floats(pl.col(column).cast(dtype), dtype, bounds, limits, resolution)
    return _integers(pl.col(column), dtype, bounds, limits, resolution)


def _floats(
    value: pl.Expr, dtype: pl.DataType, bounds: Bounds, limits: list[int], resolution: Fraction
) -> Reading:
    """Floats: by the rounded quotient, in the same pass exactly where that leaves a doubt.

    What is decided exactly costs some microseconds a row, and nobody else's row is read again for it: a
    customer's readings move the time that ingestion takes by their own rows alone.
    """
    number = FLOATS[dtype]
    least, most = (pl.lit(float(number(float(bound))), dtype) for bound in bounds)
    # so near to a tie floating point cannot decide: the errors of the decimal's float, of the resolution's
    # and its inverse's, and of two operations are together below 4 eps of the largest quotient
    doubt = 4 * float(np.finfo(number).eps) * (max(map(abs, limits)) + 1.0) + 1e-9

    def count(values: pl.Series) -> pl.Series:
        units, doubtful = np.zeros(len(values), dtype=np.int64), values.drop_nulls()
        if len(doubtful):
            exact = np.clip(quantise(doubtful.to_numpy(), resolution), limits[0], limits[1])
            units[values.is_not_null().to_numpy()] = exact
        return pl.Series(values.name, units)

    shifted = value.cast(pl.Float64) / float(resolution) + 0.5
    sure = (shifted - shifted.floor()).is_between(doubt, 1 - doubt, closed="none")
    infinite = value.is_infinite().fill_null(False)
    absent = value.is_null() | value.is_nan().fill_null(False)
    sound = value.is_between(least, most).fill_null(False)
    kind = pl.when(sound).then(SOUND).when(absent).then(ABSENT).when(infinite).then(INFINITE)
    units = (
        pl.when(absent)
        .then(0)
        .when(value > most)
        .then(limits[1])
        .when(value < least)
        .then(limits[0])
        .when(sure)
        .then(shifted.floor().cast(pl.Int64, strict=False))
        .otherwise(_each(pl.when(sound & ~sure).then(value), count))
    )
    return Reading(units.cast(pl.Int64), kind.otherwise(OUT_OF_BOUNDS).cast(pl.Int64))


def _integers(
    value: pl.Expr, dtype: pl.DataType, bounds: Bounds, limits: list[int], resolution: Fraction
) -> Reading:
    """Integers, and decimals as integers times a power of ten; one by one where 64 bits do not hold them."""
    scale = 1
    wide = isinstance(dtype, pl.Decimal) or dtype in (pl.UInt64, pl.Int128)
    whole_type = pl.Int128 if wide else pl.Int64
    whole = value.to_physical().cast(whole_type)
    if isinstance(dtype, pl.Decimal):
        digits = kept_digits(dtype.scale, resolution)
        scale = 10**digits
        whole = whole // pl.lit(10 ** (dtype.scale - digits), pl.Int128)
    whole_bounds = math.ceil(bounds[0] * scale), math.floor(bounds[1] * scale)
    low, high = (min(max(bound, -LARGEST_DECIMAL), LARGEST_DECIMAL) for bound in whole_bounds)
    top, bottom = (resolution * scale).as_integer_ratio()

    def count_long(values: pl.Series) -> pl.Series:
        units = ((2 * bottom * number + top) // (2 * top) for number in values.fill_null(0))
        cut = [min(max(one, limits[0]), limits[1]) for one in units]
        return pl.Series(values.name, np.where(values.is_null().to_numpy(), 0, cut), pl.Int64)

    def count(values: pl.Series) -> pl.Series:
        cut = values.fill_null(0).clip(low - 1, high + 1).cast(pl.Int64).to_numpy()
        units = np.clip(quantise(cut, resolution * scale), limits[0], limits[1])
        return pl.Series(values.name, np.where(values.is_null().to_numpy(), 0, units))

    is_long = max(-low, high) + 2 >= LARGEST_MANTISSA
    sound = whole.is_between(pl.lit(low, whole_type), pl.lit(high, whole_type))
    kind = pl.when(value.is_null()).then(ABSENT).when(sound).then(SOUND).otherwise(OUT_OF_BOUNDS)
    return Reading(_each(whole, count_long if is_long else count), kind.cast(pl.Int64))


def _each(value: pl.Expr, count: Callable[[pl.Series], pl.Series]) -> pl.Expr:
    # All of the arithmetic is inside: polars may evaluate what stands around it on rows of its choice.
    return value.map_batches(count, return_dtype=pl.Int64, is_elementwise=True)

"""A reading becomes an exact integer: absent, clamped to its bounds, rounded, by the type of its column."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import polars as pl

from optstream.stream.private_period import quantise

FLOATS = pl.Float32, pl.Float64
LARGEST_MANTISSA = 2**62
MOST_DIGITS = 38
"""Of a decimal column that polars can read; a schema may have more."""
LARGEST_DECIMAL = 10**MOST_DIGITS
"""Above the integer of any decimal, and within 128 bits."""
KINDS = ("sound", "absent", "infinite", "out_of_bounds")
"""What a reading is found to be."""
LONGEST_NUMBER, LONGEST_SUM, LARGEST_POWER = 1000, 4000, 400
"""Characters of a number in a text, and of a sum; the power of ten beyond which its size alone counts."""
_NUMBER = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,9}))?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}([ '’\u00a0\u202f][0-9]{3})+(?![0-9])")
_INFINITE = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)
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
def reading(
    column: str, dtype: pl.DataType, bounds: Bounds, resolution: Fraction, decimal: str = "."
) -> Reading:
    """How a column of this type is read: clamped to the bounds, then rounded half up to the resolution.

    Rounding never decreases, so clamping the integers to the rounded bounds gives the same as clamping the
    readings; the readings are first cut a little outside the bounds, to keep them in range.
    """
    limits = [math.floor(bound / resolution + Fraction(1, 2)) for bound in bounds]
    value = pl.col(column)
    if dtype == pl.String:
        return _texts(value, bounds, limits, resolution, decimal)
    if dtype not in FLOATS:
        return _integers(value, dtype, bounds, limits, resolution)
    value = value.cast(dtype)
    absent = value.is_null() | value.is_nan()
    low, high = (pl.lit(float(bound), dtype) for bound in bounds)
    finite = pl.when(value.is_between(low, high)).then(SOUND).otherwise(OUT_OF_BOUNDS)
    kind = pl.when(absent).then(ABSENT).when(value.is_infinite()).then(INFINITE).otherwise(finite)

    def count(values: pl.Series) -> pl.Series:
        raw = values.to_numpy()  # null is NaN
        units = np.clip(quantise(raw, resolution), limits[0], limits[1])
        return pl.Series(values.name, np.where(np.isnan(raw), 0, units))

    return Reading(_each(value, count), kind.cast(pl.Int64))


def number_of(
    text: str | None, decimal: str = ".", longest: int = LONGEST_NUMBER
) -> tuple[int, int] | float | None:
    """Return the number of a text, an integer and the power of ten that it is times, or infinite, or None."""
    if text is None or len(text) > longest:
        return None
    if decimal != ".":
        text = text.replace(".", "_").replace(decimal, ".")
    if grouped := _THOUSANDS.match(text):
        text = re.sub(r"[ '’\u00a0\u202f]", "", grouped[0]) + text[grouped.end() :]
    if infinite := _INFINITE.fullmatch(text):
        return -math.inf if infinite[1] == "-" else math.inf
    if (found := _NUMBER.fullmatch(text)) is None:
        return None
    sign, whole, part, power = found.groups()
    exponent = min(max(int(power or 0) - len(part), -2 * LONGEST_NUMBER), LARGEST_POWER)
    return int(f"{sign}{whole}{part}"), exponent


def sum_of(texts: Iterable[str | None], decimal: str) -> str | None:
    """Return the exact sum of some numbers, as a text; None where one is absent."""
    found = [number_of(text, decimal) for text in texts]
    exact = [one for one in found if isinstance(one, tuple)]
    if len(exact) < len(found):
        infinite = [one for one in found if isinstance(one, float)]
        return str(infinite[0]) if len(infinite) + len(exact) == len(found) else None
    least = min(exponent for _, exponent in exact)
    return f"{sum(number * 10 ** (exponent - least) for number, exponent in exact)}e{least}"


def _texts(value: pl.Expr, bounds: Bounds, limits: list[int], resolution: Fraction, decimal: str) -> Reading:
    """Numbers as text, exactly as their digits say; a text that is no number is absent."""
    top, bottom = resolution.as_integer_ratio()

    def count_one(text: str | None) -> int:
        """The units times the number of kinds, plus the kind."""
        found = number_of(text, decimal, LONGEST_SUM)
        if found is None or isinstance(found, float):
            return ABSENT if found is None else limits[found > 0] * len(KINDS) + INFINITE
        number, exponent = found
        number, scale = number * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
        units = (2 * number * bottom + scale * top) // (2 * scale * top)
        is_sound = bounds[0] * scale <= number <= bounds[1] * scale
        kind = SOUND if is_sound else OUT_OF_BOUNDS
        return int(min(max(units, limits[0]), limits[1])) * len(KINDS) + kind

    def count(values: pl.Series) -> pl.Series:
        texts = pl.DataFrame({"text": values.unique()}).with_columns(
            counted=pl.col("text").map_elements(count_one, return_dtype=pl.Int64, skip_nulls=False)
        )
        given = pl.DataFrame({"text": values})
        counted = given.join(texts, on="text", how="left", nulls_equal=True, maintain_order="left")["counted"]
        return counted.alias(values.name)

    counted = _each(value, count)
    units = counted // len(KINDS)
    return Reading(units, counted - units * len(KINDS))


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
    # All of the arithmetic is inside: polars may evaluate surrounding expressions on rows of its choice.
    return value.map_batches(count, return_dtype=pl.Int64, is_elementwise=True)

"""How a file of a dump is reached: by its path, or in an object store by its URL."""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import cache, lru_cache
from typing import IO, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from data_contracts.metrics import LIMITS
from optstream.storage.parquet import Claims, claims_of
from optstream.storage.store import Location, StoreUrl, open_store
from optstream.stream.private_period import quantise
from tasks.config import Layout, Settings
from tasks.ingest.clock import fits_clock, start_of

HASHED_AT_ONCE = 2**23
"""Bytes of one request while an object is read from end to end."""
TELLING = ("ETag", "etag", "size", "LastModified", "last_modified", "mtime", "created", "VersionId")
"""What a store says of an object that is another one, or was written to, in the words of several stores."""
WRITTEN = ("LastModified", "last_modified", "mtime", "updated", "created")
"""When an object was written, in the words of several stores."""
LONGEST_HEADER = 64
"""Bytes in which the first four numbers of a page's header lie."""
_FOUR_NUMBERS = re.compile(rb"(?:\x15[\x80-\xff]*[\x00-\x7f]){4}", re.DOTALL)
Identity = tuple[object, ...] | None


@dataclass(frozen=True)
class FileFacts:
    """What is said of a file: size in bytes, and when it was last written, None where that is not said."""

    size: int
    written: datetime | None


def facts_of(file: Location) -> FileFacts:
    """Size and time of a file, without opening it. Raises OSError."""
    if not isinstance(file, StoreUrl):
        found = file.stat()
        return FileFacts(found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))
    told = open_store(file.parent).facts(file.name)
    return FileFacts(
        int(told["size"]), next(filter(None, (_instant(told.get(key)) for key in WRITTEN)), None)
    )


def _instant(told: object) -> datetime | None:
    """A time as stores tell it: with a zone or in UTC, or in ISO 8601; None for anything else."""
    if isinstance(told, str):
        try:
            told = datetime.fromisoformat(told)
        except ValueError:
            return None
    if not isinstance(told, datetime):
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def identity_of(file: Location) -> Identity:
    """Return what differs for another file, or once this one was written to; None where there is none."""
    try:
        if isinstance(file, StoreUrl):
            facts = open_store(file.parent).facts(file.name)
            return tuple(str(facts.get(name)) for name in TELLING)
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@contextmanager
def opened(file: Location) -> Iterator[Any]:
    """The file, to be read from end to end. Raises OSError."""
    if isinstance(file, StoreUrl):
        with open_store(file.parent).opened(file.name, block_size=HASHED_AT_ONCE) as found:
            yield found
    else:
        # where a pipe took its place nobody waits for a writer
        with open(file, "rb", 0, opener=lambda path, how: os.open(path, how | os.O_NONBLOCK)) as found:
            yield found


def pages_are_whole(file: Location, columns: Sequence[str]) -> bool:
    """Whether the pages of these columns fit their checksums, if any: polars does not look at them."""
    try:
        with opened(file) as found:
            parquet = pq.ParquetFile(found, page_checksum_verification=True)
            if _has_checksums(parquet, found, columns):
                for _ in parquet.iter_batches(columns=list(columns)):
                    pass
    except (pa.ArrowException, OSError, ValueError):
        return False
    return True


def _has_checksums(parquet: pq.ParquetFile, found: IO[bytes], columns: Sequence[str]) -> bool:
    """Whether the first page of a column has one: the fourth number of its header, in compact Thrift."""
    if not parquet.num_row_groups:
        return False
    group = parquet.metadata.row_group(0)
    for chunk in (group.column(number) for number in range(group.num_columns)):
        if chunk.path_in_schema in columns:
            found.seek(chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)
            if _FOUR_NUMBERS.match(found.read(LONGEST_HEADER)):
                return True
    return False


def claims_in(file: Location) -> Claims | None:
    """What its footer claims; None if that cannot be read."""
    if isinstance(file, StoreUrl):
        try:
            with open_store(file.parent).opened(file.name, cache_type="none") as found:
                return claims_of(found)
        except OSError:
            return None
    return claims_of(file)


@cache
def forbid_spilling() -> None:
    """Keep rows that Polars holds off the disk, here and in child processes: it spills rows in clear."""
    pl.Config.load(json.dumps({"environment": {"POLARS_OOC_SPILL_MIN_BYTES": str(2**63 - 1)}}))


def scan_file(file: Location, **how: Any) -> pl.LazyFrame:
    """The file alone as a lazy frame, whatever its name looks like: the one way to rows of a dump."""
    forbid_spilling()
    if isinstance(file, StoreUrl):
        return pl.scan_parquet(
            **open_store(file.parent).for_polars(file.name), glob=False, hive_partitioning=False, **how
        )
    return pl.scan_parquet(file, glob=False, hive_partitioning=False, **how)


# One reading becomes an exact integer: absent, clamped, rounded, by the type of its column.

FLOATS: dict[pl.DataType | type[pl.DataType], type[np.float32 | np.float64]] = {
    pl.Float32: np.float32,
    pl.Float64: np.float64,
}
LARGEST_MANTISSA = 2**62
MOST_DIGITS = 38
"""Of a decimal column that polars can read; a schema may have more."""
LARGEST_DECIMAL = 10**MOST_DIGITS
"""Above the integer of any decimal, and within 128 bits."""
SOUND, ABSENT, INFINITE, MINUS_INFINITE, ABOVE, BELOW = KINDS = range(6)
"""What a reading is found to be."""
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Reading:
    """Expressions over a value column. units: int64, 0 where absent. kind: one of `KINDS`, int64."""

    units: pl.Expr
    kind: pl.Expr


def countable(dtype: pl.DataType) -> bool:
    """Whether a column of this type can be counted exactly."""
    if isinstance(dtype, pl.Decimal):
        return dtype.precision <= MOST_DIGITS
    # A UInt128 can overflow on its way to a number with a sign: a reading would decide whether a day appears.
    return dtype in FLOATS or (dtype.is_integer() and dtype != pl.UInt128)


def kept_digits(scale: int, resolution: Fraction) -> int:
    """Return how many decimals decide the rounding; None where half the resolution has endless digits."""
    half = resolution / 2
    return next((digits for digits in range(scale) if (half * 10**digits).denominator == 1), scale)


@lru_cache(maxsize=64)
def reading(column: str, dtype: pl.DataType, bounds: Bounds, resolution: Fraction) -> Reading:
    """Return how a column of this type is read: clamped to the bounds, then rounded half up."""
    limits = [math.floor(bound / resolution + Fraction(1, 2)) for bound in bounds]
    if dtype in FLOATS:
        return _floats(pl.col(column).cast(dtype), dtype, bounds, limits, resolution)
    return _integers(pl.col(column), dtype, bounds, limits, resolution)


def _floats(
    value: pl.Expr, dtype: pl.DataType, bounds: Bounds, limits: list[int], resolution: Fraction
) -> Reading:
    """Round floats, exactly only where needed: a customer's readings delay its own rows alone."""
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
    kind = (
        pl.when(sound)
        .then(SOUND)
        .when(absent)
        .then(ABSENT)
        .when(infinite)
        .then(pl.when(value > most).then(INFINITE).otherwise(MINUS_INFINITE))
        .when(value > most)
        .then(ABOVE)
        .otherwise(BELOW)
    )
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
    return Reading(units.cast(pl.Int64), kind.cast(pl.Int64))


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
    above, below = whole > pl.lit(high, whole_type), whole < pl.lit(low, whole_type)
    kind = pl.when(value.is_null()).then(ABSENT).when(above).then(ABOVE).when(below).then(BELOW)
    units = _each(whole, count_long if is_long else count)
    return Reading(units, kind.otherwise(SOUND).cast(pl.Int64))


def _each(value: pl.Expr, count: Callable[[pl.Series], pl.Series]) -> pl.Expr:
    # All of the arithmetic is inside: polars may evaluate what stands around it on rows of its choice.
    return value.map_batches(count, return_dtype=pl.Int64, is_elementwise=True)


# What a Parquet file's footer must say before a row of it is read.

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What polars raises on a file that is not what it says; its texts can carry values, so none is kept."""
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
MOST_SHOWN = 10
"""Columns of a file that messages name."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a chunk and the rule that it broke; `start`, `length` in the timestamp column's unit."""

    number: int
    day: int
    leaf: int
    path: Location
    name: str
    n_steps: int
    layout: Layout
    leaves: tuple[str, ...] = ()
    broken: str | None = None
    start: int = 0
    length: int = 1
    value: Any = None
    customer: Any = None
    rows: int = 0
    floats: frozenset[str] = frozenset()
    fits_clock: bool = True
    found: tuple[str, ...] = ()


def inspect(file: SourceFile, day: date, settings: Settings, sha256: str) -> SourceFile:
    """Read the footer and fill in the types, or the name of the rule that the file breaks. sha256: or ""."""
    try:
        if sha256:
            with opened(file.path) as found:
                if hashlib.file_digest(found, "sha256").hexdigest() != sha256:
                    return replace(file, broken="other_hash")
    except OSError:
        return replace(file, broken="unreadable")
    claims = claims_in(file.path)
    if claims is None:
        return replace(file, broken="unreadable")
    if not claims.within(LIMITS):
        return replace(file, broken="too_much")
    try:
        schema = scan_file(file.path).collect_schema()
    except UNREADABLE:
        return replace(file, broken="unreadable")
    columns = file.layout
    of_leaf = [one for one in (columns.region, columns.margin) if one is not None]
    if {columns.timestamp, columns.value, *of_leaf} - {*schema}:
        return replace(file, broken="columns", found=_few(schema))
    if (columns.customer in schema) != settings.metered:
        return replace(file, broken="other_schema", found=_few(schema))
    stamp, value = schema[columns.timestamp], schema[columns.value]
    customer = schema[columns.customer] if settings.metered else None
    # where every row lacks a value, a writer gives the column no type: of metered input no row decides
    if stamp == pl.Null and settings.metered:
        zone = "UTC" if settings.calendar.day == "elapsed" else None
        stamp = pl.Datetime("us", zone)
    if value == pl.Null and settings.metered:
        value = pl.Float64()
    if not isinstance(stamp, pl.Datetime):
        return replace(file, broken="timestamp_type")
    if not countable(value):
        return replace(file, broken="value_type")
    if customer is not None and not _names(customer, settings.metered):
        return replace(file, broken="customer_type")
    if not all(_names(schema[one], settings.metered) for one in of_leaf):
        return replace(file, broken="region_type")
    read = [columns.timestamp, columns.value, *([columns.customer] if settings.metered else []), *of_leaf]
    if not pages_are_whole(file.path, read):
        return replace(file, broken="damaged_page")
    zoned = stamp.time_zone is not None
    file = replace(file, fits_clock=fits_clock(settings.calendar, zoned=zoned))
    start = start_of(settings.calendar, day, zoned=zoned)
    if start is None:
        return replace(file, broken="clock")
    unit = PER_SECOND[stamp.time_unit]
    return replace(
        file,
        start=start * unit,
        length=settings.calendar.step_minutes * 60 * unit,
        value=value,
        customer=customer,
        rows=claims.rows,
        floats=frozenset(one for one in read if schema[one].is_float()) - {columns.value},
    )


def _few(schema: pl.Schema) -> tuple[str, ...]:
    """The columns' names; none of many."""
    return tuple(schema) if len(schema) <= MOST_SHOWN else ()


def _names(dtype: pl.DataType, metered: bool) -> bool:
    """Whether a column of this type can name somebody or something."""
    known = dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)
    return known or (metered and (dtype.is_float() or dtype == pl.Null))

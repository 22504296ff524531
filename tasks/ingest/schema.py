"""What a Parquet file's footer must say before a row of it is read."""

from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import polars as pl

from data_contracts.frames import LIMITS
from optstream.catalogue.backends import Location
from tasks.config import Layout, Settings
from tasks.ingest.arrival.files import claims_in, pages_are_whole, scan_file, sha256_of
from tasks.ingest.clock import fits_clock, start_of
from tasks.ingest.reading import countable

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What polars raises on a file that is not what it says; its texts can carry values, so none is kept."""
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
MOST_SHOWN = 10
"""Columns of a file that messages name."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a chunk: where it stands, and the rule that it broke, if any.

    number: index in the chunk. day, leaf: indices; of a file with the rows of every leaf the first leaf's.
    leaves: those of its day, which `leaf` counts. layout: of its day. start, length: the day's first step and
    a step's length in the timestamp column's own unit. value, customer: the columns' types. rows:
    as the footer claims. floats: columns that name customers or leaves by floats, as writers do whole numbers
    of which some are absent. found: of a file
    without the right columns those that it has, where they are few: many may be a customer's each, and their
    names are nobody's to show.
    """

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
    """Read the footer and fill in the types, or the name of the rule that the file breaks.

    sha256: that the file must have; empty where nothing says.
    """
    try:
        if sha256 and sha256_of(file.path) != sha256:
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
        fits_clock=fits_clock(settings.calendar, zoned=zoned),
    )


def fits_in_footer(path: Location, timestamp: str, settings: Settings) -> bool:
    """Whether timestamps of a file fit a change of the clock, by its footer; True where that is silent."""
    claims = claims_in(path)
    if claims is None or not claims.within(LIMITS):
        return True
    try:
        stamp = scan_file(path).collect_schema().get(timestamp)
    except UNREADABLE:
        return True
    if not isinstance(stamp, pl.Datetime):
        return True
    return fits_clock(settings.calendar, zoned=stamp.time_zone is not None)


def _few(schema: pl.Schema) -> tuple[str, ...]:
    """The columns' names; none of many."""
    return tuple(schema) if len(schema) <= MOST_SHOWN else ()


def _names(dtype: pl.DataType, metered: bool) -> bool:
    """Whether a column of this type can name somebody or something."""
    known = dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)
    return known or (metered and (dtype.is_float() or dtype == pl.Null))

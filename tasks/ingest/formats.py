"""How a file of a dump is reached: by its path, or in an object store by its URL."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import IO, Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from data_contracts.metrics import LIMITS
from optstream.storage.parquet import claims_of
from optstream.storage.store import Location, StoreUrl, open_store
from tasks.config import Input, Settings
from tasks.ingest.clamping import countable
from tasks.ingest.clock import shifted_slots, start_of

HASHED_AT_ONCE = 2**23
"""Bytes of one request while an object is read from end to end."""
TELLING = ("ETag", "etag", "size", "LastModified", "last_modified", "mtime", "created", "VersionId")
"""What a store says of an object that is another one, or was written to, in the words of several stores."""
WRITTEN = ("LastModified", "last_modified", "mtime", "updated", "created")
"""When an object was written, in the words of several stores."""
LONGEST_HEADER = 64
"""Bytes that hold the first four numbers of a page's header."""
_FOUR_NUMBERS = re.compile(rb"(?:\x15[\x80-\xff]*[\x00-\x7f]){4}", re.DOTALL)
Identity = tuple[object, ...] | None


class FileFacts(NamedTuple):
    """Size of a file in bytes, and when it was last written, None where the store does not say."""

    size: int
    written: datetime | None


def facts_of(file: Location) -> FileFacts:
    """Size and time of a file, without opening it. Raises OSError."""
    if not isinstance(file, StoreUrl):
        found = file.stat()
        return FileFacts(found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))
    facts = open_store(file.parent).facts(file.name)
    for stated in map(facts.get, WRITTEN):  # with a zone or in UTC, or in ISO 8601
        with suppress(ValueError):
            stamp = datetime.fromisoformat(stated) if isinstance(stated, str) else stated
            if isinstance(stamp, datetime):
                return FileFacts(int(facts["size"]), stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC))
    return FileFacts(int(facts["size"]), None)


def identity_of(file: Location) -> Identity:
    """What differs for another file, or once this one was written to; None where there is none. An object's
    tag may be a plain hash of the readings: it is compared, and never stored.
    """
    try:
        if isinstance(file, StoreUrl):
            facts = open_store(file.parent).facts(file.name)
            return tuple(str(facts.get(name)) for name in TELLING)
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@contextmanager
def opened(file: Location, **how: Any) -> Iterator[Any]:
    """The file, to be read from end to end. how: as fsspec takes it, for an object. Raises OSError."""
    if isinstance(file, StoreUrl):
        with open_store(file.parent).opened(file.name, **(how or {"block_size": HASHED_AT_ONCE})) as found:
            yield found
    else:
        # where a pipe took its place nobody waits for a writer
        with open(file, "rb", 0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as found:
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


@cache
def forbid_spilling() -> None:
    """Keep rows that Polars holds off the disk from now on, here and in processes that this one starts.

    Where four fifths of the memory are taken, Polars writes rows in clear below /var/tmp, and a process that
    is killed leaves them there. Without that, a dump that is too large ends the process that reads it.
    """
    pl.Config.load(json.dumps({"environment": {"POLARS_OOC_SPILL_MIN_BYTES": str(2**63 - 1)}}))


def scan_file(file: Location) -> pl.LazyFrame:
    """The file alone as a lazy frame, whatever its name looks like: the one way to rows of a dump.

    The statistics that its writer claims are not used: they may be broken, or hide rows.
    """
    forbid_spilling()
    source: dict[str, Any] = {"source": file}
    if isinstance(file, StoreUrl):
        source = open_store(file.parent).for_polars(file.name)
    return pl.scan_parquet(**source, glob=False, hive_partitioning=False, use_statistics=False)


# What a Parquet file's footer must say before a row of it is read.

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""Errors of polars on a malformed file; their texts can carry values, so none is kept."""
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
MOST_SHOWN = 10
"""Columns of a file that messages name."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a chunk: where it stands, and the rule that it broke, if any.

    day, leaf: indices; of a file with the rows of every leaf the first leaf's. start, length: of the day's
    steps, in the timestamp column's own unit. value, customer: the columns' types. rows: as the footer
    claims. doubled: slots that the wall clock shows twice. floats: columns that name customers or leaves by
    floats. found: the columns of a file without the right ones, where they are few: many may be a
    customer's each, and their names are nobody's to show.
    """

    number: int
    day: int
    leaf: int
    path: Location
    name: str
    n_steps: int
    layout: Input
    leaves: tuple[str, ...] = ()
    broken: str | None = None
    start: int = 0
    length: int = 1
    value: Any = None
    customer: Any = None
    rows: int = 0
    floats: frozenset[str] = frozenset()
    fits_clock: bool = True
    doubled: tuple[int, ...] = ()
    found: tuple[str, ...] = ()


def inspect(file: SourceFile, day: date, settings: Settings, sha256: str) -> SourceFile:
    """Read the footer and fill in the types, or the name of the rule that the file breaks. sha256: or ""."""
    layout, metered, claims = file.layout, settings.metered, None
    try:
        if sha256:
            with opened(file.path) as found:
                if hashlib.file_digest(found, "sha256").hexdigest() != sha256:
                    return replace(file, broken="other_hash")
        if isinstance(file.path, StoreUrl):
            with opened(file.path, cache_type="none") as stored:
                claims = claims_of(stored)
        else:
            claims = claims_of(file.path)
        if claims is None:
            return replace(file, broken="unreadable")
        if not claims.within(LIMITS):
            return replace(file, broken="too_much")
        schema = scan_file(file.path).collect_schema()
    except UNREADABLE:
        return replace(file, broken="unreadable")
    named = tuple(schema) if len(schema) <= MOST_SHOWN else ()
    of_leaf = [one for one in (layout.region, layout.margin) if one is not None]
    if {layout.timestamp, layout.value, *of_leaf} - {*schema}:
        return replace(file, broken="columns", found=named)
    if (layout.customer in schema) != metered:
        return replace(file, broken="other_schema", found=named)
    stamp, value = schema[layout.timestamp], schema[layout.value]
    customer = schema[layout.customer] if metered else None
    by_zone = settings.calendar.day == "elapsed"
    # where every row lacks a value, a writer gives the column no type: of metered input no row decides
    if stamp == pl.Null and metered:
        stamp = pl.Datetime("us", "UTC" if by_zone else None)
    if value == pl.Null and metered:
        value = pl.Float64()
    if not isinstance(stamp, pl.Datetime):
        return replace(file, broken="timestamp_type")
    if not countable(value):
        return replace(file, broken="value_type")
    if customer is not None and not _names(customer, metered):
        return replace(file, broken="customer_type")
    if not all(_names(schema[one], metered) for one in of_leaf):
        return replace(file, broken="region_type")
    if not pages_are_whole(file.path, layout.columns):
        return replace(file, broken="damaged_page")
    zoned, unit = stamp.time_zone is not None, PER_SECOND[stamp.time_unit]
    start = start_of(settings.calendar, day, zoned=zoned)
    return replace(
        file,
        # do they name each step once where the clock changes?
        fits_clock=zoned == by_zone,
        doubled=() if by_zone else shifted_slots(settings.calendar, day)[1],
        broken="clock" if start is None else None,
        start=(start or 0) * unit,
        length=settings.calendar.step_minutes * 60 * unit,
        value=value,
        customer=customer,
        rows=0 if start is None else claims.rows,
        floats=frozenset(one for one in layout.columns if schema[one].is_float()) - {layout.value},
    )


def _names(dtype: pl.DataType, metered: bool) -> bool:
    """Whether a column of this type can name somebody or something."""
    known = dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)
    return known or (metered and (dtype.is_float() or dtype == pl.Null))

"""How a file of a dump is reached: by its path, or in an object store by its URL."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from typing import IO, Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from optstream.storage.store import Location, StoreUrl, open_store

TELLING = ("ETag", "etag", "size", "LastModified", "last_modified", "mtime", "created", "VersionId")
"""What a store says of an object that is another one, or was written to, in the words of several stores."""
WRITTEN = ("LastModified", "last_modified", "mtime", "updated", "created")
"""When an object was written, in the words of several stores."""
LONGEST_HEADER = 64
"""Bytes that hold the first four numbers of a page's header."""
_FOUR_NUMBERS = re.compile(rb"(?:\x15[\x80-\xff]*[\x00-\x7f]){4}", re.DOTALL)
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""Errors of polars on a malformed file; their texts can carry values, so none is kept."""
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
def opened(file: Location) -> Iterator[Any]:
    """The file, to be read from end to end. Raises OSError."""
    if isinstance(file, StoreUrl):
        with open_store(file.parent).opened(file.name) as found:
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
    # a zone that Polars does not know, such as GMT+1, is no reason to refuse a file: stamps count from UTC
    known = {"POLARS_OOC_SPILL_MIN_BYTES": str(2**63 - 1), "POLARS_IGNORE_TIMEZONE_PARSE_ERROR": "1"}
    pl.Config.load(json.dumps({"environment": known}))


def scan_file(file: Location) -> pl.LazyFrame:
    """The file alone as a lazy frame, whatever its name looks like: the one way to rows of a dump.

    The statistics that its writer claims are not used: they may be broken, or hide rows.
    """
    forbid_spilling()
    source: dict[str, Any] = {"source": file}
    if isinstance(file, StoreUrl):
        source = open_store(file.parent).for_polars(file.name)
    return pl.scan_parquet(**source, glob=False, hive_partitioning=False, use_statistics=False)

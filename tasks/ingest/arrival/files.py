"""How a file of a dump is reached: by its path, or in an object store by its URL."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from optstream.catalogue.backends import Location, StoreUrl
from optstream.storage.open import open_store
from optstream.storage.parquet_limits import Claims, claims_of
from tasks.processes.spilling import forbid_spilling

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


def size_of(file: Location) -> int:
    """Bytes. Raises OSError."""
    return facts_of(file).size


def identity_of(file: Location) -> Identity:
    """What is another for another file, and for this one once it was written to; None where there is none.

    An object's tag may be a plain hash of what is in it: it is compared, and goes nowhere.
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
def opened(file: Location) -> Iterator[IO[bytes]]:
    """The file, to be read from end to end. Raises OSError."""
    if isinstance(file, StoreUrl):
        with open_store(file.parent).opened(file.name, block_size=HASHED_AT_ONCE) as found:
            yield found
    else:
        # where a pipe took its place nobody waits for a writer
        with open(file, "rb", 0, opener=lambda path, how: os.open(path, how | os.O_NONBLOCK)) as found:
            yield found


def sha256_of(file: Location) -> str:
    """Of all its bytes. Raises OSError."""
    digest = hashlib.sha256()
    with opened(file) as found:
        while chunk := found.read(HASHED_AT_ONCE):
            digest.update(chunk)
    return digest.hexdigest()


def pages_are_whole(file: Location, columns: Sequence[str]) -> bool:
    """Whether the pages of these columns fit their checksums; those of a file without checksums do.

    polars does not look at checksums. Only files that have them are decoded twice.
    """
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


def scan_file(file: Location, **how: Any) -> pl.LazyFrame:
    """The file alone as a lazy frame, whatever its name looks like. how: as `pl.scan_parquet` takes it.

    Every row of a dump is read by way of this.
    """
    forbid_spilling()
    if isinstance(file, StoreUrl):
        return pl.scan_parquet(
            **open_store(file.parent).for_polars(file.name), glob=False, hive_partitioning=False, **how
        )
    return pl.scan_parquet(file, glob=False, hive_partitioning=False, **how)

"""What the footer of a Parquet file claims, read before any page is: a small file may claim 10^12 rows."""

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

LARGEST_FOOTER = 2**28
"""Bytes."""
_TAIL = 8


@dataclass(frozen=True)
class Limits:
    """The most that a file may claim. group_rows, group_bytes: of one row group, bytes uncompressed."""

    rows: int
    columns: int
    row_groups: int = 2**17
    group_rows: int = 2**28
    group_bytes: int = 2**36

    @property
    def words(self) -> str:
        """The rule, for messages."""
        return (
            f"at most {self.rows:,} rows in {self.row_groups:,} row groups of {self.group_rows:,} rows and "
            f"{self.group_bytes // 2**30:,} GiB each, and {self.columns:,} columns"
        )


@dataclass(frozen=True)
class Claims(Limits):
    """What a footer states. is_flat: no column holds lists, whose lengths no count of rows bounds."""

    is_flat: bool = field(kw_only=True)

    def within(self, limits: Limits) -> bool:
        """Return whether nothing is more than the limits allow."""
        return all(getattr(self, one.name) <= getattr(limits, one.name) for one in fields(Limits))


def claims_of(source: Path | bytes | IO[bytes]) -> Claims | None:
    """Return what the footer of a file, open or not, or of its bytes, claims; None if it cannot be read or
    contradicts itself.
    """
    try:
        if _footer_length(source) > LARGEST_FOOTER:
            return None
        found = pq.read_metadata(pa.BufferReader(source) if isinstance(source, bytes) else source)
        groups = [found.row_group(number) for number in range(found.num_row_groups)]
        rows, sizes = [group.num_rows for group in groups], [group.total_byte_size for group in groups]
        # An empty file may have no column at all.
        columns = [found.schema.column(number) for number in range(found.num_columns)]
        is_flat = all(column.max_repetition_level == 0 for column in columns)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError):
        return None
    if min([found.num_rows, *rows, *sizes]) < 0 or sum(rows) != found.num_rows:
        return None
    return Claims(
        rows=found.num_rows,
        columns=found.num_columns,
        row_groups=len(groups),
        group_rows=max(rows, default=0),
        group_bytes=max(sizes, default=0),
        is_flat=is_flat,
    )


def _footer_length(source: Path | bytes | IO[bytes]) -> int:
    if isinstance(source, Path):
        with source.open("rb") as file:
            return _footer_length(file)
    if isinstance(source, bytes):
        tail = source[-_TAIL:]
    else:
        source.seek(max(0, source.seek(0, os.SEEK_END) - _TAIL))
        tail = source.read(_TAIL)
    return int.from_bytes(tail[:4], "little")

"""Tables as the bytes of a Parquet file, and back from bytes that anyone may have written. Pure."""

import itertools
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from optstream.errors import PublicationError

# What the footer of a Parquet file claims, read before any page is: a small file may claim 10^12 rows.

LARGEST_FOOTER = 2**28  # bytes
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
        return (
            f"at most {self.rows:,} rows in {self.row_groups:,} row groups of {self.group_rows:,} rows and "
            f"{self.group_bytes // 2**30:,} GiB each, and {self.columns:,} columns"
        )


@dataclass(frozen=True)
class Claims(Limits):
    """What a footer states. is_flat: no column holds lists, whose lengths no count of rows bounds."""

    is_flat: bool = field(kw_only=True)
    footer: pq.FileMetaData = field(kw_only=True, repr=False, compare=False)

    def within(self, limits: Limits) -> bool:
        return all(getattr(self, one.name) <= getattr(limits, one.name) for one in fields(Limits))


def claims_of(source: Path | bytes | IO[bytes]) -> Claims | None:
    """Return the claims of a file's footer; None if it cannot be read or contradicts itself."""
    if isinstance(source, Path):
        with suppress(OSError), source.open("rb") as opened:
            return claims_of(opened)
        return None
    file: Any = pa.BufferReader(source) if isinstance(source, bytes) else source
    try:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        if int.from_bytes(file.read(_TAIL)[:4], "little") > LARGEST_FOOTER:
            return None
        found = pq.read_metadata(file)
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
        footer=found,
    )


_ARROW = {
    pl.Int32(): pa.int32(),
    pl.Int64(): pa.int64(),
    pl.Float32(): pa.float32(),
    pl.Float64(): pa.float64(),
    pl.String(): pa.large_string(),
    pl.Boolean(): pa.bool_(),
    pl.Datetime("us", "UTC"): pa.timestamp("us", tz="UTC"),
}
MANY_ROWS = 2**16  # a table of more rows is read by several threads, which cost more than they save on others
GROUP_ROWS = 2**20  # rows of a row group; readers skip groups that cannot hold a wanted value
FEW_TEXTS, TEXT_A_ROW = 2**28, 128
"""Bytes: of all texts of a table together, where that is more than so many for each of its rows."""
_UNREADABLE = (
    *(pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException),
    *(OSError, ValueError, TypeError, LookupError, MemoryError),
)


def encode_table(
    rows: pl.DataFrame,
    metadata: Mapping[bytes, bytes],
    order: NDArray[np.int64] | None = None,
    compression: str = "zstd",
    **encoding: Any,
) -> bytes:
    """Return the rows as Parquet, written in `order`, (n_rows,), with metadata in the footer; equal arguments
    give one pyarrow equal bytes. encoding: as `pyarrow.parquet.ParquetWriter` takes it."""
    schema = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in rows.schema.items()])
    sink = pa.BufferOutputStream()
    # Without Arrow's own schema: the columns are what Parquet says, and readers pick their types.
    with pq.ParquetWriter(sink, schema, compression=compression, store_schema=False, **encoding) as writer:
        for first in range(0, max(rows.height, 1), GROUP_ROWS):
            at = slice(first, first + GROUP_ROWS)
            part = rows[at] if order is None else rows[order[at]]
            writer.write_table(part.to_arrow().cast(schema), row_group_size=GROUP_ROWS)
        if metadata:
            writer.add_key_value_metadata(metadata)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_table(
    data: bytes, limits: Limits, what: str, columns: Collection[str] | None = None
) -> tuple[pl.DataFrame, dict[bytes, bytes]]:
    """Return the rows of a Parquet file, all columns or some, and its footer's metadata; PublicationError,
    which calls it `what`, for lists, columns in columns, repeated long texts or more than `limits`."""
    claims = claims_of(data)
    if claims is None or not claims.is_flat:
        raise PublicationError(f"{what} is not whole Parquet")
    if not claims.within(limits):
        raise PublicationError(f"{what} may claim {limits.words}")
    try:
        leaves = [claims.footer.schema.column(number) for number in range(claims.columns)]
        paths = [leaf.path for leaf in leaves]
        # each text once, whatever repeats it, until it is known how long they are together
        places = [place for place, leaf in enumerate(leaves) if leaf.physical_type == "BYTE_ARRAY"]
        in_texts = [paths[place] for place in places]
        file = pq.ParquetFile(pa.BufferReader(data), metadata=claims.footer, read_dictionary=in_texts)
        kinds = file.schema_arrow
        if kinds.names != paths or not all(pa.types.is_dictionary(kinds.field(at).type) for at in places):
            raise PublicationError(f"{what} is not a table of texts and numbers")
        most = max(FEW_TEXTS, TEXT_A_ROW * claims.rows)
        fixed = (leaf.length for leaf in leaves if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY")
        texts, parts = claims.rows * sum(fixed), []
        held = [name for name in paths if columns is None or name in columns]
        in_texts = [name for name in in_texts if name in held]
        use_threads = columns is None and claims.rows > MANY_ROWS
        # a group after another, for each has its own texts, which may be those of the one before
        for groups in [[number] for number in range(claims.row_groups)] or [[]]:
            parts.append(file.read_row_groups(groups, columns=held, use_threads=use_threads))
            texts += _text_bytes(parts[-1].select(in_texts))
            if texts > most:
                raise PublicationError(
                    f"{what} may hold {most:,} bytes of texts; it holds more, by repeating some"
                )
        table = pa.concat_tables(parts)
        for name in in_texts:  # a text in each row
            kind, number = table.field(name).type.value_type, table.schema.get_field_index(name)
            is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
            written = table.column(number).cast(pa.large_binary() if is_binary else pa.large_string())
            table = table.set_column(number, name, written)
        frame = pl.from_arrow(table, rechunk=len(parts) > 1)
    except _UNREADABLE as error:
        raise PublicationError(f"{what} is not whole Parquet") from error
    if not isinstance(frame, pl.DataFrame):
        raise PublicationError(f"{what} is not a table")
    return frame, claims.footer.metadata or {}


def _text_bytes(table: pa.Table) -> int:
    """Return the bytes of all rows' texts. Raises ArrowInvalid for no UTF-8, at which polars panics."""
    import pyarrow.compute as pc  # 30 ms: only where it is needed

    total = 0
    for chunk in itertools.chain.from_iterable(column.chunks for column in table.columns):
        chunk.dictionary.validate(full=True)
        lengths = pc.take(pc.binary_length(chunk.dictionary), chunk.indices)
        total += pc.sum(lengths.cast(pa.int64())).as_py() or 0
    return total

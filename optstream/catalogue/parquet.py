"""One release as the bytes of a Parquet file: the only place of the catalogue that knows pyarrow.

`date` is in the path (`date=2016-02-01`), not in the file: pyarrow refuses a dataset in which a date column
and a path both say it (`pq.read_table` and `partitioning="hive"` take the path's for text), while polars
and DuckDB read the path as a date. pyarrow is told the type to do the same:

    pl.read_parquet("published/data")
    duckdb.sql("from read_parquet('published/data/*/*.parquet', hive_partitioning=true)")
    ds.dataset("published/data",
               partitioning=ds.partitioning(pa.schema([("date", pa.date32())]), flavor="hive"))
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from optstream.errors import PublicationError
from optstream.storage.parquet_limits import Limits, claims_of

ROWS_KEY = b"optstream.rows_sha256"
STATEMENT_KEY = b"optstream.statement"
LARGEST_STATEMENT = 2**20
LIMITS = Limits(rows=2**26, columns=16, group_rows=2**26, group_bytes=2**34)
"""What the footer of a release may claim: a million nodes at every half-hour of a day."""
_UNREADABLE = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    ValueError,
    TypeError,
    MemoryError,
)
_ARROW = {
    pl.Int32(): pa.int32(),
    pl.Float64(): pa.float64(),
    pl.String(): pa.large_string(),
    pl.Datetime("us", "UTC"): pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class Footer:
    """What a release's file says about itself, as it stands there: the hash of its rows, the statement."""

    rows_hash: str
    statement: dict[str, Any]


def encode(rows: pl.DataFrame, footer: Footer) -> bytes:
    """Return the rows without `date` as Parquet; the same rows and footer give the same bytes.

    Nothing in them comes from a clock, a host or the frame's chunks; another pyarrow may encode differently.
    """
    inner = rows.drop("date")
    fields = [pa.field(name, _ARROW[kind]) for name, kind in inner.schema.items()]
    text = json.dumps(footer.statement, separators=(",", ":"), sort_keys=True, allow_nan=False)
    metadata = {ROWS_KEY: footer.rows_hash.encode(), STATEMENT_KEY: text.encode()}
    table = inner.to_arrow().cast(pa.schema(fields))
    sink = pa.BufferOutputStream()
    # Without Arrow's own schema: the columns are what Parquet says, and readers pick their types.
    with pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table, row_group_size=2**20)
        writer.add_key_value_metadata(metadata)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode(data: bytes, columns: Collection[str] | None = None) -> tuple[pl.DataFrame, Footer]:
    """Return the rows of a release's file, without `date`, and its footer.

    columns: the only ones to be read, as far as the file has them; all by default. Raises PublicationError if
    the bytes are not Parquet, claim more than `LIMITS` or lack the footer of a release.
    """
    claims = claims_of(data)
    if claims is None or not claims.is_flat:
        raise PublicationError("a published file is not whole Parquet")
    if not claims.within(LIMITS):
        raise PublicationError(f"a published file may claim {LIMITS.words}")
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        footer = _footer(file.metadata.metadata or {})
        held = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
        frame = pl.from_arrow(file.read(columns=held, use_threads=columns is None))
    except (pa.ArrowException, *_UNREADABLE) as error:
        raise PublicationError("a published file is not whole Parquet") from error
    if not isinstance(frame, pl.DataFrame):
        raise PublicationError("a published file is not a table")
    return frame, footer


def _footer(metadata: dict[bytes, bytes]) -> Footer:
    text = metadata.get(STATEMENT_KEY, b"")
    try:
        if len(text) > LARGEST_STATEMENT:
            raise ValueError
        statement = json.loads(text)
        rows_hash = metadata[ROWS_KEY].decode("ascii")
    except (ValueError, KeyError, RecursionError) as error:
        raise PublicationError("a published file lacks the footer that a release has") from error
    if not isinstance(statement, dict):
        raise PublicationError("a published file lacks the statement that a release has")
    return Footer(rows_hash, statement)

"""The answers of one day as the bytes of a Parquet file. Pure."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from optstream.catalogue.questions.window_answers import SCHEMA
from optstream.errors import PublicationError
from optstream.storage.parquet_limits import Limits, claims_of

LIMITS = Limits(rows=2**26, columns=len(SCHEMA), group_rows=2**26, group_bytes=2**34)
_ARROW = {
    pl.Int32(): pa.int32(),
    pl.Float64(): pa.float64(),
    pl.String(): pa.string(),
    pl.Boolean(): pa.bool_(),
    pl.Datetime("us", "UTC"): pa.timestamp("us", tz="UTC"),
}


def encode_answers(rows: pl.DataFrame) -> bytes:
    """Return the file of a day's answers.

    Args:
        rows: Columns of `SCHEMA`.

    Returns:
        Parquet; the same rows give the same bytes, and another pyarrow may encode differently.
    """
    schema = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in SCHEMA.items()])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(rows.to_arrow().cast(schema), row_group_size=2**20)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_answers(data: bytes) -> pl.DataFrame:
    """Read a file of answers, which anyone may have written.

    Args:
        data: Its bytes.

    Returns:
        Columns of `SCHEMA`.

    Raises:
        PublicationError: It is no such file, or claims more than `LIMITS`.
    """
    claims = claims_of(data)
    if claims is None or not claims.is_flat or not claims.within(LIMITS):
        raise PublicationError(f"a file of answers is whole Parquet and may claim {LIMITS.words}")
    try:
        rows = pl.from_arrow(pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False))
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise PublicationError("a file of answers is not whole Parquet") from error
    if not isinstance(rows, pl.DataFrame) or dict(rows.schema) != SCHEMA:
        raise PublicationError("a file of answers has other columns than answers have")
    return rows

"""The answers of one day as the bytes of a Parquet file. Pure."""

import polars as pl

from optstream.catalogue.questions.window_answers import SCHEMA
from optstream.errors import PublicationError
from optstream.storage.parquet_limits import Limits
from optstream.storage.parquet_table import decode_table, encode_table

LIMITS = Limits(rows=2**26, columns=len(SCHEMA), group_rows=2**26, group_bytes=2**34)


def encode_answers(rows: pl.DataFrame) -> bytes:
    """Return the Parquet file of a day's answers; the same rows, of columns `SCHEMA`, give the same bytes."""
    return encode_table(rows.select(*SCHEMA), {})


def decode_answers(data: bytes) -> pl.DataFrame:
    """Return the rows of a file of answers, which anyone may have written.

    Raises PublicationError for what is no such file, or claims more than `LIMITS`.
    """
    rows, _ = decode_table(data, LIMITS, "a file of answers")
    if dict(rows.schema) != SCHEMA:
        raise PublicationError("a file of answers has other columns than answers have")
    return rows

"""One release as the bytes of a Parquet file.

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

import numpy as np
import polars as pl

from optstream.catalogue.rows import is_ordered
from optstream.errors import PublicationError
from optstream.storage.parquet import GROUP_ROWS, Limits, decode_table, encode_table

ROWS_KEY = b"optstream.rows_sha256"
STATEMENT_KEY = b"optstream.statement"
LARGEST_STATEMENT = 2**20
LIMITS = Limits(rows=2**26, columns=16, group_rows=2**26, group_bytes=2**34)
"""What the footer of a release may claim: a million nodes at every half-hour of a day."""


@dataclass(frozen=True)
class Footer:
    """What a release's file says about itself, as it stands there: the hash of its rows, the statement."""

    rows_hash: str
    statement: dict[str, Any]


def encode(rows: pl.DataFrame, footer: Footer, by_node: bool = True) -> bytes:
    """Return the rows without `date` as Parquet; the same rows and footer give the same bytes.

    As `encode_table` says. Whole periods of more than a row group are written node after node, and not step
    after step, so that whoever looks for a node skips all groups but one. by_node: False for the bytes that
    earlier versions gave, which never did.
    """
    text = json.dumps(footer.statement, separators=(",", ":"), sort_keys=True, allow_nan=False)
    metadata, order = {ROWS_KEY: footer.rows_hash.encode(), STATEMENT_KEY: text.encode()}, None
    if by_node and rows.height > GROUP_ROWS and is_ordered(rows):
        n_steps = rows["step"].n_unique()
        order = np.arange(rows.height).reshape(n_steps, -1).T.ravel()
    return encode_table(rows.drop("date"), metadata, order)


def decode(data: bytes, columns: Collection[str] | None = None) -> tuple[pl.DataFrame, Footer]:
    """Return the rows of a release's file, without `date`, step after step, and its footer.

    columns: the only ones to be read, as far as the file has them; all by default. Raises PublicationError if
    the bytes are not Parquet, claim more than `LIMITS` or lack the footer of a release.
    """
    asked = {*columns, "step"} if columns else columns
    rows, metadata = decode_table(data, LIMITS, "a published file", asked)
    is_stepped = rows.schema.get("step", pl.Null()).is_integer()  # another type is the caller's to refuse
    if is_stepped and not rows["step"].is_sorted():
        rows = rows.sort("step", maintain_order=True)
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
    if columns is not None:
        rows = rows.select(name for name in rows.columns if name in columns)
    return rows, Footer(rows_hash, statement)

"""A release as the bytes of the Parquet file that will be published.

`date` is in the path (`date=2016-02-01`) alone: pyarrow refuses a dataset in which a column says it too.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from optstream.catalogue.layout import release_name
from optstream.catalogue.rows import hash_rows, is_ordered, ordered_rows, schema
from optstream.catalogue.statement import ReleaseStatement
from optstream.errors import PublicationError
from optstream.storage.parquet import GROUP_ROWS, Limits, decode_table, encode_table
from optstream.stream.period import day_of

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

    @cached_property
    def stated(self) -> ReleaseStatement:
        """The statement. Raises PublicationError where it is not as OptStream writes it."""
        return ReleaseStatement.read(self.statement)


def encode(rows: pl.DataFrame, footer: Footer) -> bytes:
    """Return the rows without `date` as Parquet; the same rows and footer give the same bytes."""
    text = json.dumps(footer.statement, separators=(",", ":"), sort_keys=True, allow_nan=False)
    metadata, order = {ROWS_KEY: footer.rows_hash.encode(), STATEMENT_KEY: text.encode()}, None
    if rows.height > GROUP_ROWS and is_ordered(rows):
        n_steps = rows["step"].n_unique()
        order = np.arange(rows.height).reshape(n_steps, -1).T.ravel()
    return encode_table(rows.drop("date"), metadata, order)


def decode(data: bytes, columns: Collection[str] | None = None) -> tuple[pl.DataFrame, Footer]:
    """Return a release's rows, step after step, and its footer; PublicationError beyond `LIMITS`."""
    rows, metadata = decode_table(
        data, LIMITS, "a published file", {*columns, "step"} if columns else columns
    )
    is_stepped = rows.schema.get("step", pl.Null()).is_integer()  # another type is the caller's to refuse
    if is_stepped and not rows["step"].is_sorted():
        rows = rows.sort("step", maintain_order=True)
    text = metadata.get(STATEMENT_KEY, b"")
    try:
        if len(text) > LARGEST_STATEMENT:
            raise ValueError
        footer = Footer(metadata[ROWS_KEY].decode("ascii"), json.loads(text))
    except (ValueError, KeyError, RecursionError) as error:
        raise PublicationError("a published file lacks the footer that a release has") from error
    if not isinstance(footer.statement, dict):
        raise PublicationError("a published file lacks the statement that a release has")
    if columns is not None:
        rows = rows.select(name for name in rows.columns if name in columns)
    return rows, footer


@dataclass(frozen=True)
class StagedRelease:
    """The file of a release to be published, and the files that its statement names, by their SHA-256."""

    data: bytes = field(repr=False)
    rows_hash: str
    attachments: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @cached_property
    def file_hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def name(self) -> str:
        return release_name(self.file_hash)


def stage(rows: pl.DataFrame, statement: ReleaseStatement) -> StagedRelease:
    """Return the file of the rows of one period, a row for each node at each step, under their statement.

    The same rows and statement give the same bytes. Raises PublicationError, naming the column and the rule,
    where the rows are not a whole period.
    """
    stated = {"date": day_of(statement.period), "revision": statement.revision, "vintage": statement.vintage}
    ordered = ordered_rows(rows, statement.value_column, stated, *statement.has_columns)
    rows_hash = hash_rows(ordered)
    return StagedRelease(encode(ordered, Footer(rows_hash, statement.to_json())), rows_hash)


def read_staged(data: bytes) -> tuple[StagedRelease, ReleaseStatement]:
    """Return a staged file with the statement in its footer; its rows are checked against their hash."""
    inner, footer = decode(data)
    if hash_rows(dated_rows(inner, footer.stated)) != footer.rows_hash:
        raise PublicationError(
            "the rows of a staged release differ from the hash in its footer; stage it again"
        )
    return StagedRelease(data, footer.rows_hash), footer.stated


def statement_in(data: bytes) -> ReleaseStatement:
    """Return the statement in a staged file's footer; no row is read."""
    return decode(data, ())[1].stated


def dated_rows(inner: pl.DataFrame, statement: ReleaseStatement) -> pl.DataFrame:
    """Return the rows of a file with the date of its statement. Raises PublicationError for other columns."""
    wanted = schema(statement.value_column, *statement.has_columns)
    if "date" in inner.columns or {"date": pl.Date(), **inner.schema} != wanted:
        raise PublicationError(f"the release of {statement.period} has other columns than a release has")
    date = pl.Series("date", [day_of(statement.period)], pl.Date()).new_from_index(0, inner.height)
    return inner.hstack([date])[list(wanted)]

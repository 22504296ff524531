"""A release as the bytes that will be published: pure, nothing is written."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from optstream.catalogue.layout import release_name
from optstream.catalogue.parquet import Footer, decode, encode
from optstream.catalogue.rows import hash_rows, ordered_rows, schema
from optstream.catalogue.statement import ReleaseStatement
from optstream.errors import PublicationError
from optstream.stream.period import day_of


@dataclass(frozen=True)
class StagedRelease:
    """A release as the file to be published.

    Attributes:
        data: The bytes of the Parquet file.
        rows_hash: SHA-256 of its rows (`hash_rows`).
        file_hash: SHA-256 of `data`.
        name: Its file name, which holds the file's hash.
        beside: The bytes of the files that its statement names, by their SHA-256.
    """

    data: bytes = field(repr=False)
    rows_hash: str
    file_hash: str
    name: str
    beside: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def stage(rows: pl.DataFrame, statement: ReleaseStatement, *, by_node: bool = True) -> StagedRelease:
    """Encode the rows of one period under its statement. Pure; costs no privacy.

    Args:
        rows: Columns date, step, timestamp, node, parent, level, the statement's value column, its standard
            errors and its bands if the statement tells of them, revision, vintage, in any order; a row for
            each node at each step.
        statement: What the release says of itself.
        by_node: Whether many rows are written node after node; False for the bytes that earlier versions
            gave.

    Returns:
        The file; the same rows and statement give the same bytes.

    Raises:
        PublicationError: The rows are not a whole period; names the column and the rule.
    """
    stated = {"date": day_of(statement.period), "revision": statement.revision, "vintage": statement.vintage}
    has = statement.standard_errors is not None, statement.bands is not None
    ordered = ordered_rows(rows, statement.value_column, stated, *has)
    rows_hash = hash_rows(ordered)
    return _named(encode(ordered, Footer(rows_hash, statement.to_json()), by_node), rows_hash)


def read_staged(data: bytes) -> tuple[StagedRelease, ReleaseStatement]:
    """Read a staged file back, with the statement in its footer. The rows are checked against their hash.

    Args:
        data: The bytes of the file.

    Returns:
        The release and its statement.

    Raises:
        PublicationError: The bytes are not a release that `stage` made.
    """
    inner, footer = decode(data)
    statement = ReleaseStatement.read(footer.statement)
    rows = dated_rows(inner, statement)
    if hash_rows(rows) != footer.rows_hash:
        raise PublicationError(
            "the rows of a staged release differ from the hash in its footer; stage it again"
        )
    return _named(data, footer.rows_hash), statement


def statement_in(data: bytes) -> ReleaseStatement:
    """Return the statement in a staged file's footer; no row is read.

    Args:
        data: The bytes of the file, known to be whole.

    Returns:
        What the release says of itself.

    Raises:
        PublicationError: As `read_staged`.
    """
    return ReleaseStatement.read(decode(data, ())[1].statement)


def dated_rows(inner: pl.DataFrame, statement: ReleaseStatement) -> pl.DataFrame:
    """Return the rows of a file with the date that its path and statement give.

    Raises PublicationError if they are not the columns of a release.
    """
    wanted = schema(
        statement.value_column, statement.standard_errors is not None, statement.bands is not None
    )
    if dict(inner.schema) != {name: kind for name, kind in wanted.items() if name != "date"}:
        raise PublicationError(f"the release of {statement.period} has other columns than a release has")
    return inner.with_columns(pl.lit(day_of(statement.period), dtype=pl.Date()).alias("date")).select(
        wanted.keys()
    )


def _named(data: bytes, rows_hash: str) -> StagedRelease:
    file_hash = hashlib.sha256(data).hexdigest()
    return StagedRelease(data, rows_hash, file_hash, release_name(file_hash))

"""Some columns of a published file, for those who read years of them. Anyone may have written the files."""

import hashlib
from collections.abc import Collection

import polars as pl

from optstream.catalogue.backends import Readable, Storage
from optstream.catalogue.hours.day_entry import DayEntry
from optstream.catalogue.index import Entry
from optstream.catalogue.layout import LARGEST_RELEASE
from optstream.catalogue.parquet import decode
from optstream.catalogue.reading.read import lost, read_file
from optstream.catalogue.rows import MAY_BE_NULL, holds_each_once, kind_of
from optstream.catalogue.stage import statement_in
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.errors import PublicationError

LARGEST_VALUE = 1e100
DEEPEST_LEVEL = 100


def read_columns(
    storage: Storage, entry: Entry, wanted: Collection[str], optional: Collection[str] = ()
) -> pl.DataFrame:
    """Return the wanted columns of the file of a listed release, step after step; of a day of hours those of
    the day's file, or of its hours' files one after another.

    optional: those of the wanted ones that it may lack, or have nulls in, as standard errors; null where it
    lacks them.
    The file's hash is compared with the catalogue's, so the columns are those that were published. Raises
    PublicationError if the file is missing, differs from its hash, is no Parquet, claims too much or has
    other columns or rows than a release.
    """
    if isinstance(entry, DayEntry) and entry.closed_in is None:
        return pl.concat(read_columns(storage, one, wanted, optional) for one in entry.own)
    data = _closed(storage, entry) if isinstance(entry, DayEntry) else read_file(storage, entry, verify=True)
    try:
        frame, _ = decode(data, wanted)
    except PublicationError as error:
        raise PublicationError(f"{entry.file}: {error}; restore it") from error
    absent = set(wanted) - set(frame.columns)
    if absent - set(optional) or not _is_of_a_release(frame, optional):
        raise PublicationError(f"{entry.file} has other columns or rows than a release has; restore it")
    return frame.with_columns(pl.lit(None, dtype=kind_of(name)).alias(name) for name in sorted(absent))


def _closed(storage: Storage, entry: Entry) -> bytes:
    try:
        data = storage.read(entry.file, LARGEST_RELEASE)
    except FileNotFoundError as error:
        raise lost(entry) from error
    if hashlib.sha256(data).hexdigest() != entry.closed_in:
        raise PublicationError(f"{entry.file} differs from its hash in the catalogue; restore it")
    return data


def _is_of_a_release(frame: pl.DataFrame, optional: Collection[str]) -> bool:
    """Return whether columns have the published types and are filled, with every node at every step once."""
    return (
        frame.height > 0
        and all(kind == kind_of(name) for name, kind in frame.schema.items())
        and not any(frame[name].null_count() for name in set(frame.columns) - MAY_BE_NULL - set(optional))
        and all(_is_sound(frame[name].drop_nulls()) for name in frame.columns)
        and (not {"step", "node"} <= set(frame.columns) or holds_each_once(frame))
    )


def _is_sound(column: pl.Series) -> bool:
    """Return whether whole numbers are at least 0, no level is absurd, and sums of others stay finite."""
    if column.dtype.is_float():
        return bool((column.abs() < LARGEST_VALUE).all())
    if column.dtype.is_integer():
        return bool((column >= 0).all() and (column.name != "level" or (column <= DEEPEST_LEVEL).all()))
    return True


def read_statement(storage: Readable, entry: Entry) -> ReleaseStatement:
    """Return what the file of a listed release says of itself, of a day of hours the last hour's. Raises
    PublicationError as `read_columns`.
    """
    if isinstance(entry, DayEntry):
        return read_statement(storage, entry.own[-1])
    return statement_in(read_file(storage, entry, verify=True))

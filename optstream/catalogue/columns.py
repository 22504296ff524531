"""Some columns of a published file, for those who read years of them. Anyone may have written the files."""

import hashlib
from collections.abc import Collection

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from optstream.catalogue.backends import Storage
from optstream.catalogue.index import Entry
from optstream.catalogue.parquet import LIMITS, decode
from optstream.catalogue.read import read_file
from optstream.catalogue.rows import MAY_BE_NULL, kind_of
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.errors import PublicationError
from optstream.storage.parquet_limits import claims_of

LARGEST_VALUE = 1e100
DEEPEST_LEVEL = 100


def read_columns(
    storage: Storage, entry: Entry, wanted: Collection[str], optional: Collection[str] = ()
) -> pl.DataFrame:
    """Return the wanted columns of the file of a listed release, in the file's order of rows.

    optional: those of the wanted ones that it may lack, or have nulls in, as standard errors.
    The file's hash is compared with the catalogue's, so the columns are those that were published. Raises
    PublicationError if the file is missing, differs from its hash, is no Parquet, claims too much or has
    other columns or rows than a release.
    """
    data = _verified(storage, entry)
    claims = claims_of(data)
    if claims is None or not claims.is_flat or not claims.within(LIMITS):
        raise PublicationError(f"{entry.file} is not whole Parquet of at most {LIMITS.words}; restore it")
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        held = [name for name in file.schema_arrow.names if name in wanted]
        frame = pl.from_arrow(file.read(columns=held, use_threads=False))
    except (pa.ArrowException, OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise PublicationError(f"{entry.file} is not whole Parquet; restore it") from error
    if not isinstance(frame, pl.DataFrame):
        raise PublicationError(f"{entry.file} is not a table; restore it")
    absent = set(wanted) - set(held) - set(optional)
    if absent or not _is_of_a_release(frame, optional):
        raise PublicationError(f"{entry.file} has other columns or rows than a release has; restore it")
    return frame


def _is_of_a_release(frame: pl.DataFrame, optional: Collection[str]) -> bool:
    """Return whether columns have the published types and are filled, with every node at every step once."""
    key = [name for name in ("step", "node") if name in frame.columns]
    return (
        frame.height > 0
        and all(kind == kind_of(name) for name, kind in frame.schema.items())
        and not any(frame[name].null_count() for name in set(frame.columns) - MAY_BE_NULL - set(optional))
        and all(_is_sound(frame[name].drop_nulls()) for name in frame.columns)
        and (
            len(key) < 2
            or (
                frame.height == frame["step"].n_unique() * frame["node"].n_unique()
                and not frame.select(key).is_duplicated().any()
            )
        )
    )


def _is_sound(column: pl.Series) -> bool:
    """Return whether whole numbers are at least 0 and no level is absurd, and others such that sums stay
    finite.
    """
    if column.dtype.is_float():
        return bool((column.abs() < LARGEST_VALUE).all())
    if column.dtype.is_integer():
        return bool((column >= 0).all() and (column.name != "level" or (column <= DEEPEST_LEVEL).all()))
    return True


def read_statement(storage: Storage, entry: Entry) -> ReleaseStatement:
    """Return what the file of a listed release says of itself. Raises PublicationError as `read_columns`."""
    return ReleaseStatement.from_document(decode(_verified(storage, entry))[1].statement)


def _verified(storage: Storage, entry: Entry) -> bytes:
    data = read_file(storage, entry)
    if hashlib.sha256(data).hexdigest() != entry.file_hash:
        raise PublicationError(f"{entry.file} differs from its hash in the catalogue; restore it")
    return data

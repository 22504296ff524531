"""Some columns of a published file, for those who read years of them. Anyone may have written the files."""

import hashlib
from collections.abc import Collection

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from optstream.catalogue.claims import claims_of
from optstream.catalogue.index import Entry
from optstream.catalogue.parquet import LIMITS, decode
from optstream.catalogue.places import Place
from optstream.catalogue.read import read_file
from optstream.catalogue.statement import ReleaseStatement
from optstream.errors import PublicationError


def read_columns(place: Place, entry: Entry, wanted: Collection[str]) -> pl.DataFrame:
    """Those of the wanted columns that the file of a listed release has, in the file's order of rows.

    The file's hash is compared with the catalogue's, so the columns are those that were published.
    Raises PublicationError if the file is missing, differs from its hash, is no Parquet or claims too much.
    """
    data = _verified(place, entry)
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
    return frame


def read_statement(place: Place, entry: Entry) -> ReleaseStatement:
    """What the file of a listed release says of itself. Raises PublicationError as `read_columns`."""
    return ReleaseStatement.from_document(decode(_verified(place, entry))[1].statement)


def _verified(place: Place, entry: Entry) -> bytes:
    data = read_file(place, entry)
    if hashlib.sha256(data).hexdigest() != entry.file_hash:
        raise PublicationError(f"{entry.file} differs from its hash in the catalogue; restore it")
    return data

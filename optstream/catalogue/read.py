"""Read the published folder through its catalogue. Anyone may have written what is read."""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl

from optstream.catalogue.backends import Location, Storage, open_storage
from optstream.catalogue.index import Catalogue, Entry, read_catalogue
from optstream.catalogue.layout import superseded_file
from optstream.catalogue.parquet import Footer, decode
from optstream.catalogue.rows import empty_rows, hash_rows, with_errors
from optstream.catalogue.stage import dated_rows
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.errors import PublicationError
from optstream.storage.bounded_read import LARGEST_RELEASE

if TYPE_CHECKING:
    from optstream.catalogue.signing import GivenKeys


def read_published(
    folder: Location | str, verify: bool = False, public_key: "GivenKeys | None" = None
) -> pl.DataFrame:
    """Return all published periods, whole, sorted by (date, step, node).

    folder: a path, or the URL of a folder in an object store, such as s3://bucket/published.

    Columns date, step, timestamp (UTC; null for a slot that the day does not have), node, parent, level,
    the value column, its two standard errors (`error_columns`; null where not known), revision, vintage. What
    is read is what the catalogue listed when the call began, also
    while others publish; of a day that is withdrawn meanwhile, what the catalogue has instead: nothing, or a
    newer release. verify: compare the hashes of files and rows as well.
    public_key: the publisher's, a PEM file or its text, or several; then the catalogue must be signed by one
    of them, and all hashes are compared. It does not show that there is no newer catalogue
    (docs/data/published.md).

    A folder whose every period was withdrawn gives an empty frame of these columns; a folder without a
    catalogue raises PublicationError (the path may be wrong), as does a file that is missing or is not the
    release that the catalogue names, and a catalogue that is not signed as it should be. ParameterError for
    a public key that is none.
    """
    storage = open_storage(folder)
    look = catalogue_reader(storage, public_key)
    catalogue = look()
    verify = verify or public_key is not None
    frames = [_read_period(storage, look, catalogue, entry, verify) for entry in catalogue.entries]
    return pl.concat([empty_rows(catalogue.value_column), *frames])


def catalogue_reader(storage: Storage, public_key: "GivenKeys | None") -> Callable[[], Catalogue]:
    """Return what reads the folder's catalogue, which must be signed if keys are given."""
    if public_key is None:
        return lambda: read_catalogue(storage)
    from optstream.catalogue.signing import read_public_keys, read_signed_catalogue

    keys = read_public_keys(public_key)
    return lambda: read_signed_catalogue(storage, keys)


def _read_period(
    storage: Storage, look: Callable[[], Catalogue], catalogue: Catalogue, entry: Entry, verify: bool
) -> pl.DataFrame:
    """Return the rows of a listed day; none of a tombstone, also of one that was set while others were
    read.
    """
    while not entry.withdrawn:
        try:
            return read_rows(storage, catalogue, entry, verify)
        except PublicationError:
            now = look().entry(entry.period)
            if now is None or now == entry:
                raise
            entry = now
    return empty_rows(catalogue.value_column)


def read_rows(storage: Storage, catalogue: Catalogue, entry: Entry, verify: bool) -> pl.DataFrame:
    """Return the rows of one listed release. Raises PublicationError if its file is missing, or another's."""
    data = read_file(storage, entry)
    if verify and hashlib.sha256(data).hexdigest() != entry.file_hash:
        raise PublicationError(f"{entry.file} differs from its hash in the catalogue; restore it")
    inner, footer = decode(data)
    if footer.rows_hash != entry.rows_hash or not _states(footer, catalogue, entry):
        raise PublicationError(f"{entry.file} is another release than the catalogue names; restore it")
    rows = dated_rows(inner, ReleaseStatement.from_document(footer.statement))
    if verify and hash_rows(rows) != entry.rows_hash:
        raise PublicationError(
            f"the rows of {entry.file} differ from their hash in the catalogue; restore it"
        )
    return with_errors(rows, catalogue.value_column)


def _states(footer: Footer, catalogue: Catalogue, entry: Entry) -> bool:
    stated = ReleaseStatement.from_document(footer.statement)
    return (stated.stream, stated.value_column, stated.period, stated.revision, stated.vintage) == (
        catalogue.stream,
        catalogue.value_column,
        entry.period,
        entry.revision,
        entry.vintage,
    )


def read_file(storage: Storage, entry: Entry) -> bytes:
    """Return the file's bytes, also if a newer release moved it away after the catalogue was read."""
    for name in (entry.file, superseded_file(entry.period, entry.file_hash)):
        try:
            return storage.read(name, LARGEST_RELEASE)
        except FileNotFoundError:
            continue
    raise lost(entry)


def lost(entry: Entry) -> PublicationError:
    """Return which file is missing, and what its publisher does about it."""
    return PublicationError(
        f"{entry.file} is missing; its publisher puts the same bytes back with `optstream publish "
        f"{entry.period}`, which draws and costs nothing"
    )

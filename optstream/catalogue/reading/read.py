"""Read the published folder through its catalogue. Anyone may have written what is read."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import groupby

import polars as pl

from optstream.catalogue.about import read_about
from optstream.catalogue.backends import Location, Readable, Storage, open_storage
from optstream.catalogue.hierarchy_table import find_hierarchy
from optstream.catalogue.hours.closed_file import read_day
from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.layout import (
    CATALOGUE,
    ERRORS,
    HIERARCHY,
    LARGEST_RELEASE,
    data_file,
    errors_name,
    folder_of,
    superseded_file,
)
from optstream.catalogue.parquet import decode
from optstream.catalogue.reading.as_of import rows_as_of
from optstream.catalogue.reading.catalogue import read_catalogue
from optstream.catalogue.rows import empty_rows, hash_rows, joined_rows
from optstream.catalogue.signing import GivenKeys, check_signature, read_public_keys
from optstream.catalogue.stage import dated_rows
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.errors import PublicationError


def read_published(
    folder: Location | str,
    verify: bool = False,
    public_key: GivenKeys | None = None,
    as_of: date | None = None,
) -> pl.DataFrame:
    """Return the rows of all published periods, sorted by (date, step, node).

    What is read is what the catalogue listed when the call began, also while others publish; of a day that is
    withdrawn meanwhile, what the catalogue has instead: nothing, or a newer release. A signature does not
    show that there is no newer catalogue (docs/data/published.md). Warns where `about.json` names noise that
    became known.

    Args:
        folder: A path, or the URL of a folder in an object store, such as s3://bucket/published.
        verify: Whether to compare the hashes of files and rows as well.
        public_key: The publisher's, a PEM file or its text, or several; then the catalogue must be signed by
            one of them, and all hashes are compared.
        as_of: A local day: all rows in the hierarchy that holds on it, so that series go on over days on
            which units were renamed, split, merged or moved. Values are added up or left out, never divided;
            what was added up has no standard errors. None for each day's own hierarchy.

    Returns:
        Columns date, step, timestamp (UTC; null for a slot that the day does not have), node, parent, level,
        the value column, its two standard errors (`error_columns`; null where not known), of counts its band
        (`band_columns`; likewise), revision, vintage; without rows where every period was withdrawn.

    Raises:
        ParameterError: The URL or a public key cannot be one.
        PublicationError: There is no catalogue (the path may be wrong), it or the hierarchy is not signed as
            it should be, or a file is missing or is not the release that the catalogue names.
    """
    storage = open_storage(folder)
    look = catalogue_reader(storage, public_key)
    catalogue = look()
    with suppress(PublicationError):
        if lost_windows := read_about(storage).known_noise_in_words:
            warnings.warn(lost_windows, stacklevel=2)
    verify = verify or public_key is not None
    frames = []
    for _, own in groupby(catalogue.entries, key=lambda entry: entry.closed_in):
        frames += _read_together(storage, look, catalogue, list(own), verify)
    rows = joined_rows(frames, catalogue.value_column)
    if as_of is None:
        return rows
    keys = None if public_key is None else read_public_keys(public_key)
    check = None if keys is None else partial(check_signature, storage, HIERARCHY, keys=keys)
    return rows_as_of(rows, find_hierarchy(storage, check), as_of, catalogue.value_column)


def catalogue_reader(storage: Storage, public_key: GivenKeys | None) -> Callable[[], Catalogue]:
    """Return what reads the folder's catalogue, which must be signed if keys are given."""
    if public_key is None:
        return lambda: read_catalogue(storage)
    keys = read_public_keys(public_key)
    return lambda: read_catalogue(storage, partial(check_signature, storage, CATALOGUE, keys=keys))


def _read_together(
    storage: Storage,
    look: Callable[[], Catalogue],
    catalogue: Catalogue,
    entries: Sequence[Entry],
    verify: bool,
) -> list[pl.DataFrame]:
    """Return the rows of neighbouring periods: of a closed day's hours from one file, if that is there."""
    if entries[0].closed_in is not None:
        with suppress(PublicationError):  # opened again meanwhile, or lost: each hour has its own file too
            return [read_day(storage, catalogue.value_column, entries, verify)]
    return [_read_period(storage, look, catalogue, entry, verify) for entry in entries]


def _read_period(
    storage: Storage, look: Callable[[], Catalogue], catalogue: Catalogue, entry: Entry, verify: bool
) -> pl.DataFrame:
    """Return the rows of a listed day; none of a tombstone, also of one that was set meanwhile."""
    while not entry.withdrawn:
        try:
            return read_rows(storage, catalogue, entry, verify)
        except PublicationError:
            now = look().entry(entry.period)
            if now is None or now == entry:
                raise
            entry = now
    return empty_rows(catalogue.value_column)


def read_rows(storage: Readable, catalogue: Catalogue, entry: Entry, verify: bool) -> pl.DataFrame:
    """Return the rows of one listed release. Raises PublicationError if its file is missing, or another's."""
    inner, footer = decode(read_file(storage, entry, verify))
    stated = ReleaseStatement.from_document(footer.statement)
    if footer.rows_hash != entry.rows_hash or not is_of(stated, catalogue, entry):
        raise PublicationError(f"{entry.file} is another release than the catalogue names; restore it")
    rows = dated_rows(inner, stated)
    if verify and hash_rows(rows) != entry.rows_hash:
        raise PublicationError(
            f"the rows of {entry.file} differ from their hash in the catalogue; restore it"
        )
    return rows


def is_of(stated: ReleaseStatement, catalogue: Catalogue, entry: Entry) -> bool:
    """Return whether a statement is about the release that the catalogue lists."""
    return (stated.stream, stated.value_column, stated.period, stated.revision, stated.vintage) == (
        catalogue.stream,
        catalogue.value_column,
        entry.period,
        entry.revision,
        entry.vintage,
    )


def read_file(storage: Readable, entry: Entry, verify: bool = False) -> bytes:
    """Return the file's bytes, also if a newer release moved it away after the catalogue was read.

    verify: compare them with the catalogue's hash. Raises PublicationError if they differ, or are missing.
    """
    places = [place(entry.period, entry.file_hash) for place in (data_file, superseded_file)]
    for name in dict.fromkeys((entry.file, *places)):
        with suppress(FileNotFoundError):
            data = storage.read(name, LARGEST_RELEASE)
            if verify and hashlib.sha256(data).hexdigest() != entry.file_hash:
                raise PublicationError(f"{entry.file} differs from its hash in the catalogue; restore it")
            return data
    raise lost(entry)


def read_beside(storage: Readable, period: date, name: str, file_hash: str, largest: int) -> bytes:
    """Return the bytes of a file beside a release. Raises PublicationError if they are missing or others."""
    try:
        data = storage.read(name, largest)
    except FileNotFoundError as error:
        raise PublicationError(
            f"{name} is missing; its publisher puts the same bytes back with `optstream publish {period}`"
        ) from error
    if hashlib.sha256(data).hexdigest() != file_hash:
        raise PublicationError(f"{name} differs from its hash; `optstream publish {period}` puts it back")
    return data


def lost(entry: Entry) -> PublicationError:
    """Return which file is missing, and what its publisher does about it."""
    return PublicationError(
        f"{entry.file} is missing; its publisher puts the same bytes back with `optstream publish "
        f"{entry.period}`, which draws and costs nothing"
    )


def listed_errors(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    """Return which of these files of the published folder are of errors of a listed release, rising."""
    listed = {(folder_of(ERRORS, one.period), one.revision, one.vintage) for one in catalogue.listed}
    found = []
    for name in names:
        folder, _, last = name.rpartition("/")
        told = errors_name(last)
        if told is not None and (folder, *told[:2]) in listed:
            found.append(name)
    return tuple(sorted(found))

"""Compare the published folder with its catalogue, file by file. Anyone may have written either."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from itertools import groupby
from typing import Any

from optstream.catalogue import layout
from optstream.catalogue.about import find_hierarchy, read_about
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.index import Catalogue, Entry, read_catalogue
from optstream.catalogue.layout import MEASUREMENTS, folder_of
from optstream.catalogue.metadata import check_metadata, check_page
from optstream.catalogue.read import (
    is_of,
    listed_errors,
    missing,
    put_back,
    read_attachment,
    read_day,
    read_first,
    read_release,
)
from optstream.catalogue.signing import GivenKeys, check_signature, read_public_keys
from optstream.catalogue.statement import Manifest
from optstream.errors import PublicationError
from optstream.storage.store import Location

AGAIN = "publish or withdraw its day again, or remove it"


def check_files(folder: Location | str, public_key: GivenKeys | None = None) -> list[str]:
    """Return a line with the remedy for each problem of a published folder; none where it is whole.

    Problems are files that are missing, altered, not listed, of another catalogue, left of a withdrawn day
    or, with public keys, not signed. Raises PublicationError where the catalogue or a folder cannot be read.
    """
    storage = open_storage(folder)
    catalogue = read_catalogue(storage)
    problems = [] if public_key is None else list(_unsigned(storage, public_key))
    stated: dict[date, set[str]] = {}
    for entry in catalogue.entries:
        try:
            stated[entry.period] = _check_entry(storage, catalogue, entry)
        except PublicationError as error:
            problems.append(f"{entry.period}: {error}")
    closed = (entry for entry in catalogue.entries if entry.closed_in is not None)
    for _, own in groupby(closed, key=lambda entry: entry.closed_in):
        problems += _problem(read_day, storage, catalogue.value_column, list(own), verify=True)
    listed = {entry.shown_in for entry in catalogue.listed}
    strays = [name for name in storage.names_below(layout.DATA) if name not in listed]
    problems += [f"{name!r} is not listed in the catalogue; {AGAIN}" for name in strays]
    problems += _superseded(storage, catalogue)
    problems += _measurements(storage, catalogue)
    problems += _errors(storage, catalogue, stated)
    problems += check_page(storage, catalogue)
    for read in (read_about, find_hierarchy):
        problems += _problem(read, storage)
    return [*problems, *check_metadata(storage, catalogue)]


def _problem(read: Callable[..., object], *given: Any, **named: Any) -> list[str]:
    try:
        read(*given, **named)
    except PublicationError as error:
        return [str(error)]
    return []


def _check_entry(storage: Storage, catalogue: Catalogue, entry: Entry) -> set[str]:
    """Return the files of a listed release next to it. Raises PublicationError unless all is there, whole."""
    remedy = put_back(entry.period)
    if entry.withdrawn:
        remedy = "a withdrawn day keeps it: restore it from a copy"
    elif not storage.is_file(entry.file):
        raise missing(entry.file, remedy)
    else:
        _, footer = read_release(storage, catalogue, entry, verify=True)
    data = read_first(storage, [entry.manifest], None, remedy)
    try:
        manifest = Manifest.from_bytes(data)
    except PublicationError as error:
        raise PublicationError(f"{entry.manifest} is not a manifest; restore it") from error
    file = layout.data_file(entry.period, entry.file_hash)
    names = (manifest.file, manifest.file_hash, manifest.rows_hash)
    if names != (file, entry.file_hash, entry.rows_hash) or not (
        is_of(manifest.stated, catalogue, entry)
        if entry.withdrawn
        else manifest.statement == footer.statement
    ):
        raise PublicationError(
            f"{entry.manifest} says other things than the file and the catalogue; restore it"
        )
    files = {} if entry.withdrawn else dict(manifest.stated.attachments)
    for name, digest in files.items():
        read_attachment(storage, entry.period, digest, name)
    return set(files)


def _unsigned(storage: Storage, public_key: GivenKeys) -> Iterator[str]:
    """Yield the files that no hash of the catalogue covers, and its own, which none of the keys signed."""
    keys = read_public_keys(public_key)
    for name in (layout.CATALOGUE, layout.ABOUT, layout.HIERARCHY, *layout.DESCRIPTIONS):
        with suppress(FileNotFoundError):
            yield from _problem(lambda name: check_signature(storage, name, storage.read(name), keys), name)


def _superseded(storage: Storage, catalogue: Catalogue) -> Iterator[str]:
    """Yield replaced files of withdrawn days, and releases that differ from the hashes in their names."""
    for part in (layout.SUPERSEDED, layout.SUPERSEDED_ERRORS):
        withdrawn = {folder_of(part, entry.period) for entry in catalogue.entries if entry.withdrawn}
        for name in storage.names_below(part):
            if name.rpartition("/")[0] in withdrawn:
                yield f"{name!r} is of a day that was withdrawn; withdraw it again, which removes it"
            elif part == layout.SUPERSEDED and not _is_named_by_its_hash(storage, part, name):
                yield f"{name!r} differs from the hash in its name; restore it from a copy, or remove it"


def _is_named_by_its_hash(storage: Storage, part: str, name: str) -> bool:
    named = layout.numbers_and_hash(part, name.rpartition("/")[2])
    with suppress(OSError, PublicationError):
        return named is not None and named[1] == hashlib.sha256(storage.read(name)).hexdigest()
    return False


def _measurements(storage: Storage, catalogue: Catalogue) -> Iterator[str]:
    """Yield problems of files of measurements: names must be their hashes, days must be listed."""
    days = {folder_of(MEASUREMENTS, entry.period) for entry in catalogue.listed}
    for name in storage.names_below(MEASUREMENTS):
        folder, _, last = name.rpartition("/")
        if folder not in days or layout.numbers_and_hash(MEASUREMENTS, last) is None:
            yield f"{name!r} is of no listed day; {AGAIN}"
        elif not _is_named_by_its_hash(storage, MEASUREMENTS, name):
            yield f"{name!r} differs from the hash in its name; `optstream publish` of its day puts it back"


def _errors(storage: Storage, catalogue: Catalogue, stated: Mapping[date, set[str]]) -> Iterator[str]:
    """Yield the files of errors that are of no listed release."""
    names = storage.names_below(layout.ERRORS)
    listed, known = set(listed_errors(names, catalogue)), set().union(*stated.values())
    not_whole = {
        folder_of(layout.ERRORS, one.period) for one in catalogue.entries if one.period not in stated
    }
    for name in names:
        if name not in listed or not (name in known or name.rpartition("/")[0] in not_whole):
            yield f"{name!r} is of no listed release; {AGAIN}"

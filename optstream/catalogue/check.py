"""Compare the published folder with its catalogue, file by file. Anyone may have written either."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from optstream.catalogue.index import Catalogue, Entry, read_catalogue
from optstream.catalogue.layout import DATA, SUPERSEDED, inside, release_name, superseded_folder
from optstream.catalogue.parquet import LARGEST_STATEMENT, decode
from optstream.catalogue.read import read_file, read_rows
from optstream.catalogue.statement import ReleaseStatement
from optstream.catalogue.untrusted import LARGEST_RELEASE, read_bounded
from optstream.errors import PublicationError


def check_files(folder: Path | str) -> list[str]:
    """A line for each file that is missing, altered, not listed, or left of a day that was withdrawn.

    Of a withdrawn day the manifest must be there, and no file. Raises PublicationError if the catalogue
    itself cannot be read.
    """
    root = Path(folder)
    catalogue = read_catalogue(root)
    problems = []
    for entry in catalogue.entries:
        try:
            _check_entry(root, catalogue, entry)
        except PublicationError as error:
            problems.append(f"{entry.period}: {error}")
    listed = {entry.file for entry in catalogue.entries if not entry.withdrawn}
    strays = [name for name in _files_below(root, DATA) if name not in listed]
    return [
        *problems,
        *(
            f"{name!r} is not listed in the catalogue; publish or withdraw its day again, or remove it"
            for name in strays
        ),
        *_superseded(root, catalogue),
    ]


def _check_entry(root: Path, catalogue: Catalogue, entry: Entry) -> None:
    """Raise PublicationError unless what the entry names is there, whole."""
    if entry.withdrawn:
        document = _manifest(root, entry, "a withdrawn day keeps it: restore it from a copy")
        _check_statement(catalogue, entry, document)
        return
    if not inside(root, entry.file).is_file():
        raise PublicationError(f"{entry.file} is missing; publish it again from the trusted zone")
    read_rows(root, catalogue, entry, verify=True)
    document = _manifest(root, entry, "publish it again from the trusted zone")
    _, footer = decode(read_file(root, entry))
    if document["statement"] != footer.statement:
        raise PublicationError(_differs(entry))


def _manifest(root: Path, entry: Entry, remedy: str) -> dict[str, Any]:
    """The manifest that an entry names, whose file and hashes are the entry's."""
    try:
        text = read_bounded(inside(root, entry.manifest), entry.manifest, 2 * LARGEST_STATEMENT)
        document: dict[str, Any] = json.loads(text)
        stated = (document["file"], document["file_hash"], document["rows_hash"])
        document["statement"]
    except FileNotFoundError as error:
        raise PublicationError(f"{entry.manifest} is missing; {remedy}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PublicationError(f"{entry.manifest} is not a manifest; restore it") from error
    if stated != (entry.file, entry.file_hash, entry.rows_hash):
        raise PublicationError(_differs(entry))
    return document


def _check_statement(catalogue: Catalogue, entry: Entry, document: dict[str, Any]) -> None:
    """What a manifest says of a release whose file is gone must at least be about that release."""
    stated = ReleaseStatement.from_document(document["statement"])
    told = (stated.stream, stated.period, stated.revision, stated.vintage)
    if told != (catalogue.stream, entry.period, entry.revision, entry.vintage):
        raise PublicationError(_differs(entry))


def _differs(entry: Entry) -> str:
    return f"{entry.manifest} says other things than the file and the catalogue; restore it"


def _superseded(root: Path, catalogue: Catalogue) -> Iterator[str]:
    """Replaced releases: under names that are their hashes, and none of a withdrawn day."""
    gone = {superseded_folder(entry.period) for entry in catalogue.entries if entry.withdrawn}
    for name in _files_below(root, SUPERSEDED):
        if name.rpartition("/")[0] in gone:
            yield f"{name!r} is of a day that was withdrawn; withdraw it again, which removes it"
            continue
        try:
            digest = hashlib.sha256(read_bounded(inside(root, name), name, LARGEST_RELEASE)).hexdigest()
        except (OSError, PublicationError):
            digest = ""
        if name.rpartition("/")[2] != release_name(digest):
            yield f"{name!r} is not what its name says; restore it from a copy, or remove it"


def _files_below(root: Path, place: str) -> list[str]:
    found = (path for path in (root / place).rglob("*") if not path.is_dir())
    return sorted(path.relative_to(root).as_posix() for path in found)

"""Read the published folder through its catalogue. Anyone may have written what is read."""

import hashlib
import json
from pathlib import Path

import polars as pl

from optstream.catalogue.index import Catalogue, Entry, read_catalogue
from optstream.catalogue.layout import DATA, inside, superseded_file
from optstream.catalogue.parquet import LARGEST_STATEMENT, Footer, decode
from optstream.catalogue.rows import empty_rows, hash_rows
from optstream.catalogue.stage import dated_rows
from optstream.catalogue.statement import ReleaseStatement
from optstream.catalogue.untrusted import LARGEST_RELEASE, read_bounded
from optstream.errors import PublicationError


def read_published(folder: Path | str, verify: bool = False) -> pl.DataFrame:
    """All published periods, whole, sorted by (date, step, node).

    Columns date, step, timestamp (UTC; null for a slot that the day does not have), node, parent, level,
    the value column, revision, vintage. What is read is what the catalogue listed when the call began, also
    while others publish. verify: compare the hashes of files and rows as well.

    A folder whose every period was withdrawn gives an empty frame of these columns; a folder without a
    catalogue raises PublicationError (the path may be wrong), as does a file that is missing or is not the
    release that the catalogue names.
    """
    root = Path(folder)
    catalogue = read_catalogue(root)
    frames = [
        _read_rows(root, catalogue, entry, verify) for entry in catalogue.entries if not entry.withdrawn
    ]
    return pl.concat([empty_rows(catalogue.value_column), *frames])


def check_files(folder: Path | str) -> list[str]:
    """Compare the folder with its catalogue: a line for each file missing, altered or not listed.

    Raises PublicationError if the catalogue itself cannot be read.
    """
    root = Path(folder)
    catalogue = read_catalogue(root)
    problems = []
    for entry in catalogue.entries:
        if entry.withdrawn:
            continue
        try:
            if not inside(root, entry.file).is_file():
                raise PublicationError(f"{entry.file} is missing")
            _read_rows(root, catalogue, entry, verify=True)
            _check_manifest(root, entry)
        except PublicationError as error:
            problems.append(f"{entry.period}: {error}")
    listed = {entry.file for entry in catalogue.entries if not entry.withdrawn}
    found = (path for path in (root / DATA).rglob("*") if not path.is_dir())
    strays = sorted({path.relative_to(root).as_posix() for path in found} - listed)
    return problems + [f"{name!r} is not listed in the catalogue" for name in strays]


def _read_rows(root: Path, catalogue: Catalogue, entry: Entry, verify: bool) -> pl.DataFrame:
    data = _read_file(root, entry)
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
    return rows


def _states(footer: Footer, catalogue: Catalogue, entry: Entry) -> bool:
    stated = ReleaseStatement.from_document(footer.statement)
    return (stated.stream, stated.value_column, stated.period, stated.revision, stated.vintage) == (
        catalogue.stream,
        catalogue.value_column,
        entry.period,
        entry.revision,
        entry.vintage,
    )


def _read_file(root: Path, entry: Entry) -> bytes:
    """The file's bytes, also if a newer release moved it away after the catalogue was read."""
    for name in (entry.file, superseded_file(entry.period, entry.file_hash)):
        try:
            return read_bounded(inside(root, name), name, LARGEST_RELEASE)
        except FileNotFoundError:
            continue
    raise PublicationError(f"{entry.file} is missing; publish it again from the trusted zone")


def _check_manifest(root: Path, entry: Entry) -> None:
    try:
        document = json.loads(
            read_bounded(inside(root, entry.manifest), entry.manifest, 2 * LARGEST_STATEMENT)
        )
        stated = (document["file"], document["file_hash"], document["rows_hash"])
        statement = document["statement"]
    except FileNotFoundError as error:
        raise PublicationError(
            f"{entry.manifest} is missing; publish it again from the trusted zone"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PublicationError(f"{entry.manifest} is not a manifest; restore it") from error
    _, footer = decode(_read_file(root, entry))
    if stated != (entry.file, entry.file_hash, entry.rows_hash) or statement != footer.statement:
        raise PublicationError(
            f"{entry.manifest} says other things than the file and the catalogue; restore it"
        )

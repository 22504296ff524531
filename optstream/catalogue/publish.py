"""Publish staged releases: immutable files first, then the catalogue that names them (DESIGN, section 6)."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optstream.catalogue.durable import clear, exclusive, make_folder, move, replace, write_new
from optstream.catalogue.index import Catalogue, Entry, check_ledger_head, find_catalogue
from optstream.catalogue.layout import (
    CATALOGUE,
    INCOMING,
    LOCK,
    MANIFESTS,
    inside,
    is_release_name,
    release_name,
    superseded_file,
)
from optstream.catalogue.parquet import decode
from optstream.catalogue.stage import StagedRelease
from optstream.catalogue.statement import ReleaseStatement
from optstream.catalogue.times import settle_times
from optstream.catalogue.withdraw import delete_files
from optstream.errors import PublicationError

MANIFEST_FORMAT = "optstream.manifest/1"


@dataclass(frozen=True)
class Publication:
    """What `publish` did: `changed` is False if the folder held this release, whole, already."""

    entry: Entry
    changed: bool

    def in_words(self) -> str:
        """One line for the operator."""
        what = f"{self.entry.period} revision {self.entry.revision} vintage {self.entry.vintage}"
        return f"published {what}" if self.changed else f"{what} was published already; nothing changed"


def publish(
    folder: Path | str,
    releases: Sequence[tuple[StagedRelease, ReleaseStatement]],
    head_after: Callable[[str | None], str],
) -> tuple[Publication, ...]:
    """Make staged releases, each of a period of its own, the published ones: all of them or none.

    Under an inter-process lock: write each file and manifest under names that hold the file's hash, never
    over an existing path; replace the catalogue atomically, once; move files that these replace to
    superseded/. After a crash at any point the catalogue lists only whole files, and publishing the same
    releases again completes the work. Costs no privacy: they are drawn already.

    head_after: given the head that the catalogue carries now (None without one), the ledger's head, which the
    new catalogue carries; raises if the ledger does not contain the given one. Asked inside the lock, so that
    the heads of a catalogue stand in the ledger in the order of its publications.
    Raises PublicationError for simulated noise; for a statement that is not the staged one; for a folder of
    another stream or value column; where a period has a later revision or vintage, or another file under
    the same; and where a file's path holds other bytes; and, nothing written, whatever `head_after` raises.
    """
    if any(statement.simulated for _, statement in releases):
        raise PublicationError(
            "simulated noise protects nobody: draw the release with secure noise to publish it"
        )
    documents = [_staged_document(staged, statement) for staged, statement in releases]
    if len({statement.period for _, statement in releases}) < len(releases):
        raise PublicationError(
            "two releases of one period cannot be published at once: the newer comes after"
        )
    if not releases:
        return ()
    root = Path(folder)
    try:
        make_folder(root)
        with exclusive(root / LOCK):
            known = find_catalogue(root)
            for staged, statement in releases:
                _check_order(known, staged, statement)
            head = head_after(known.ledger_head if known else None)
            check_ledger_head(head)
            files = [
                _File(_entry(staged, statement, head), staged.data, document)
                for (staged, statement), document in zip(releases, documents, strict=True)
            ]
            return _publish_locked(root, known, files)
    except OSError as error:
        raise PublicationError(
            f"the published folder cannot be written ({error.strerror}); mend it and publish again: "
            "the release is kept, and what is listed is whole"
        ) from error


@dataclass(frozen=True)
class _File:
    """What is to be written of one release. document: its statement as the footer has it."""

    entry: Entry
    data: bytes
    document: dict[str, Any]


def _entry(staged: StagedRelease, statement: ReleaseStatement, head: str) -> Entry:
    key = (statement.period, statement.revision, statement.vintage)
    return Entry(*key, staged.file_hash, staged.rows_hash, head)


def _publish_locked(root: Path, known: Catalogue | None, files: Sequence[_File]) -> tuple[Publication, ...]:
    before = [known.entry(file.entry.period) if known else None for file in files]
    for entry in before:
        if entry is not None and entry.withdrawn:
            # a withdrawal that a crash cut short must not end with its files in superseded/
            delete_files(root, entry.period)
    incoming = inside(root, INCOMING)
    for needed in (incoming, inside(root, MANIFESTS)):
        make_folder(needed)
    clear(incoming)
    written = [_write(root, file, incoming) for file in files]
    fresh = [
        file.entry
        for file, entry in zip(files, before, strict=True)
        if entry is None or entry.file_hash != file.entry.file_hash
    ]
    first = files[0]
    catalogue = known or Catalogue(
        first.document["stream"], first.document["value_column"], first.entry.ledger_head, ()
    )
    if fresh:
        catalogue = catalogue.with_entries(fresh)
        replace(root / CATALOGUE, catalogue.to_bytes(), incoming)
    listed = [entry for file in files if (entry := catalogue.entry(file.entry.period))]
    cleared = [_clear_superseded(root, entry) for entry in listed]
    settle_times(root, catalogue, listed)
    changes = zip(listed, written, cleared, strict=True)
    return tuple(Publication(entry, any((new, old, entry in fresh))) for entry, new, old in changes)


def _write(root: Path, file: _File, incoming: Path) -> bool:
    make_folder(inside(root, file.entry.file).parent)
    changed = write_new(root / file.entry.file, file.data, incoming)
    return write_new(root / file.entry.manifest, _manifest(file.entry, file.document), incoming) or changed


def _staged_document(staged: StagedRelease, statement: ReleaseStatement) -> dict[str, Any]:
    """The statement as the file's footer has it, after checking that file, hashes and statement agree."""
    if hashlib.sha256(staged.data).hexdigest() != staged.file_hash or staged.name != release_name(
        staged.file_hash
    ):
        raise PublicationError("the bytes of a staged release differ from its file hash; stage it again")
    _, footer = decode(staged.data)
    if footer.rows_hash != staged.rows_hash or ReleaseStatement.from_document(footer.statement) != statement:
        raise PublicationError(
            "the statement to publish differs from the one in the staged file; stage it again"
        )
    return footer.statement


def _manifest(entry: Entry, statement: dict[str, Any]) -> bytes:
    document = {
        "format": MANIFEST_FORMAT,
        "file": entry.file,
        "file_hash": entry.file_hash,
        "rows_hash": entry.rows_hash,
        "statement": statement,
    }
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _check_order(known: Catalogue | None, staged: StagedRelease, statement: ReleaseStatement) -> None:
    """Refuse what would turn a published folder back, or make two things of one name."""
    if known is None:
        return
    if (known.stream, known.value_column) != (statement.stream, statement.value_column):
        raise PublicationError(
            "the published folder belongs to another stream or value column; "
            "give each stream a folder of its own"
        )
    before = known.entry(statement.period)
    if before is None:
        return
    place = f"{statement.period} revision {before.revision} vintage {before.vintage}"
    if before.withdrawn and statement.revision <= before.revision:
        raise PublicationError(f"{place} was withdrawn; only a higher revision may be published in its place")
    rank, published = (statement.revision, statement.vintage), (before.revision, before.vintage)
    if rank < published:
        raise PublicationError(f"{place} is published, and an earlier one may not take its place")
    if rank == published and (before.file_hash, before.rows_hash) != (staged.file_hash, staged.rows_hash):
        raise PublicationError(
            f"{place} is published with other bytes; "
            "a new estimate is a new vintage, new measurements are a new revision"
        )


def _clear_superseded(root: Path, entry: Entry) -> bool:
    """Move every other release of the period out of data/, also what a crash left there."""
    current = root / entry.file
    others = [path for path in current.parent.iterdir() if is_release_name(path.name) and path != current]
    for path in others:
        target = root / superseded_file(
            entry.period, path.name.removeprefix("release-").removesuffix(".parquet")
        )
        make_folder(target.parent)
        move(path, target)
    return bool(others)

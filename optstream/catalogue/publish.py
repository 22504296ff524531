"""Publish staged releases: immutable files, then the catalogue that names them (docs/data/published.md)."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optstream.catalogue.backends import Location, Transaction, change_folder
from optstream.catalogue.hours import remove_left, reopened
from optstream.catalogue.index import Catalogue, Entry, find_catalogue
from optstream.catalogue.layout import MANIFESTS, data_file, release_name
from optstream.catalogue.signing import Signer, put_catalogue
from optstream.catalogue.stage import StagedRelease, decode
from optstream.catalogue.statement import Manifest, ReleaseStatement
from optstream.catalogue.sweep import clear_superseded, delete_files
from optstream.catalogue.times import settle_times
from optstream.errors import PublicationError

Releases = Sequence[tuple[StagedRelease, ReleaseStatement]]


@dataclass(frozen=True)
class Publication:
    """What `publish` did with one release.

    Attributes:
        entry: The release as the catalogue lists it.
        changed: False if the folder held this release, whole, already.
    """

    entry: Entry
    changed: bool

    def in_words(self) -> str:
        """Return one line for the operator.

        Returns:
            Text that holds no published value.
        """
        what = f"{self.entry.period} revision {self.entry.revision} vintage {self.entry.vintage}"
        return f"published {what}" if self.changed else f"{what} was published already; nothing changed"


def publish(
    folder: Location | str,
    releases: Releases,
    head_after: Callable[[str | None], str],
    signer: Signer | None = None,
) -> tuple[Publication, ...]:
    """Make staged releases, each of a period of its own, the published ones: all of them or none.

    In one transaction at the folder (`Storage.change`: under a lock, or until no other publisher was faster):
    write each file and manifest under names that hold the file's hash, never over an existing path; replace
    the catalogue atomically, once; move files that these replace to superseded/. After a crash at any point
    the catalogue lists only whole files, and publishing the same releases again completes the work. Costs no
    privacy: they are drawn already.

    Args:
        folder: A path, or the URL of a folder in an object store, such as s3://bucket/published.
        releases: Each staged file with its statement.
        head_after: Given the head that the catalogue carries now (None without one), returns the ledger's
            head, which the new catalogue carries; raises if the ledger does not contain the given one. Called
            inside each transaction, so that the heads of a catalogue stand in the ledger in the order of its
            publications.
        signer: Signs the manifests of these releases and the catalogue, also one that it finds unsigned.

    Returns:
        What was done with each release, in their order.

    Raises:
        ParameterError: The URL cannot be one.
        PublicationError: Nothing was listed, since the noise is simulated; a statement is not the staged one;
            the folder is of another stream or value column; a period has a later revision or vintage, another
            file under the same, or was withdrawn; a file's path holds other bytes; or the store does not
            refuse the second of two conditional puts. Or the folder cannot be written, and what is listed is
            whole.
        Exception: Whatever `head_after` or the signer raises; nothing was listed.
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
    return change_folder(
        folder,
        lambda transaction: _publish_in_transaction(transaction, releases, documents, head_after, signer),
        "the published folder",
        "mend it and publish again: the release is kept, and what is listed is whole",
    )


@dataclass(frozen=True)
class _File:
    """The files that are to be written of one release, with its statement as the footer has it."""

    entry: Entry
    data: bytes
    document: dict[str, Any]
    beside: tuple[tuple[str, bytes], ...]


def _publish_in_transaction(
    transaction: Transaction,
    releases: Releases,
    documents: Sequence[dict[str, Any]],
    head_after: Callable[[str | None], str],
    signer: Signer | None,
) -> tuple[Publication, ...]:
    known = find_catalogue(transaction)
    try:
        for staged, statement in releases:
            _check_order(known, staged, statement)
    except PublicationError:
        if known is not None and transaction.is_again:
            _take_back(transaction, known, releases)
        raise
    head = head_after(known.ledger_head if known else None)
    if signer is not None:
        signer.take_up(transaction, known)
    files = []
    for (staged, statement), document in zip(releases, documents, strict=True):
        before = known.entry(statement.period) if known else None
        is_same = before is not None and before.file_hash == staged.file_hash
        closed_in = before.closed_in if before is not None and is_same else None
        entry = Entry(
            period=statement.period,
            revision=statement.revision,
            vintage=statement.vintage,
            file_hash=staged.file_hash,
            rows_hash=staged.rows_hash,
            ledger_head=head,
            closed_in=closed_in,
        )
        files.append(_File(entry, staged.data, document, _files_beside(staged, statement)))
    return _put(transaction, known, files, signer)


def _take_back(transaction: Transaction, known: Catalogue, releases: Releases) -> None:
    """Remove what a transaction that met a conflict wrote of days that have since gone further."""
    for _, statement in releases:
        entry = known.entry(statement.period)
        if entry is not None and entry.withdrawn:
            delete_files(transaction, entry.period, entry.revision)
        elif entry is not None:
            clear_superseded(transaction, entry)


def _put(
    transaction: Transaction, known: Catalogue | None, files: Sequence[_File], signer: Signer | None
) -> tuple[Publication, ...]:
    before = [known.entry(file.entry.period) if known else None for file in files]
    for entry in before:
        if entry is not None and entry.withdrawn:
            # a withdrawal that a crash cut short must not end with its files in superseded/
            delete_files(transaction, entry.period, entry.revision)
    transaction.prepare(MANIFESTS)
    written = [_write(transaction, file, signer) for file in files]
    fresh = [
        file.entry
        for file, entry in zip(files, before, strict=True)
        if entry is None or entry.file_hash != file.entry.file_hash
    ]
    first = files[0]
    catalogue = known or Catalogue(
        stream=first.document["stream"],
        value_column=first.document["value_column"],
        ledger_head=first.entry.ledger_head,
    )
    signed_anew = signer is not None and not signer.has_signed(transaction, catalogue)
    if fresh or signed_anew:
        catalogue, left = reopened(transaction, catalogue, [entry.period for entry in fresh])
        catalogue = put_catalogue(
            transaction, known, catalogue.with_entries(fresh) if fresh else catalogue, signer
        )
        remove_left(transaction, left)
    elif any(written) and not transaction.is_alone:
        transaction.confirm_catalogue()  # or what was put back may have been superseded meanwhile
    listed = [entry for file in files if (entry := catalogue.entry(file.entry.period))]
    cleared = [clear_superseded(transaction, entry) for entry in listed]
    names = [(file.entry.period, name) for file in files for name, _ in file.beside]
    settle_times(transaction, catalogue, listed, names)
    changes = zip(listed, written, cleared, strict=True)
    return tuple(
        Publication(entry, any((new, old, entry in fresh, signed_anew))) for entry, new, old in changes
    )


def _write(transaction: Transaction, file: _File, signer: Signer | None) -> bool:
    manifest = _manifest(file.entry, file.document)
    changed = sum(transaction.create_new(name, data) for name, data in file.beside) > 0
    changed = transaction.create_new(file.entry.file, file.data) or changed
    changed = transaction.create_new(file.entry.manifest, manifest) or changed
    return changed if signer is None else signer.sign(transaction, manifest) or changed


def _files_beside(staged: StagedRelease, statement: ReleaseStatement) -> tuple[tuple[str, bytes], ...]:
    """Return where the files beside a release go, and their bytes; that of errors may be missing."""
    stated, optional = statement.beside, statement.errors and statement.errors.file_hash
    known = {hashlib.sha256(data).hexdigest(): data for data in staged.beside.values()}
    if {digest for _, digest in stated} - {optional} != known.keys() - {optional}:
        raise PublicationError(
            f"the files beside the release of {statement.period} differ from their hashes in its statement; "
            "stage it again"
        )
    return tuple((name, known[digest]) for name, digest in stated if digest in known)


def _staged_document(staged: StagedRelease, statement: ReleaseStatement) -> dict[str, Any]:
    """Return the statement in the file's footer, after checking that file, hashes and statement agree."""
    if hashlib.sha256(staged.data).hexdigest() != staged.file_hash or staged.name != release_name(
        staged.file_hash
    ):
        raise PublicationError("the bytes of a staged release differ from its file hash; stage it again")
    _, footer = decode(staged.data, ())
    if footer.rows_hash != staged.rows_hash or ReleaseStatement.read(footer.statement) != statement:
        raise PublicationError(
            "the statement to publish differs from the one in the staged file; stage it again"
        )
    return footer.statement


def _manifest(entry: Entry, statement: dict[str, Any]) -> bytes:
    file, hashes = data_file(entry.period, entry.file_hash), (entry.file_hash, entry.rows_hash)
    return Manifest(file=file, file_hash=hashes[0], rows_hash=hashes[1], statement=statement).to_bytes()


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
    known_as = f"{statement.period} revision {before.revision} vintage {before.vintage}"
    if before.withdrawn and statement.revision <= before.revision:
        raise PublicationError(f"{known_as} was withdrawn; only a higher revision may replace it")
    rank, published = (statement.revision, statement.vintage), (before.revision, before.vintage)
    if rank < published:
        raise PublicationError(f"{known_as} is published, and an earlier one may not take its place")
    if rank == published and (before.file_hash, before.rows_hash) != (staged.file_hash, staged.rows_hash):
        raise PublicationError(
            f"{known_as} is published with other bytes; "
            "a new estimate is a new vintage, new measurements are a new revision"
        )

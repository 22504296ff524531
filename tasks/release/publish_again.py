"""Put a published file that was lost or damaged back: the same bytes, by the hash that the ledger has.

Nothing is drawn and nothing is charged: the bytes were staged before, or are computed again from the stored
measurements, and no other bytes than the recorded ones are written.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import date
from functools import partial
from hashlib import sha256
from json import loads

from optstream.catalogue import (
    Publication,
    ReleaseStatement,
    StagedRelease,
    find_catalogue,
    read_staged,
    stage,
)
from optstream.catalogue import publish as publish_releases
from optstream.catalogue.backends import OtherBytes, Transaction, open_storage
from optstream.catalogue.layout import (
    DATA,
    LARGEST_RELEASE,
    MANIFESTS,
    data_file,
    folder_of,
    manifest_file,
    release_name,
)
from optstream.errors import LedgerError, OptStreamError, PublicationError
from optstream.ledger import ReleaseRecord, ReleaseState, Vintage
from optstream.mechanisms import Release
from optstream.stream import Measured, period_from
from tasks.release import revise
from tasks.release.day import Ended, Requested, Status
from tasks.release.guards.witness import refuse_older
from tasks.release.records.files_beside import FilesBeside, files_beside, with_files
from tasks.release.records.published_rows import published_rows
from tasks.release.records.statement import as_drawn, meant_otherwise, statement_of
from tasks.release.run import Run
from tasks.signing.sign import signer_of
from tasks.storage.private_files import read_verified

LARGEST_MANIFEST = 2**24
"""Bytes."""
StagedStatement = tuple[StagedRelease, ReleaseStatement]


def publish_again(run: Run, asked: Requested, days: Collection[date] = ()) -> Ended:
    """Write what the ledger has as published of a day into the published folder, where it is not there whole.

    Safe to repeat; the ledger is not changed, and costs nothing. days: all that the same command puts back.
    Raises LedgerError for a day that was never published, was withdrawn or is compromised, or whose bytes
    cannot be had any more, and for an older copy of the ledger; PublicationError where the folder cannot be
    written or lists something later.
    """
    day = asked.day
    refuse_older(run.settings, run.ledger)  # it may have forgotten that the day was withdrawn
    record, number, digest = _recorded(run, day)
    staged = _staged(run, day, record, number, digest)
    publication = _published(run, day, staged, {day, *days})
    file = publication.entry.file
    if not publication.changed:
        return asked.ended(Status.UNCHANGED, "it is there, whole; nothing changed", file)
    return asked.ended(Status.PUBLISHED, f"published again, the same bytes: {digest[:12]}", file)


def days_published(run: Run) -> set[date]:
    """The days that readers should have: published, and not withdrawn."""
    outlines = run.ledger.outlines(run.stream)
    known = {one.period: one for one in outlines if one.state is ReleaseState.PUBLISHED}
    return {period_from(period) for period, one in known.items() if one.withdrawn is None}


def _recorded(run: Run, day: date) -> tuple[ReleaseRecord, int, str]:
    """The release that readers should have: its record, its vintage and the hash of its file."""
    period, first = day.isoformat(), run.settings.calendar.first_step(day)
    begun_then = run.ledger.outlines(run.stream, range(first, first + 1))
    known = [one for one in begun_then if one.period == period]
    out = [one.revision for one in known if one.state is ReleaseState.PUBLISHED]
    if not out:
        state = str(known[-1].state) if known else "not in the ledger"
        raise LedgerError(f"{day} is {state}, not published: `optstream run --date {period}` takes it up")
    record = run.ledger.find(run.stream, period, max(out))
    assert record is not None
    if record.withdrawn is not None:
        raise LedgerError(f"{day} was withdrawn ({record.withdrawn}): it is not published again")
    if record.compromised is not None:
        raise LedgerError(f"others know the noise of {day}: `optstream withdraw` it")
    newest = _newest_vintage(run, record)
    if newest is not None:
        return record, newest.number, newest.staged_hash
    return record, 0, record.staged_hash or ""


def _newest_vintage(run: Run, record: ReleaseRecord) -> Vintage | None:
    """The last new estimate that readers had: recorded as published, or listed by a run that died after."""
    catalogue = find_catalogue(run.settings.published_folder)
    listed = {} if catalogue is None else {one.period.isoformat(): one.file_hash for one in catalogue.entries}
    known = run.ledger.vintages_of(run.stream, record.period, record.revision)
    out = [one for one in known if one.published or one.staged_hash == listed.get(record.period)]
    return out[-1] if out else None


def _staged(run: Run, day: date, record: ReleaseRecord, number: int, digest: str) -> StagedStatement:
    """The bytes with this hash, staged or computed again. Raises LedgerError if there are none."""
    estimated = partial(_estimated, run, day, record, number)
    with suppress(LedgerError, OSError):
        kept, said = read_staged(read_verified(run.settings.staging_of(day, record.revision), digest))
        return with_files(run, day, kept, said, lambda: estimated()[0]), said
    try:
        release, beside = estimated()
    except OptStreamError as error:
        raise LedgerError(f"{_gone(day)}: {error}") from error
    rows = published_rows(run.settings, day, release, record.revision, number)
    now = statement_of(run.settings, day, release, record.revision, number, beside)
    tried = ((one, by_node) for one in _statements(run, record, now, digest) for by_node in (True, False))
    for statement, by_node in tried:
        with suppress(PublicationError):
            staged = stage(rows, statement, by_node=by_node)
            if staged.file_hash == digest:
                return with_files(run, day, staged, statement, lambda: release), statement
    raise LedgerError(
        f"{_gone(day)}: computed again from the stored measurements it has other bytes than were published; "
        "this version or this configuration is another than at that time"
    )


def _gone(day: date) -> str:
    return (
        f"the staged file of {day} is gone, so bring trusted/staging or the published file back from a copy"
    )


def _statements(
    run: Run, record: ReleaseRecord, now: ReleaseStatement, digest: str
) -> Iterator[ReleaseStatement]:
    """What the file may have said of itself: by this configuration and version, as its draw has it, or as its
    manifest has it, whoever wrote that: only a file with the recorded hash is published.
    """
    yield now
    with suppress(PublicationError, OSError):
        yield as_drawn(run.settings, record, now)
    with suppress(PublicationError, OSError, ValueError, KeyError, TypeError, RecursionError):
        text = open_storage(run.settings.published_folder).read(manifest_file(digest), LARGEST_MANIFEST)
        yield ReleaseStatement.from_document(loads(text)["statement"])


def _estimated(run: Run, day: date, record: ReleaseRecord, number: int) -> tuple[Release, FilesBeside]:
    """The release as it follows from the stored measurements, and the files beside it: the same each time."""
    if number:
        return revise.estimated_again(run, record, number)
    folder = run.settings.measurements_of(day, record.revision)
    measured = Measured.from_bytes(read_verified(folder, record.measurements_hash))
    if otherwise := meant_otherwise(run.settings, day, record):
        raise LedgerError(otherwise)
    mechanism = run.mechanism_of(day, record.revision)
    release = mechanism.estimate(measured)
    return release, files_beside(run.settings, day, record.revision, mechanism, release)


def _published(run: Run, day: date, staged: StagedStatement, days: Collection[date]) -> Publication:
    """Publish the bytes; a damaged file in their place is removed first, its damaged manifest, and what is
    damaged of the files beside it.
    """
    folder, signer = run.settings.published_folder, signer_of(run.settings, run.ledger, mending=days)

    def attempt() -> Publication:
        (done,) = publish_releases(folder, [staged], lambda known: _head(run, day, staged[0], known), signer)
        return done

    for _ in range(3):
        try:
            return attempt()
        except OtherBytes:
            if not open_storage(folder).change(lambda turn: _damage_removed(turn, day, *staged)):
                raise
    return attempt()


def _head(run: Run, day: date, staged: StagedRelease, known: str | None) -> str:
    """Asked while nobody else can publish or withdraw: the day may have been withdrawn or restated since."""
    record, _, digest = _recorded(run, day)
    if digest != staged.file_hash:
        raise LedgerError(f"revision {record.revision} of {day} was published meanwhile: publish it again")
    return run.ledger.head_after(run.stream, known)


def _damage_removed(turn: Transaction, day: date, staged: StagedRelease, statement: ReleaseStatement) -> bool:
    """Remove a file beside the listed one if its bytes are others than its name says; if they are right, the
    file itself likewise; if that is right, its manifest.

    Returns False where the catalogue does not list this release: nothing is removed.
    """
    catalogue = find_catalogue(turn)
    entry = catalogue.entry(day) if catalogue else None
    if entry is None or entry.withdrawn or entry.file_hash != staged.file_hash:
        return False
    for file, digest in statement.beside:
        if _is_damaged(turn, file, digest):
            place, _, last = file.rpartition("/")
            turn.remove(place, [last])
            return True
    if _is_damaged(turn, data_file(day, staged.file_hash), staged.file_hash):
        turn.remove(folder_of(DATA, day), [release_name(staged.file_hash)])
    else:
        turn.remove(MANIFESTS, [manifest_file(staged.file_hash).rpartition("/")[2]])
    return True


def _is_damaged(turn: Transaction, name: str, digest: str) -> bool:
    """Whether there is a file of this name with other bytes than of this hash."""
    try:
        return sha256(turn.read(name, LARGEST_RELEASE)).hexdigest() != digest
    except FileNotFoundError:
        return False
    except PublicationError:  # too large, or no plain file
        return True

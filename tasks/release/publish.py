"""Put staged releases into the published folder, and say so in the ledger."""

from collections.abc import Sequence

from optstream.catalogue import Publication, ReleaseStatement, StagedRelease, find_catalogue
from optstream.catalogue import publish as publish_releases
from optstream.errors import LedgerError, PublicationError
from optstream.ledger import ReleaseState
from tasks.release.day import PublishedError, Status, Work
from tasks.release.revise import check_later
from tasks.release.run import Run
from tasks.signing.sign import signer_of


def publish(run: Run, works: Sequence[Work]) -> list[Publication]:
    """Publish what was staged of these days, all at once or none; safe to repeat. The ledger is told after.

    Raises PublicationError (the releases are kept, and published by the next run) and LedgerError; of a day
    that is listed though its folder could not be synced, PublishedError.
    """
    folder = run.settings.published_folder
    signer = signer_of(run.settings, run.ledger)
    try:
        return list(
            publish_releases(
                folder, [_staged(work) for work in works], lambda known: _head(run, works, known), signer
            )
        )
    except PublicationError as error:
        if len(works) == 1 and isinstance(error.__cause__, OSError):
            _check_unlisted(run, works[0], error.__cause__)
        raise


def _check_unlisted(run: Run, work: Work, cause: OSError) -> None:
    """Raise PublishedError if readers have the day all the same: what failed was to make it durable."""
    catalogue = find_catalogue(run.settings.published_folder)
    entry = catalogue.entry(work.day) if catalogue else None
    if entry is not None and not entry.withdrawn and entry.file_hash == _staged(work)[0].file_hash:
        raise PublishedError(
            f"it is listed and readers have it, but a power cut may undo that ({cause.strerror}): mend the "
            "disk of the published folder; the next run completes and records it",
            entry.file,
        )


def record_published(run: Run, work: Work, publication: Publication) -> Work:
    """DRAWN -> PUBLISHED, after the catalogue lists the day; or that a vintage is listed."""
    entry = publication.entry
    if work.vintage and work.reservation:
        run.ledger.record_vintage_published(work.reservation, work.vintage, run.clock())
        told = f"revised estimate, vintage {work.vintage}, {entry.file_hash[:12]}; nothing was spent"
        return work.ended(Status.PUBLISHED, told, entry.file)
    run.ledger.record_published(
        run.stream, work.day.isoformat(), work.revision, run.clock(), work.reservation
    )
    return work.ended(
        Status.PUBLISHED, f"revision {work.revision}, release {entry.file_hash[:12]}", entry.file
    )


def _staged(work: Work) -> tuple[StagedRelease, ReleaseStatement]:
    if work.staged is None or work.statement is None:
        raise LedgerError("nothing is published that was not staged")
    return work.staged, work.statement


def _head(run: Run, works: Sequence[Work], known: str | None) -> str:
    """Asked under the publishers' lock: a day that was withdrawn meanwhile is not listed any more."""
    for work in works:
        (_check_may_be_revised if work.vintage else _check_may_be_listed)(run, work)
    return run.ledger.head_after(run.stream, known)


def _check_may_be_listed(run: Run, work: Work) -> None:
    """Raise LedgerError unless the ledger has these bytes of the day, DRAWN or, told before, PUBLISHED."""
    record = run.ledger.find(run.stream, work.day.isoformat(), work.revision)
    state = record.state if record else "not in it"
    if record is None or record.withdrawn or state not in (ReleaseState.DRAWN, ReleaseState.PUBLISHED):
        found = "withdrawn" if record and record.withdrawn else state
        raise LedgerError(f"the ledger does not have {work.day} as DRAWN, but {found}: nothing is published")
    if record.staged_hash != _staged(work)[0].file_hash:
        raise LedgerError(
            f"the ledger has {work.day} staged with other bytes: nothing is published; run it again"
        )


def _check_may_be_revised(run: Run, work: Work) -> None:
    """Raise LedgerError unless the ledger has these bytes as the newest vintage of a day that is out, and
    nobody has taken the day over: an owner that was thought dead shows nothing.
    """
    period = work.day.isoformat()
    record = run.ledger.find(run.stream, period, work.revision)
    known = run.ledger.vintages_of(run.stream, period, work.revision)
    if record is None or record.state is not ReleaseState.PUBLISHED or record.withdrawn or record.compromised:
        raise LedgerError(f"{work.day} is not published any more: its new estimate is not shown")
    if work.reservation is None or record.fencing_token != work.reservation.fencing_token:
        raise LedgerError(f"{work.day} was taken over by another run ({record.owner}): stop here")
    newest = known[-1] if known else None
    if newest is None or (newest.number, newest.staged_hash) != (work.vintage, _staged(work)[0].file_hash):
        raise LedgerError(f"the ledger has {work.day} staged with other bytes: nothing is published")
    check_later(run, work)

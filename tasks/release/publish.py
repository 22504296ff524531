"""Put staged releases into the published folder, and say so in the ledger."""

from collections.abc import Sequence

from optstream.catalogue import Publication, find_catalogue
from optstream.catalogue import publish as publish_releases
from optstream.errors import LedgerError, PublicationError
from optstream.ledger import ReleaseState
from tasks.release.day import Ended, Staged, Status
from tasks.release.due import check_later
from tasks.release.each import PublishedError
from tasks.release.guards.witness import bear_witness
from tasks.release.revise import StagedVintage
from tasks.release.run import Run
from tasks.signing.sign import signer_of


def publish(run: Run, days: Sequence[Staged]) -> list[Publication]:
    """Publish what was staged of these days, all at once or none; safe to repeat. The ledger is told after.

    The witness is told before readers have them: a ledger that forgot how a draw ended would draw anew, one
    that forgot a new estimate would give its number to another.

    Raises PublicationError (the releases are kept, and published by the next run) and LedgerError; of a day
    that is listed though its folder could not be synced, PublishedError.
    """

    def head(known: str | None) -> str:
        """Asked under the publishers' lock: a day that was withdrawn meanwhile is not listed any more."""
        for day in days:
            if isinstance(day, StagedVintage):
                _check_may_be_revised(run, day)
            else:
                _check_may_be_listed(run, day)
        return run.ledger.head_after(run.stream, known)

    bear_witness(run.settings, run.ledger)
    staged = [(day.staged, day.statement) for day in days]
    signer = signer_of(run.settings, run.ledger)
    try:
        return list(publish_releases(run.settings.published_folder, staged, head, signer))
    except PublicationError as error:
        if len(days) == 1 and isinstance(error.__cause__, OSError):
            _check_unlisted(run, days[0], error.__cause__)
        raise


def _check_unlisted(run: Run, day: Staged, cause: OSError) -> None:
    """Raise PublishedError if readers have the day all the same: what failed was to make it durable."""
    catalogue = find_catalogue(run.settings.published_folder)
    entry = catalogue.entry(day.day) if catalogue else None
    if entry is not None and not entry.withdrawn and entry.file_hash == day.staged.file_hash:
        raise PublishedError(
            f"it is listed and readers have it, but a power cut may undo that ({cause.strerror}): mend the "
            "disk of the published folder; the next run completes and records it",
            entry.file,
        )


def record_published(run: Run, day: Staged, publication: Publication) -> Ended:
    """DRAWN -> PUBLISHED, after the catalogue lists the day; or that it lists a new estimate."""
    entry = publication.entry
    if isinstance(day, StagedVintage):
        run.ledger.record_vintage_published(day.reservation, day.number, run.clock())
        told = f"revised estimate, vintage {day.number}, {entry.file_hash[:12]}; nothing was spent"
        return day.ended(Status.PUBLISHED, told, entry.file)
    run.ledger.record_published(run.stream, day.day.isoformat(), day.revision, run.clock(), day.reservation)
    return day.ended(Status.PUBLISHED, f"revision {day.revision}, release {entry.file_hash[:12]}", entry.file)


def _check_may_be_listed(run: Run, day: Staged) -> None:
    """Raise LedgerError unless the ledger has these bytes of the day, DRAWN or, told before, PUBLISHED."""
    record = run.ledger.find(run.stream, day.day.isoformat(), day.revision)
    state = record.state if record else "not in it"
    if record is None or record.withdrawn or state not in (ReleaseState.DRAWN, ReleaseState.PUBLISHED):
        found = "withdrawn" if record and record.withdrawn else state
        raise LedgerError(f"the ledger does not have {day.day} as DRAWN, but {found}: nothing is published")
    if record.staged_hash != day.staged.file_hash:
        raise LedgerError(
            f"the ledger has {day.day} staged with other bytes: nothing is published; run it again"
        )


def _check_may_be_revised(run: Run, day: StagedVintage) -> None:
    """Raise LedgerError unless the ledger has these bytes as the newest vintage of a published day, and
    nobody has taken the day over: an owner that was thought dead shows nothing.
    """
    period = day.day.isoformat()
    record = run.ledger.find(run.stream, period, day.revision)
    known = run.ledger.vintages_of(run.stream, period, day.revision)
    if record is None or record.state is not ReleaseState.PUBLISHED or record.withdrawn or record.compromised:
        raise LedgerError(f"{day.day} is not published any more: its new estimate is not shown")
    if record.fencing_token != day.reservation.fencing_token:
        raise LedgerError(f"{day.day} was taken over by another run ({record.owner}): stop here")
    newest = known[-1] if known else None
    if newest is None or (newest.number, newest.staged_hash) != (day.number, day.staged.file_hash):
        raise LedgerError(f"the ledger has {day.day} staged with other bytes: nothing is published")
    check_later(run, day.due)

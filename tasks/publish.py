"""Put a staged release into the published folder, and say so in the ledger."""

from functools import partial

from optstream.catalogue import publish as publish_release
from optstream.errors import LedgerError
from tasks.estimate import drawn_record
from tasks.release import Run, renewed
from tasks.work import Status, Work


def publish(run: Run, work: Work) -> Work:
    """Publish the day's staged bytes; safe to repeat. The catalogue is replaced before PUBLISHED is recorded.

    Raises PublicationError (the release is kept, and published by the next run) and LedgerError.
    """
    if work.staged is None or work.statement is None:
        raise LedgerError("nothing is published that was not staged")
    work = renewed(run, work)
    drawn_record(run, work)
    settings = run.settings
    publication = publish_release(
        settings.published_folder, work.staged, work.statement, partial(_head_after, run, work)
    )
    run.ledger.record_published(
        run.stream, work.day.isoformat(), work.revision, run.clock(), work.reservation
    )
    entry = publication.entry
    return work.ended(
        Status.PUBLISHED, f"revision {work.revision}, release {entry.file_hash[:12]}", entry.file
    )


def _head_after(run: Run, work: Work, known: str | None) -> str:
    """Asked under the publishers' lock: a day that was withdrawn meanwhile is not listed any more."""
    drawn_record(run, work)
    return run.ledger.head_after(run.stream, known)

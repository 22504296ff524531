"""Put a staged release into the published folder, and say so in the ledger."""

from functools import partial

from optstream.catalogue import publish as publish_release
from optstream.errors import LedgerError
from tasks.estimate import drawn_record
from tasks.release import REVISION, Run
from tasks.work import Status, Work


def publish(run: Run, work: Work) -> Work:
    """Publish the day's staged bytes; safe to repeat. The catalogue is replaced before PUBLISHED is recorded.

    Raises PublicationError (the release is kept, and published by the next run) and LedgerError.
    """
    if work.staged is None or work.statement is None:
        raise LedgerError("nothing is published that was not staged")
    drawn_record(run, work)
    settings = run.settings
    publication = publish_release(
        settings.published_folder, work.staged, work.statement, partial(run.ledger.head_after, run.stream)
    )
    run.ledger.record_published(run.stream, work.day.isoformat(), REVISION, run.clock(), work.reservation)
    entry = publication.entry
    return work.ended(Status.PUBLISHED, f"revision {REVISION}, release {entry.file_hash[:12]}", entry.file)

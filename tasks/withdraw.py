"""Take days back: out of the catalogue, or given up before they came there. They stay charged."""

from dataclasses import replace

from optstream.catalogue import find_catalogue
from optstream.catalogue import withdraw as withdraw_published
from optstream.errors import LedgerError
from optstream.ledger import ReleaseRecord, ReleaseState
from tasks.release import Run
from tasks.trusted_store import destroy_raw
from tasks.work import Status, Work


def withdraw(run: Run, work: Work, reason: str) -> Work:
    """Withdraw every release of a day: what is listed becomes a tombstone, what was not published is VOID.

    The ledger is told first, so that a catalogue which still lists the day after a crash is found by
    `ledger verify`; the same call completes the work. Nothing is refunded, and no raw state is left.
    Raises LedgerError for a day that was never reserved, PublicationError if the folder cannot be written.
    """
    latest = run.ledger.latest(run.stream, work.day.isoformat())
    if latest is None:
        raise LedgerError(f"{work.day} was never released: there is nothing to withdraw; check the date")
    records = [_told(run, work, revision, reason) for revision in range(latest.revision + 1)]
    work = replace(work, revision=latest.revision)
    catalogue = find_catalogue(run.settings.published_folder)
    entry = catalogue.entry(work.day) if catalogue else None
    if entry is None:
        return work.ended(Status.VOID, "given up before it was published; it stays charged")
    if records[entry.revision].state is not ReleaseState.PUBLISHED:
        raise LedgerError(
            f"the catalogue lists {work.day} with revision {entry.revision}, and the ledger does not have that "
            "as PUBLISHED: run the day first, which completes its publication"
        )
    done = withdraw_published(
        run.settings.published_folder,
        work.day,
        entry.revision,
        run.ledger.head(run.stream),
        stream=run.stream,
    )
    return work.ended(Status.WITHDRAWN, done.in_words())


def _told(run: Run, work: Work, revision: int, reason: str) -> ReleaseRecord:
    """Tell the ledger of one revision; return its record as it is now."""
    period = work.day.isoformat()
    destroy_raw(run.settings.measurements_of(work.day, revision))
    run.ledger.withdraw(run.stream, period, revision, reason, run.clock())
    record = run.ledger.find(run.stream, period, revision)
    assert record is not None
    return record

"""Take days back: out of the catalogue, or given up before they came there. They stay charged."""

from dataclasses import replace
from functools import partial

from optstream.catalogue import Entry
from optstream.catalogue import withdraw as withdraw_published
from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from tasks.release import Run
from tasks.trusted_store import destroy_raw
from tasks.work import Status, Work


def withdraw(run: Run, work: Work, reason: str) -> Work:
    """Withdraw every release of a day: what is listed becomes a tombstone, what was not published is VOID.

    The ledger is told first, under the publishers' lock; a crash after that leaves a listed day that the
    ledger calls withdrawn, which `ledger verify` finds, and the same call completes the work. Nothing is
    refunded, and no raw state is left. Raises LedgerError for a day that was never reserved and where
    another run holds it, PublicationError if the folder cannot be written.
    """
    latest = run.ledger.latest(run.stream, work.day.isoformat())
    if latest is None:
        raise LedgerError(f"{work.day} was never released: there is nothing to withdraw; check the date")
    undrawn = latest.state in (ReleaseState.RESERVED, ReleaseState.DRAWN)
    if undrawn and latest.lease_until > run.clock():
        raise LedgerError(
            f"another run ({latest.owner}) holds {work.day} until {latest.lease_until:%Y-%m-%d %H:%M %Z}: "
            "stop it, or wait, and withdraw the day after that"
        )
    done = withdraw_published(
        run.settings.published_folder,
        work.day,
        partial(_tell, run, work, latest.revision, reason),
        stream=run.stream,
    )
    status = Status.WITHDRAWN if done.entry else Status.VOID
    return replace(work, revision=latest.revision).ended(status, done.in_words())


def _tell(run: Run, work: Work, latest: int, reason: str, entry: Entry | None, known: str | None) -> str:
    """Tell the ledger of every revision; return its head."""
    period = work.day.isoformat()
    if entry is not None and not entry.withdrawn:
        # listed, and its run died before the ledger heard of it: published it is
        run.ledger.record_published(run.stream, period, entry.revision, run.clock())
    for revision in range(latest + 1):
        destroy_raw(run.settings.measurements_of(work.day, revision))
        run.ledger.withdraw(run.stream, period, revision, reason, run.clock())
    return run.ledger.head_after(run.stream, known)

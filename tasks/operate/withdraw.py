"""Take days back: out of the catalogue, or given up before they came there. They stay charged."""

from collections.abc import Collection
from datetime import date
from functools import partial

from optstream.catalogue import Entry
from optstream.catalogue import withdraw as withdraw_published
from optstream.errors import LedgerError
from optstream.ledger import Key, ReleaseRecord, ReleaseState
from tasks.operate.keys import signer_of
from tasks.release.run import Ended, Requested, Run, Status
from tasks.release.witness import bear_witness, refuse_older
from tasks.trusted.files import destroy_raw


def withdraw(run: Run, requested: Requested, reason: str, days: Collection[date] = ()) -> Ended:
    """Withdraw every release of a day, in the ledger first; repeated after a crash, it completes the work."""
    day = requested.day
    refuse_older(run.settings, run.ledger)
    latest = _free(run, day)  # before a folder is made for it
    done = withdraw_published(
        run.settings.published_folder,
        day,
        partial(_record_withdrawal, run, day, reason),
        stream=run.stream,
        value_column=run.settings.published.value,
        last_revision=latest.revision,
        signer=signer_of(run.settings, run.ledger, mending={day, *days}),
    )
    bear_witness(run.settings, run.ledger)
    if done.entry is None and latest.state is ReleaseState.PUBLISHED:
        words = "withdrawn; the catalogue lists nothing of it, and it stays charged"
        return requested.ended(Status.WITHDRAWN, words)
    status = Status.WITHDRAWN if done.entry else Status.VOID
    return requested.ended(status, done.in_words())


def _free(run: Run, day: date) -> ReleaseRecord:
    """The day's newest release. Raises LedgerError if there is none, or if another run holds it."""
    latest = run.ledger.latest(run.stream, day.isoformat())
    if latest is None:
        raise LedgerError(f"{day} was never released: there is nothing to withdraw; check the date")
    if latest.state.is_under_way and latest.lease_until > run.ledger.lease_time(run.clock()):
        raise LedgerError(
            f"another run ({latest.owner}) holds {day} until {latest.lease_until:%Y-%m-%d %H:%M %Z}: "
            "stop it, or wait, and withdraw the day after that; if it is gone, "
            f"`optstream ledger release-lease {day}` frees the day"
        )
    return latest


def _record_withdrawal(run: Run, day: date, reason: str, entry: Entry | None, known: str | None) -> str:
    """While nobody can publish the day, record every revision's withdrawal in the ledger; return its head."""
    run.ledger.head(run.stream, known)  # an older copy of the ledger is refused before it is written
    period, latest = day.isoformat(), _free(run, day)
    if entry is not None and not entry.withdrawn:
        record = run.ledger.find(Key(run.stream, period, entry.revision))
        if record is not None and record.state is ReleaseState.DRAWN:
            # listed, and its run died before the ledger heard of it: published it is
            run.ledger.record_published(Key(run.stream, period, entry.revision), run.clock())
    for revision in range(latest.revision + 1):
        run.ledger.withdraw(Key(run.stream, period, revision), reason, run.clock())
        destroy_raw(run.settings.measurements_of(day, revision))
    return run.ledger.head(run.stream, known)

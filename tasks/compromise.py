"""Noise that others know: the releases that it was drawn for, and those that went on from their raw state."""

from datetime import date, datetime

from optstream.errors import LedgerError
from optstream.ledger import Ledger, ReleaseRecord, ReleaseState
from optstream.measurement.grouping import GROUPER
from tasks.settings import Settings
from tasks.trusted_store import destroy_raw


def compromise(settings: Settings, ledger: Ledger, day: date, reason: str, now: datetime) -> list[date]:
    """Record that the noise of a day is known, and of the days that shared it; return all of them, rising.

    PeGaSus goes on with the threshold of an open group, noise included: a day that follows without a gap may
    rest on the day before it, so it counts as known too. Raw state that is left is destroyed. Every
    window that one of these releases charges has lost everything, for ever. Raises LedgerError for a day
    that was never released.
    """
    stream = settings.stream.name
    records = [record for record in ledger.releases(stream) if record.state is not ReleaseState.RESERVED]
    own = [record for record in records if record.period == day.isoformat()]
    if not own:
        raise LedgerError(f"nothing was drawn for {day}: no noise of it can be known; check the date")
    known = [*own, *_followers(own[0], [record for record in records if record.revision == 0])]
    for record in known:
        ledger.compromise(stream, record.period, record.revision, reason, now)
        destroy_raw(settings.measurements_of(date.fromisoformat(record.period), record.revision))
    return sorted({date.fromisoformat(record.period) for record in known})


def _followers(first: ReleaseRecord, records: list[ReleaseRecord]) -> list[ReleaseRecord]:
    """The releases after `first`, without a gap, as long as groups may be open at their border."""
    found, before = list[ReleaseRecord](), first
    for record in sorted(records, key=lambda one: one.first_step):
        follows = record.first_step == before.first_step + before.n_steps
        if follows and _has_groups(before) and _has_groups(record):
            found.append(record)
            before = record
    return found


def _has_groups(record: ReleaseRecord) -> bool:
    return any(spend.stage == GROUPER for spend in record.spends)

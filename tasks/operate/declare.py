"""What an operator declares, permanently: another guarantee, or noise that became known.

The ledger has it first, and the witness last; what was charged stays charged.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from itertools import accumulate, islice, repeat

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Ledger, ReleaseRecord, ReleaseState
from optstream.measurement.grouping import GROUPER, open_since
from optstream.stream import Hour, Measured, period_from
from tasks.config import Settings
from tasks.ledger.show import in_words
from tasks.plan.backfill import priced
from tasks.release.run import terms_of
from tasks.release.witness import bear_witness, refuse_older
from tasks.trusted.files import destroy_raw, read_verified


def declare(settings: Settings, ledger: Ledger, reason: str, now: datetime) -> None:
    """Make the configuration's the privacy guarantee of the days to come, permanently, or LedgerError."""
    refuse_older(settings, ledger)
    ledger.amend(terms_of(settings), reason, now)
    bear_witness(settings, ledger, "the amendment is declared, permanently, and ")


def rehearse(settings: Settings, ledger: Ledger) -> list[str]:
    """Return in lines which days would wait under the new guarantee, as `reserve` would judge them."""
    stream, calendar, amended = settings.stream.name, settings.calendar, terms_of(settings).budget_model
    ledger.refuse_amendment(terms_of(settings))
    terms = ledger.terms(stream)
    changed = ", ".join(terms.differing(terms_of(settings)) if terms else ())
    lines, first = [f"{stream}: {changed} would change; nothing was declared"], None
    last = ledger.last_release(stream)
    if terms is None or last is None:
        return lines
    day = calendar.period_from_step(last.first_step)
    later = accumulate(repeat(day), lambda day, _: calendar.after(day))
    for day, plan, judged in priced(settings, ledger, islice(later, 1, None), terms.grant, amended):
        broken = next((one for one in judged if one.is_broken), None)
        if broken is not None:
            lines.append(f"{day} would wait: {in_words(broken)}")
        else:
            first = first or day
        # with the guarantee in force alone in reach, every later day is judged as this one
        if len(ledger.judge_plan(terms.grant, plan, amended)) == 1:
            break
    if first is not None:
        kind = "hour" if isinstance(first, Hour) else "day"
        lines.append(f"{first} is the first {kind} that could be released under the new guarantee")
    return lines


# Known noise, and the releases that share it: PeGaSus' open groups alone (Lemma 9, docs/privacy.md).


def compromise(settings: Settings, ledger: Ledger, day: date, reason: str, now: datetime) -> list[date]:
    """Record that the noise of a day is known, and of the days that shared it, permanently; return all."""
    refuse_older(settings, ledger)
    known = dict[tuple[str, int], ReleaseRecord]()
    # looked at again after the last mark: a draw that began before a mark is found, one that begins after it
    # is refused, or goes on from nothing (`tasks.release.draw`)
    while more := [one for one in _sharing(settings, ledger, day) if (one.period, one.revision) not in known]:
        for record in more:
            ledger.compromise(record.key, reason, now)
            destroy_raw(settings.measurements_of(period_from(record.period), record.revision))
            known[record.period, record.revision] = record
    bear_witness(settings, ledger, "the noise is marked as known, permanently, and ")
    return sorted({period_from(record.period) for record in known.values()})


def _sharing(settings: Settings, ledger: Ledger, day: date) -> list[ReleaseRecord]:
    """The releases of a day, and those that share noise with its first."""
    records = [record for record in ledger.releases(settings.stream.name) if _was_begun(record)]
    own = [record for record in records if record.period == day.isoformat()]
    if not own:
        raise LedgerError(f"nothing was drawn for {day}: no noise of it can be known; check the date")
    if not _has_groups(own[0]):
        return own
    # a restatement has groups of its own, which go on from nothing and into nothing
    first = [record for record in records if record.revision == 0 and _has_groups(record)]
    return [*_before(settings, own[0], first), *own, *_after(settings, own[0], first)]


def _was_begun(record: ReleaseRecord) -> bool:
    """Whether noise was drawn for it, by its owner or one that died, or it was found so and marked."""
    begun = record.state is not ReleaseState.RESERVED or record.drawing or record.redraws > 0
    return begun or record.compromised is not None


def _has_groups(record: ReleaseRecord) -> bool:
    return any(spend.stage == GROUPER for spend in record.spends)


def _before(
    settings: Settings, leaked: ReleaseRecord, records: Sequence[ReleaseRecord]
) -> list[ReleaseRecord]:
    """The releases before the leaked one with steps of a group that ran into it."""
    ending = {record.end: record for record in records}
    found, record = list[ReleaseRecord](), ending.get(leaked.first_step)
    while record is not None:
        since = _open_since(settings, record)
        if since is not None:
            # exact, however many days the group goes back: groups are named by their first step
            earliest = min(since, default=record.end)
            return [*found, *(one for one in records if earliest < one.end <= record.end)]
        found.append(record)
        record = ending.get(record.first_step)
    return found


def _after(
    settings: Settings, leaked: ReleaseRecord, records: Sequence[ReleaseRecord]
) -> list[ReleaseRecord]:
    """The releases after the leaked one with steps that share a threshold from before its end."""
    beginning = {record.first_step: record for record in records}
    found, record = list[ReleaseRecord](), leaked
    while after := beginning.get(record.end):
        since = _open_since(settings, record)
        if since is not None and min(since, default=leaked.end) >= leaked.end:
            break
        found.append(after)
        record = after
    return found


def _open_since(settings: Settings, record: ReleaseRecord) -> list[int] | None:
    """The first steps of the groups that a release left open; None where its measurements do not tell."""
    if record.measurements_hash is None:
        # what was drawn and not recorded left no raw state: the next day began groups of its own
        return []
    folder = settings.measurements_of(period_from(record.period), record.revision)
    with suppress(LedgerError, ParameterError, OSError, KeyError, TypeError):
        return open_since(Measured.from_bytes(read_verified(folder, record.measurements_hash)))
    return None

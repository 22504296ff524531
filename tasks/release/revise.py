"""New estimates of days that are out, from measurements that were charged already. Nothing is drawn here.

What is smoothed: a day's measurements and those of the days after it. An amendment, a restatement, a
withdrawal, compromised noise, or a day that is drawn and not out yet stops it there; a day that was never
drawn is passed over.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import takewhile

from optstream.catalogue import find_catalogue, finish_listing, read_staged
from optstream.errors import HeldError, LedgerError, PublicationError
from optstream.ledger import ReleaseOutline, ReleaseRecord, ReleaseState, Vintage
from optstream.mechanisms import HistoryInformedTree, Release
from optstream.stream import Measured
from tasks.release.carry_over import rests_on_known_noise
from tasks.release.day import Ended, Estimated, Lease, Stage, Staged, Status
from tasks.release.estimate import keep_bytes
from tasks.release.records.rows import published_rows
from tasks.release.records.statement import statement_of
from tasks.release.run import Run
from tasks.storage.private_files import read_verified

FOR_EVER = 2**62
"""A step after all others."""
MARGIN = timedelta(days=31)
"""How far before the newest draw the newest day may lie that is out: held, void or failed days between."""

LONGEST = timedelta(days=366)
"""For so long at most a day gets new estimates: the most that `release.revise_days` may be."""

MOST_KEPT = 32
"""Days' measurements in memory, half a megabyte each on 13 nodes."""

Stored = Callable[[date, str | None], Measured]
"""Gives a day's measurements by their hash."""
Days = Mapping[date, Sequence[ReleaseOutline]]
"""The releases of each day, by revision; days rising."""


@dataclass(frozen=True)
class Due(Stage):
    """A published day that is due a new estimate.

    later: the days after it that the estimate is made of, each with the hash of its measurements. basis: what
    identifies these and the day's own.
    """

    basis: str
    later: tuple[tuple[date, str], ...]


@dataclass(frozen=True)
class Revised(Estimated):
    """A new estimate as rows, not yet held against its contract. number: its vintage."""

    due: Due
    number: int


@dataclass(frozen=True)
class StagedVintage(Staged):
    """A new estimate as the bytes to be published. number: its vintage."""

    due: Due
    number: int


def due(run: Run) -> list[Due]:
    """The days whose estimate is older than what is known of them: of the `release.revise_days` before the
    newest that is out, those whose newest vintage was made of fewer measurements than there are by now.
    """
    n_days = run.settings.revise_days
    newest = run.ledger.drawn_before(run.stream, FOR_EVER) if n_days else None
    if newest is None:
        return []
    first = date.fromisoformat(newest.period) - timedelta(days=n_days) - MARGIN
    steps = range(run.settings.calendar.first_step(first), newest.first_step + 1)
    return list(_due(run, _days_at(run, steps), n_days))


def _days_at(run: Run, steps: range) -> Days:
    """The days that begin at one of these steps and have a release."""
    days: dict[date, list[ReleaseOutline]] = {}
    for one in run.ledger.outlines(run.stream, steps):
        days.setdefault(date.fromisoformat(one.period), []).append(one)
    return days


def _due(run: Run, days: Days, n_days: int) -> Iterator[Due]:
    promise = run.ledger.guarantee_number(run.stream)
    out = [day for day, found in days.items() if _is_out(found, promise)]
    for day in out:
        if not 0 < (out[-1] - day).days <= n_days:
            continue
        later = tuple(_smoothed(days, day, promise))
        if not later:
            continue
        basis = _basis(day, days[day][-1].measurements_hash, later)
        known = run.ledger.vintages_of(run.stream, day.isoformat(), 0)
        if not known or (known[-1].basis, known[-1].published) != (basis, True):
            yield Due(day, 0, basis, later)


def _basis(day: date, digest: str | None, later: Sequence[tuple[date, str]]) -> str:
    """What identifies the measurements that an estimate is made of: the day's own, and those after it."""
    told = json.dumps([[str(one), known] for one, known in ((day, digest or ""), *later)])
    return hashlib.sha256(told.encode()).hexdigest()


def _smoothed(days: Days, day: date, promise: int) -> Iterator[tuple[date, str]]:
    """The days after this one, with the hashes of their measurements, up to the first that stops it."""
    never_drawn = (ReleaseState.RESERVED, ReleaseState.VOID)
    after = ((one, found) for one, found in days.items() if one > day)
    drawn = ((one, found) for one, found in after if len(found) > 1 or found[0].state not in never_drawn)
    for one, found in takewhile(lambda entry: _is_out(entry[1], promise), drawn):
        yield one, found[0].measurements_hash or ""


def _is_out(found: Sequence[ReleaseOutline], promise: int) -> bool:
    """Whether a day was released once, under this promise, and readers have it as it was."""
    (first, *again) = found
    clean = not again and first.withdrawn is None and first.compromised is None
    return clean and first.state is ReleaseState.PUBLISHED and first.amendment == promise


def check_later(run: Run, due: Due) -> None:
    """Raise LedgerError unless all days that the new estimate is made of are out as they were."""
    calendar = run.settings.calendar
    steps = range(calendar.first_step(due.day), calendar.first_step(due.later[-1][0]) + 1)
    now = set(_smoothed(_days_at(run, steps), due.day, run.ledger.guarantee_number(run.stream)))
    gone = [day for day, digest in due.later if (day, digest) not in now]
    if gone:
        raise LedgerError(
            f"{gone[0]} was taken back or restated, or its noise became known: the new estimate of "
            f"{due.day} that rests on it is not shown; the next run estimates it anew"
        )


def record_listed(run: Run) -> None:
    """Finish new estimates that the catalogue lists, and whose run died before it could: their day may never
    be due again. What they replaced leaves data/, and the ledger is told.
    """
    pending = run.ledger.vintages(run.stream, unpublished=True)
    catalogue = find_catalogue(run.settings.published_folder) if pending else None
    if catalogue is None:
        return
    for (period, revision), vintages in pending.items():
        one_day = date.fromisoformat(period)
        entry = catalogue.entry(one_day)
        for one in vintages:
            key = (revision, one.number, one.staged_hash)
            if entry is None or (entry.revision, entry.vintage, entry.file_hash) != key:
                continue
            # held by a live run, which tells by itself; or no more what readers have
            with suppress(LedgerError, PublicationError, OSError):
                held = run.ledger.revise(run.stream, period, revision, run.owner, run.clock(), run.lease)
                finish_listing(run.settings.published_folder, one_day)
                run.ledger.record_vintage_published(held, one.number, run.clock())


def measurements_of(run: Run) -> Stored:
    """What gives a day's measurements as the ledger recorded them by their hash, each read once: the days of
    a night are smoothed with those after them. It raises LedgerError if they are gone or differ.
    """

    def read(day: date, digest: str | None) -> Measured:
        return Measured.from_bytes(read_verified(run.settings.measurements_of(day, 0), digest))

    return lru_cache(maxsize=MOST_KEPT)(read)


def revise(run: Run, stored: Stored, due: Due) -> Revised | StagedVintage | Ended:
    """Hold the day and estimate it anew; or take up what was staged of it before. Draws and costs nothing."""
    settings, day, revision, now = run.settings, due.day, due.revision, run.clock()
    try:
        held = run.ledger.revise(run.stream, day.isoformat(), revision, run.owner, now, run.lease)
    except HeldError:
        return due.ended(Status.UNCHANGED, "another run estimates it anew")
    known = run.ledger.vintages_of(run.stream, day.isoformat(), revision)
    same = bool(known) and known[-1].basis == due.basis
    if same and known[-1].published:
        return due.ended(Status.UNCHANGED, "estimated anew by another run")
    rests_on = _rests_on(run, stored, due)
    if isinstance(rests_on, str):
        return due.ended(Status.UNCHANGED, rests_on)
    lease = Lease(held, now)
    if same:
        with suppress(LedgerError):
            # staged, and its run died: readers may have it already
            kept = read_verified(settings.staging_of(day, revision), known[-1].staged_hash)
            return StagedVintage(day, revision, lease, *read_staged(kept), due, known[-1].number)
    # a function of the stored measurements and the configuration alone
    mechanism, own, later = rests_on
    release, number = mechanism.revise(own, later), known[-1].number + 1 if known else 1
    rows = published_rows(settings, day, release, revision, number)
    statement = statement_of(settings, day, release, revision, number)
    return Revised(day, revision, lease, rows, statement, due, number)


def keep_vintage(run: Run, day: Revised) -> StagedVintage:
    """Keep the bytes to be published, and tell the ledger their hash."""
    staged = keep_bytes(run, day)
    vintage = Vintage(day.number, day.due.basis, staged.file_hash, staged.name, published=False)
    run.ledger.record_vintage(day.reservation, vintage, run.clock())
    return StagedVintage(day.day, day.revision, day.lease, staged, day.statement, day.due, day.number)


def _rests_on(
    run: Run, stored: Stored, due: Due
) -> tuple[HistoryInformedTree, Measured, Sequence[Measured]] | str:
    """The mechanism, what it measured on the day and after it; or in words why the estimate stays."""
    record = run.ledger.find(run.stream, due.day.isoformat(), due.revision)
    mechanism = run.mechanism_of(due.day, due.revision)
    own = stored(due.day, record.measurements_hash if record else None)
    if not isinstance(mechanism, HistoryInformedTree) or not mechanism.measured(own):
        return "it was measured by another mechanism: its estimate stays"
    after = (stored(one, digest) for one, digest in due.later)
    later = list(takewhile(mechanism.measured, after))
    if not later:
        return "what came after was measured by another mechanism"
    if rests_on_known_noise(run.settings, run.ledger, later[-1].state, later[-1].first_step):
        return "what is remembered rests on noise that others know"
    return mechanism, own, later


def estimated_again(run: Run, record: ReleaseRecord, number: int) -> Release:
    """A vintage that was published before, from the same measurements. Draws and costs nothing.

    Raises LedgerError where they are gone, or a day that it was made of was taken back or restated since.
    """
    day = date.fromisoformat(record.period)
    known = run.ledger.vintages_of(run.stream, record.period, record.revision)
    (basis,) = (one.basis for one in known if one.number == number)
    calendar = run.settings.calendar
    last = calendar.first_step(day + LONGEST + MARGIN)
    days = _days_at(run, range(calendar.first_step(day), last))
    after = tuple(_smoothed(days, day, run.ledger.guarantee_number(run.stream)))
    spans = (after[:length] for length in range(1, len(after) + 1))
    later = next((one for one in spans if _basis(day, record.measurements_hash, one) == basis), None)
    if later is None:
        raise LedgerError(
            f"a day that the new estimate of {day} was made of was taken back or restated since"
        )
    rests_on = _rests_on(run, measurements_of(run), Due(day, record.revision, basis, later))
    if isinstance(rests_on, str):
        raise LedgerError(rests_on)
    mechanism, own, smoothed = rests_on
    return mechanism.revise(own, smoothed)

"""New estimates of published days, from measurements that were charged already. Nothing is drawn here."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import takewhile

from optstream.catalogue import find_catalogue, finish_listing
from optstream.errors import HeldError, LedgerError, OptStreamError, PublicationError
from optstream.history.filter import NEAR_DAYS
from optstream.ledger import Key, ReleaseOutline, ReleaseRecord, ReleaseState, Vintage
from optstream.stream import Measured, day_of, period_from
from tasks.release.estimate import keep_bytes
from tasks.release.mechanism import estimate_of, rests_on_known_noise
from tasks.release.run import Ended, Estimated, Lease, Run, Stage, Staged, Status
from tasks.release.statement import Estimate, changed_since_draw, described, read_kept

# Which published days are due a new estimate, by their measurements and those of the days after.
# An amendment, a change of the hierarchy that is more than new codes, a restatement, a withdrawal, known
# noise, or a day that is drawn and not published stops it; a day that was never drawn is passed over.

AFTER_ALL = 2**62  # a step after all others
MARGIN = timedelta(days=31)
"""How far before the newest draw the newest published day may lie: held, void or failed days between."""

LONGEST = timedelta(days=366)
"""For so long at most a day gets new estimates: the most that `release.revise_days` may be."""

Days = Mapping[date, Sequence[ReleaseOutline]]  # the releases of each day, by revision; days rising


@dataclass(frozen=True)
class Due(Stage):
    """A published day that is due a new estimate of its and later measurements, which `basis` names."""

    basis: str
    later: tuple[tuple[date, str], ...]

    @property
    def last(self) -> date:
        """The last day that the estimate is made of."""
        return self.later[-1][0] if self.later else self.day


def due(run: Run, asked: Iterable[date] = ()) -> list[Due]:
    """Return the asked or newest days with more measurements after them than their newest vintage has."""
    n_days, calendar = run.settings.revise_days, run.settings.calendar
    newest = run.ledger.drawn_before(run.stream, AFTER_ALL) if n_days else None
    if newest is None:
        return []
    reach, last = timedelta(days=n_days), day_of(period_from(newest.period))
    looked_at = {day_of(day) - timedelta(days=ago) for day in asked for ago in range(n_days + 1)}
    first = min({last - reach - MARGIN, *looked_at})
    steps = range(calendar.steps_over(first, first).start, newest.first_step + 1)
    days, known = _days_at(run, steps), run.ledger.vintages(run.stream, steps=steps)
    guarantee = run.ledger.guarantee_number(run.stream)
    published = [day for day, found in days.items() if _is_as_published(found, guarantee)]
    waiting = list[Due]()
    for day in published:
        if not (day_of(day) in looked_at or day_of(day) >= day_of(published[-1]) - reach):
            continue
        later = tuple(_smoothed(run, days, day, guarantee, day_of(day) + reach))
        vintages = known.get((day.isoformat(), 0), ())
        # where all that a vintage was made of was taken back, the first estimate takes its place
        if not later and not any(one.published for one in vintages):
            continue
        basis = _basis(day, days[day][-1].measurements_hash, later)
        if not vintages or (vintages[-1].basis, vintages[-1].published) != (basis, True):
            waiting.append(Due(day, 0, basis, later))
    return waiting


def _days_at(run: Run, steps: range) -> Days:
    """The days that begin at one of these steps and have a release."""
    days: dict[date, list[ReleaseOutline]] = {}
    for one in run.ledger.outlines(run.stream, steps):
        days.setdefault(period_from(one.period), []).append(one)
    return days


def _basis(day: date, digest: str | None, later: Sequence[tuple[date, str]]) -> str:
    """What identifies the measurements that an estimate is made of: the day's own, and those after it."""
    text = json.dumps([[str(one), known] for one, known in ((day, digest or ""), *later)])
    return sha256(text.encode()).hexdigest()


def _smoothed(
    run: Run, days: Days, day: date, guarantee: int, until: date = date.max
) -> Iterator[tuple[date, str]]:
    """The days after this one, with the hashes of their measurements, up to the first that stops it."""
    hierarchy = run.settings.dated_hierarchy
    never_drawn = (ReleaseState.RESERVED, ReleaseState.VOID)
    for one, found in days.items():
        if one <= day or day_of(one) > until or (len(found) == 1 and found[0].state in never_drawn):
            continue
        if not _is_as_published(found, guarantee):
            return
        if hierarchy.changes_between(day, one) and not hierarchy.map_between(day, one).is_renaming:
            return
        yield one, found[0].measurements_hash or ""


def _is_as_published(found: Sequence[ReleaseOutline], guarantee: int) -> bool:
    """Whether a day was released once, under this guarantee, and readers have it as it was."""
    (first, *again) = found
    clean = not again and first.withdrawn is None and first.compromised is None
    return clean and first.state is ReleaseState.PUBLISHED and first.amendment == guarantee


def check_later(run: Run, due: Due) -> None:
    """Raise LedgerError unless all days that the new estimate is made of are published as they were."""
    first_step = run.settings.calendar.first_step
    days = _days_at(run, range(first_step(due.day), first_step(due.last) + 1))
    now = set(_smoothed(run, days, due.day, run.ledger.guarantee_number(run.stream)))
    gone = [day for day, digest in due.later if (day, digest) not in now]
    if gone:
        raise LedgerError(
            f"{gone[0]} was taken back or restated, or its noise became known: the new estimate of "
            f"{due.day} that rests on it is not shown; the next run estimates it again"
        )


# The new estimate of a day that is due one.

MOST_KEPT = 32  # days' measurements in memory, without what they remember of the days before
Stored = Callable[[date, str | None, bool], Measured]
"""Gives a day's measurements by their hash, with or without their memory of earlier days."""


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


def record_listed(run: Run) -> None:
    """Finish new estimates that the catalogue lists, and whose run died: their day may never be due again."""
    pending = run.ledger.vintages(run.stream, unpublished=True)
    catalogue = find_catalogue(run.settings.published_folder) if pending else None
    if catalogue is None:
        return
    for (period, revision), vintages in pending.items():
        one_day = period_from(period)
        entry = catalogue.entry(one_day)
        for one in vintages:
            key = (revision, one.number, one.staged_hash)
            if entry is None or (entry.revision, entry.vintage, entry.file_hash) != key:
                continue
            # held by a live run, which records it; or readers have another one by now
            with suppress(LedgerError, PublicationError, OSError):
                held = run.ledger.revise(Key(run.stream, period, revision), run.owner, run.clock(), run.lease)
                finish_listing(run.settings.published_folder, one_day)
                run.ledger.record_vintage_published(held, one.number, run.clock())


def measurements_of(run: Run) -> Stored:
    """What gives a day's measurements as the ledger recorded them, each read once."""

    @lru_cache(maxsize=2)  # the newest, and one day's own where its measurements are published
    def whole(day: date, digest: str | None) -> Measured:
        return run.measured(day, 0, digest)

    @lru_cache(maxsize=MOST_KEPT)
    def alone(day: date, digest: str | None) -> Measured:
        return replace(run.measured(day, 0, digest), state=None)

    return lambda day, digest, is_whole: whole(day, digest) if is_whole else alone(day, digest)


def revise(run: Run, stored: Stored, due: Due) -> Revised | StagedVintage | Ended:
    """Hold the day and estimate it again, or take up a staged estimate. Draws and costs nothing."""
    day, revision, now = due.day, due.revision, run.clock()
    try:
        held = run.ledger.revise(run.key(day, revision), run.owner, now, run.lease)
    except HeldError:
        return due.ended(Status.UNCHANGED, "another run estimates it again")
    known = run.ledger.vintages_of(run.key(day, revision))
    same = bool(known) and known[-1].basis == due.basis
    if same and known[-1].published:
        return due.ended(Status.UNCHANGED, "estimated again by another run")
    estimated = _new_estimate(run, stored, due, run.record(day, revision))
    if isinstance(estimated, str):
        return due.ended(Status.UNCHANGED, estimated)
    lease, number = Lease(held, now), known[-1].number if known else 0
    if same:
        with suppress(LedgerError):
            # staged, and its run died: readers may have it already
            again = read_kept(run, day, revision, known[-1].staged_hash, lambda: estimated(number).release)
            return StagedVintage(day, revision, lease, again, due, number)
    # a function of the stored measurements and the configuration alone
    described_again = described(run.settings, estimated(number + 1))
    return Revised(day, revision, lease, *described_again, due, number + 1)


def changes_any(run: Run, waiting: Iterable[Due]) -> bool:
    """Return whether a run would give one of these days a new estimate, or report why it cannot."""
    stored = measurements_of(run)
    try:
        found = (_new_estimate(run, stored, one, run.record(one.day, one.revision)) for one in waiting)
        return any(not isinstance(one, str) for one in found)
    except (OptStreamError, OSError):  # the run meets it too, and reports it
        return True


def keep_vintage(run: Run, day: Revised) -> StagedVintage:
    """Keep the bytes to be published, and record their hash in the ledger."""
    staged = keep_bytes(run, day)
    vintage = Vintage(day.number, day.due.basis, staged.file_hash, staged.name, published=False)
    run.ledger.record_vintage(day.reservation, vintage, run.clock())
    return StagedVintage(day.day, day.revision, day.lease, staged, day.due, day.number)


def _new_estimate(
    run: Run, stored: Stored, due: Due, record: ReleaseRecord | None
) -> Callable[[int], Estimate] | str:
    """What computes the vintage of a number; or in words why the estimate stays."""
    if record is None:
        raise LedgerError(f"the ledger does not have {due.day}: its estimate stays")
    settings = run.settings
    if otherwise := changed_since_draw(settings, record):
        return f"its estimate stays: {otherwise}"
    mechanism = run.mechanism_of(due.day, due.revision)
    # a file of its measurements says what it remembers, too; and long after, nothing else does
    is_far = day_of(due.last) - day_of(due.day) > timedelta(days=NEAR_DAYS)
    own = stored(
        due.day, record.measurements_hash, settings.published.measurements or is_far or not due.later
    )
    if not mechanism.measured(own):
        return "it was measured by another mechanism: its estimate stays"
    after = (stored(one, digest, False) for one, digest in due.later)
    later = list(takewhile(mechanism.measured, after))
    if due.later and not later:
        return "what came after was measured by another mechanism"
    if later:
        later[-1] = stored(*due.later[len(later) - 1], True)
    for one in (own, *later[-1:]):
        if rests_on_known_noise(settings, run.ledger, one.state, one.first_step):
            return "its memory rests on noise that others know"
    days = tuple(day for day, _ in due.later[: len(later)])

    def estimated(vintage: int) -> Estimate:
        release = estimate_of(settings, due.day, mechanism, own, later)
        return Estimate(record, mechanism, release, vintage, days)

    return estimated


def estimated_again(run: Run, record: ReleaseRecord, number: int) -> Estimate:
    """Return a published vintage; LedgerError where a day behind it is gone, taken back or restated."""
    (basis,) = (one.basis for one in run.ledger.vintages_of(record.key) if one.number == number)
    day, calendar = period_from(record.period), run.settings.calendar
    reach = calendar.steps_over(day_of(day), day_of(day) + LONGEST + MARGIN)
    days = _days_at(run, range(calendar.first_step(day), reach.stop))
    after = tuple(_smoothed(run, days, day, run.ledger.guarantee_number(run.stream)))
    for length in range(len(after) + 1):
        if _basis(day, record.measurements_hash, after[:length]) == basis:
            due = Due(day, record.revision, basis, after[:length])
            estimated = _new_estimate(run, measurements_of(run), due, record)
            if isinstance(estimated, str):
                raise LedgerError(estimated)
            return estimated(number)
    raise LedgerError(f"a day that the new estimate of {day} was made of was taken back or restated since")

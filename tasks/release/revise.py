"""New estimates of published days, from measurements that were charged already. Nothing is drawn here."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import takewhile

from optstream.catalogue import find_catalogue, finish_listing, read_staged
from optstream.errors import HeldError, LedgerError, OptStreamError, PublicationError
from optstream.history.filter import NEAR_DAYS
from optstream.ledger import ReleaseRecord, Vintage
from optstream.mechanisms import Release
from optstream.stream import Measured, day_of, period_from
from tasks.release.due import Due, due_once
from tasks.release.estimate import keep_bytes
from tasks.release.mechanism import Mechanism, rests_on_known_noise
from tasks.release.run import Run
from tasks.release.stages import Ended, Estimated, Lease, Staged, Status
from tasks.release.statement import FilesBeside, described, files_beside, meant_otherwise, with_files
from tasks.trusted.files import read_verified

MOST_KEPT = 32
"""Days' measurements in memory, without what they remember of the days before."""


@dataclass(frozen=True)
class Stored:
    """Gives a day's measurements by their hash: `whole`, or `alone`, without what they remember of the days
    before. Raises LedgerError if they are gone or differ.
    """

    whole: Callable[[date, str | None], Measured]
    alone: Callable[[date, str | None], Measured]


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
            # held by a live run, which tells by itself; or no more what readers have
            with suppress(LedgerError, PublicationError, OSError):
                held = run.ledger.revise(run.stream, period, revision, run.owner, run.clock(), run.lease)
                finish_listing(run.settings.published_folder, one_day)
                run.ledger.record_vintage_published(held, one.number, run.clock())


def measurements_of(run: Run) -> Stored:
    """What gives a day's measurements as the ledger recorded them, each read once."""

    def read(day: date, digest: str | None) -> Measured:
        return Measured.from_bytes(read_verified(run.settings.measurements_of(day, 0), digest))

    whole = lru_cache(maxsize=2)(read)  # the newest, and one day's own where its measurements are published
    return Stored(whole, lru_cache(maxsize=MOST_KEPT)(lambda *day: replace(read(*day), state=None)))


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
    record = run.ledger.find(run.stream, day.isoformat(), revision)
    rests_on = _rests_on(run, stored, due, record)
    if isinstance(rests_on, str):
        return due.ended(Status.UNCHANGED, rests_on)
    assert record is not None  # it is held
    lease, (mechanism, own, later) = Lease(held, now), rests_on
    if same:
        with suppress(LedgerError):
            # staged, and its run died: readers may have it already
            kept = read_verified(settings.staging_of(day, revision), known[-1].staged_hash)
            staged, said = read_staged(kept)
            whole = with_files(run, day, staged, said, lambda: _estimate(mechanism, own, later))
            return StagedVintage(day, revision, lease, whole, said, due, known[-1].number)
    # a function of the stored measurements and the configuration alone
    release, number = _estimate(mechanism, own, later), known[-1].number + 1 if known else 1
    rows, statement, beside = described(settings, record, number, mechanism, release, _days(due, later))
    return Revised(day, revision, lease, rows, statement, due, number, beside=beside)


def _estimate(mechanism: Mechanism, own: Measured, later: Sequence[Measured]) -> Release:
    """The new estimate; without later days the first one, as who has the measurements makes it."""
    return mechanism.revise(own, later) if later else mechanism.estimate(own)


def _days(due: Due, later: Sequence[Measured]) -> list[date]:
    """The days of these measurements, which are the first of those that were asked for."""
    return [day for day, _ in due.later[: len(later)]]


def changes_any(run: Run, waiting: Iterable[Due]) -> bool:
    """Return whether a run would give one of these days a new estimate, or tell why it cannot."""
    stored = measurements_of(run)
    try:
        records = ((one, run.ledger.find(run.stream, one.day.isoformat(), one.revision)) for one in waiting)
        return any(not isinstance(_rests_on(run, stored, *one), str) for one in records)
    except (OptStreamError, OSError):  # the run meets it too, and tells it
        return True


def keep_vintage(run: Run, day: Revised) -> StagedVintage:
    """Keep the bytes to be published, and tell the ledger their hash."""
    staged = keep_bytes(run, day)
    vintage = Vintage(day.number, day.due.basis, staged.file_hash, staged.name, published=False)
    run.ledger.record_vintage(day.reservation, vintage, run.clock())
    return StagedVintage(day.day, day.revision, day.lease, staged, day.statement, day.due, day.number)


def _rests_on(
    run: Run, stored: Stored, due: Due, record: ReleaseRecord | None
) -> tuple[Mechanism, Measured, Sequence[Measured]] | str:
    """The mechanism, what it measured on the day and after it; or in words why the estimate stays."""
    if record is not None and (otherwise := meant_otherwise(run.settings, due.day, record)):
        return f"its estimate stays: {otherwise}"
    mechanism = run.mechanism_of(due.day, due.revision)
    # a file of its measurements says what it remembers, too; and long after, nothing else does
    is_far = day_of(due.last) - day_of(due.day) > timedelta(days=NEAR_DAYS)
    is_whole = run.settings.published.measurements or is_far or not due.later
    stored_of = stored.whole if is_whole else stored.alone
    own = stored_of(due.day, record.measurements_hash if record else None)
    if not mechanism.measured(own):
        return "it was measured by another mechanism: its estimate stays"
    after = (stored.alone(one, digest) for one, digest in due.later)
    later = list(takewhile(mechanism.measured, after))
    if due.later and not later:
        return "what came after was measured by another mechanism"
    if later:
        later[-1] = stored.whole(*due.later[len(later) - 1])
    for one in (own, *later[-1:]):
        if rests_on_known_noise(run.settings, run.ledger, one.state, one.first_step):
            return "what is remembered rests on noise that others know"
    return mechanism, own, later


def estimated_again(run: Run, record: ReleaseRecord, number: int) -> tuple[Release, FilesBeside]:
    """A vintage that was published before, from the same measurements, with its files. Raises LedgerError
    where they are gone, or a day that it was made of was taken back or restated since.
    """
    known = run.ledger.vintages_of(run.stream, record.period, record.revision)
    (basis,) = (one.basis for one in known if one.number == number)
    due = due_once(run, record, basis)
    rests_on = _rests_on(run, measurements_of(run), due, record)
    if isinstance(rests_on, str):
        raise LedgerError(rests_on)
    mechanism, own, later = rests_on
    release = _estimate(mechanism, own, later)
    days = _days(due, later)
    return release, files_beside(run.settings, due.day, due.revision, mechanism, release, days)

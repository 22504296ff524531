"""The steps of the flow, each a list of days in and out; a day that fails stops no other."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import cache, partial
from typing import TypeVar

from optstream.catalogue import Publication
from optstream.errors import ContractError, DumpError, LedgerError
from optstream.ledger import ReleaseState
from optstream.stream import PrivatePeriod
from tasks.ingest import Dump, IngestedDay, LateDumpError, discover, ingest
from tasks.release import draw, estimate, publish, reserve, revise
from tasks.release import run as release
from tasks.release.lineage import Hash, emit_lineage, hashing
from tasks.release.revise import Due, Revised, StagedVintage
from tasks.release.run import (
    Ahead,
    Charged,
    Drawn,
    Ended,
    Estimated,
    Found,
    Ingested,
    Judged,
    Requested,
    Reserved,
    Run,
    Stage,
    Staged,
    Status,
    Unreleased,
    each,
    together,
)
from tasks.release.witness import refuse_older
from tasks.trusted.files import forbid_core_dumps

MOST_ROWS = 2**19  # of days that wait to be judged together, in memory
Day = TypeVar("Day", bound=Stage)
Next = TypeVar("Next", bound=Stage)


def look_up_days(run: Run, days: Sequence[Requested]) -> list[Unreleased | Ahead]:
    """Days that the ledger knows end, or go on from stored measurements, as whole draws of dead runs do."""
    shown = cache(partial(reserve.look_at_folders, run, [day.day for day in days]))
    known = each(days, Requested, _by_the_newest(run, partial(release.look_up, run)))
    return each(known, Unreleased, lambda day: reserve.take_over_whole(run, day, shown))


def discover_dumps(run: Run, days: Sequence[Unreleased | Ahead]) -> list[Found | Ahead]:
    """Find the complete dumps; a day without one is waiting, not wrong."""
    asked, dumps = [day for day in days if isinstance(day, Unreleased)], dict[date, Dump | DumpError]()
    for revision in {day.revision for day in asked}:
        own = [day.day for day in asked if day.revision == revision]
        dumps |= discover(run.settings.delivered(revision), own)

    def take(day: Unreleased) -> Found | Ended:
        dump = dumps[day.day]
        if isinstance(dump, LateDumpError):
            return day.ended(Status.WAITING, str(dump))
        if isinstance(dump, DumpError):
            raise dump
        return Found(day.day, day.revision, dump)

    return each(days, Unreleased, take)


def ingest_dumps(run: Run, days: Sequence[Found | Ahead]) -> list[Ingested | Ahead]:
    """Read and sum the raw readings of all days in one pass; nothing of them is printed or stored."""
    forbid_core_dumps()

    def read(found: Sequence[Found]) -> list[tuple[IngestedDay, Hash]]:
        dumps = [day.dump for day in found]
        inputs_of = hashing(run.settings, dumps)
        return [(one, inputs_of) for one in (run.read or ingest)(run.settings, dumps)]

    def then(day: Found, done: tuple[IngestedDay, Hash]) -> Ingested:
        ingested, inputs_of = done
        return Ingested(day.day, day.revision, ingested, inputs_of(day.dump, ingested.period is not None))

    return together(days, Found, read, then)


def validate_days(run: Run, days: Sequence[Ingested | Ahead]) -> list[Judged | Ahead]:
    """Judge the contracts, before any budget is touched; verdicts are kept in the trusted zone."""

    def judge(ingested: Sequence[Ingested]) -> list[PrivatePeriod | ContractError]:
        from tasks.ingest.validate import validate  # seconds of imports: only where a day is judged

        return validate(run.settings, [day.read for day in ingested], now=run.clock())

    def then(day: Ingested, period: PrivatePeriod) -> Judged:
        return Judged(day.day, day.revision, period, day.inputs)

    return together(days, Ingested, judge, then)


def reserve_budget(run: Run, days: Sequence[Judged | Ahead]) -> list[Reserved | Ahead]:
    """Charge each day's plan to the privacy budget, or refuse the day."""
    shown = cache(partial(reserve.look_at_folders, run, [day.day for day in days]))
    return each(days, Judged, lambda day: reserve.reserve(run, day, shown()))


def draw_measurements(run: Run, days: Sequence[Reserved | Ahead]) -> list[Drawn | Ended]:
    """Draw the noise of each reserved day, once. Never repeat this step: it is the one that costs."""
    return each(days, Charged, partial(draw.draw, run))


def estimate_releases(run: Run, days: Sequence[Drawn | Ended]) -> list[Estimated | Staged | Ended]:
    return each(days, Drawn, partial(estimate.estimate, run))


def stage_releases(run: Run, days: Sequence[Estimated | Staged | Ended]) -> list[Staged | Ended]:
    held = each(days, Estimated, partial(release.renewed, run))
    judge = partial(estimate.judge, run)
    return together(held, Estimated, judge, lambda day, _: estimate.keep_staged(run, day))


def publish_releases(run: Run, days: Sequence[Staged | Ended]) -> list[Ended]:
    """Publish staged days, or hold them until their hour; record them and their lineage. Safe to repeat."""
    due = each(days, Staged, partial(_renewed_or_held, run))
    return together(due, Staged, partial(publish.publish, run), partial(_recorded, run))


def _recorded(run: Run, day: Staged, publication: Publication) -> Ended:
    # the lineage first: a run that dies between the two is followed by one that writes both, the same event
    try:
        emit_lineage(run, day, publication.entry.file)
    finally:
        done = publish.record_published(run, day, publication)
    return done


def _renewed_or_held(run: Run, day: Staged) -> Staged | Ended:
    hour = run.settings.publish_from(day.day)
    if hour is not None and run.clock() < hour:
        until = f"{hour:%Y-%m-%d %H:%M} ({run.settings.stream.time_zone})"
        return day.ended(Status.HELD, f"drawn; held until {until}, and published by the next run after it")
    try:
        return release.renewed(run, day)
    except LedgerError:
        # an earlier attempt at this step may have published it; a published day has no lease
        record = run.record(day.day, day.revision)
        if record is not None and record.state is ReleaseState.PUBLISHED:
            return day
        raise


def revise_estimates(run: Run, days: Sequence[Due]) -> list[StagedVintage | Ended]:
    """Estimate published days again, newest first, judge many together, and stage them."""
    estimate_again = _by_the_newest(run, partial(revise.revise, run, revise.measurements_of(run)))
    judge = partial(estimate.judge, run)
    staged, revised = list[StagedVintage | Ended](), list[Revised | StagedVintage | Ended]()
    for number, day in enumerate(reversed(days), start=1):
        revised += each([day], Due, estimate_again)
        n_rows = sum(len(one.rows) for one in revised if isinstance(one, Revised))
        if n_rows >= MOST_ROWS or number == len(days):
            staged += together(revised, Revised, judge, lambda one, _: revise.keep_vintage(run, one))
            revised = []
    return staged[::-1]


def publish_revisions(run: Run, days: Sequence[StagedVintage | Ended]) -> list[Ended]:
    """Publish the new estimates that were staged; then record them and their lineage. Safe to repeat."""
    return together(days, StagedVintage, partial(publish.publish, run), partial(_recorded, run))


def _by_the_newest(run: Run, step: Callable[[Day], Next]) -> Callable[[Day], Next]:
    """The step, refused by an older copy of the ledger: it may have forgotten that a day was taken back."""
    refuse = cache(partial(refuse_older, run.settings, run.ledger))

    def take(day: Day) -> Next:
        refuse()
        return step(day)

    return take


def groups(run: Run, days: Sequence[Day]) -> list[list[Day]]:
    """The days that are drawn together: all, or one by one where a plan depends on earlier measurements."""
    # a day that ended may have been none of the stream's
    under_way = [day for day in days if not isinstance(day, Ended)]
    if under_way and run.mechanism_of(under_way[0].day, 0).adaptive:
        return [[day] for day in days]
    return [list(days)]


def may_wait(run: Run, days: Sequence[Estimated | Staged | Ended]) -> bool:
    """Whether days may be judged and published with later ones: while their leases and memory last."""
    now = run.clock()
    since = min((day.lease.since for day in days if not isinstance(day, Ended)), default=now)
    n_rows = sum(len(day.rows) for day in days if isinstance(day, Estimated))
    return now - since < run.lease / 3 and n_rows < MOST_ROWS

"""The steps of the flow, one function each: a list of days in, the same days out, one step further.

A chunk is one day at night and a month in a backfill. A day that fails is a value and stops no other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, partial
from typing import TypeVar

from optstream.errors import DumpError, LedgerError, OptStreamError
from optstream.ledger import ReleaseState
from tasks.ingest import IngestedDay, LateDumpError, discover, ingest
from tasks.ingest.validate import validate
from tasks.processes.core_dumps import forbid_core_dumps
from tasks.release import draw, estimate, publish, reserve, revise
from tasks.release import run as release
from tasks.release.build_mechanism import mechanism_for
from tasks.release.day import Status, Work, each
from tasks.release.input_hashes import Inputs, hashing
from tasks.release.lineage import emit_lineage
from tasks.release.run import Run
from tasks.storage.failures import is_failure

Works = Sequence[Work]
Result = TypeVar("Result")


def look_up_days(run: Run, works: Works) -> list[Work]:
    """Days that the ledger knows end here, or go on from their stored measurements; those that a dead owner
    drew whole too, whatever has become of their dumps.
    """
    shown = cache(partial(reserve.look_at_folders, run, [work.day for work in works]))
    known = each(works, partial(release.look_up, run))
    return each(known, lambda work: work if work.reservation else reserve.take_over_whole(run, work, shown))


def discover_dumps(run: Run, works: Works) -> list[Work]:
    """Find the complete dumps; a day without one is waiting, not wrong."""
    found = discover(run.settings, [work.day for work in works if _needs_reading(work)])

    def take(work: Work) -> Work:
        if not _needs_reading(work):
            return work
        dump = found[work.day]
        if isinstance(dump, LateDumpError):
            return work.ended(Status.WAITING, str(dump))
        if isinstance(dump, OptStreamError):
            raise dump
        return replace(work, dump=dump)

    return each(works, take)


def ingest_dumps(run: Run, works: Works) -> list[Work]:
    """Read and sum the raw readings of all days in one pass; nothing of them is printed or stored."""
    forbid_core_dumps()
    reading = [work for work in works if work.dump and not work.outcome]
    ingested = _together_or_one_by_one(reading, lambda some: _ingested(run, some))

    def take(work: Work) -> Work:
        found = _got(ingested, work)
        if found is None:
            return work
        read, inputs = found
        if isinstance(inputs, DumpError):
            raise inputs
        return replace(work, ingested=read, inputs=inputs)

    return each(works, take)


def _ingested(run: Run, works: Works) -> list[tuple[IngestedDay, Inputs | DumpError]]:
    """Each day as read, with the keyed hashes of the files that it was read from."""
    dumps = [work.dump for work in works if work.dump]
    with hashing(run.settings, dumps) as inputs_of:
        read = (run.read or ingest)(run.settings, dumps)
    return [(day, inputs_of(dump)) for day, dump in zip(read, dumps, strict=True)]


def validate_days(run: Run, works: Works) -> list[Work]:
    """Judge the contracts, before any budget is touched; verdicts are kept in the trusted zone."""
    now = run.clock()
    read = [work for work in works if work.ingested and not work.outcome]
    judged = _together_or_one_by_one(
        read, lambda some: validate(run.settings, [work.ingested for work in some if work.ingested], now=now)
    )

    def take(work: Work) -> Work:
        verdict = _got(judged, work)
        if verdict is None:
            return work
        if verdict.error:
            raise verdict.error
        alarms = verdict.results if verdict.alarms else None
        return replace(work, ingested=None, period=verdict.period, alarms=alarms)

    return each(works, take)


def _together_or_one_by_one(
    works: Works, take: Callable[[Works], Sequence[Result]]
) -> dict[date, Result | BaseException]:
    """All days at once; should a library fail on them, one by one, so that one day costs no other."""
    if not works:
        return {}
    try:
        return dict(zip([work.day for work in works], take(works), strict=True))
    except BaseException as error:  # what a library says may hold a reading: it is not passed on
        if not is_failure(error):
            raise
        if len(works) == 1:
            return {works[0].day: error}
    return {day: got for work in works for day, got in _together_or_one_by_one([work], take).items()}


def _got(found: Mapping[date, Result | BaseException], work: Work) -> Result | None:
    """The day's own result, or its own error."""
    result = found.get(work.day)
    if isinstance(result, BaseException):
        raise result
    return result


def reserve_budget(run: Run, works: Works) -> list[Work]:
    """Charge each day's plan to the grant, or refuse the day."""
    shown = cache(partial(reserve.look_at_folders, run, [work.day for work in works]))
    return each(works, lambda work: work if work.reservation else reserve.reserve(run, work, shown()))


def draw_measurements(run: Run, works: Works) -> list[Work]:
    """Draw the noise of each reserved day, once. Never repeat this step: it is the one that costs."""
    return each(works, lambda work: draw.draw(run, work) if _is_to_draw(work) else work)


def estimate_releases(run: Run, works: Works) -> list[Work]:
    """Compute each day's release from its stored measurements, judge all together, and stage them."""
    return _judged_and_staged(run, each(works, partial(estimate.estimate, run)))


def _judged_and_staged(run: Run, works: Works) -> list[Work]:
    fresh = [work for work in works if work.rows is not None and not work.outcome]
    judged = _together_or_one_by_one(fresh, partial(estimate.judge, run))

    def take(work: Work) -> Work:
        if work.day not in judged:
            return work
        if error := judged[work.day]:
            raise error
        return estimate.keep_staged(run, work)

    return each(works, take)


def revise_estimates(run: Run, works: Works) -> list[Work]:
    """Estimate days that are out anew, judge all together, and stage them. Nothing is drawn."""
    return _judged_and_staged(run, each(works, partial(revise.revise, run, revise.measurements_of(run))))


def publish_revisions(run: Run, works: Works) -> list[Work]:
    """Publish the new estimates that were staged; then record them and their lineage. Safe to repeat."""
    return _published(run, works)


def publish_releases(run: Run, works: Works) -> list[Work]:
    """Publish what was staged, or hold it until its hour; then record it and its lineage. Safe to repeat."""
    return _published(run, each(works, partial(_renewed_or_held, run)))


def _published(run: Run, works: Works) -> list[Work]:
    ready = [work for work in works if not work.outcome]
    published = _together_or_one_by_one(ready, partial(publish.publish, run))

    def take(work: Work) -> Work:
        publication = _got(published, work)
        if publication is None:
            return work
        done = publish.record_published(run, work, publication)
        emit_lineage(run, done)
        return done

    return each(works, take)


def _renewed_or_held(run: Run, work: Work) -> Work:
    hour = run.settings.publish_from(work.day)
    if hour is not None and run.clock() < hour:
        until = f"{hour:%Y-%m-%d %H:%M} ({run.settings.stream.time_zone})"
        return work.ended(Status.HELD, f"drawn; held until {until}, and published by the next run after it")
    try:
        return release.renewed(run, work)
    except LedgerError:
        # an earlier attempt at this step may have published it; what is published has no lease
        record = run.ledger.find(run.stream, work.day.isoformat(), work.revision)
        if record is not None and record.state is ReleaseState.PUBLISHED:
            return work
        raise


def _is_to_draw(work: Work) -> bool:
    return work.period is not None or (work.reservation is not None and work.reservation.is_drawn)


def _needs_reading(work: Work) -> bool:
    return work.outcome is None and work.reservation is None


@dataclass(frozen=True)
class Step:
    """A named step. repeatable: whether the orchestrator may try it again when it failed."""

    name: str
    take: Callable[[Run, Works], list[Work]]
    repeatable: bool = False


READING = (
    Step("look up", look_up_days),
    Step("discover dumps", discover_dumps),
    Step("ingest", ingest_dumps, repeatable=True),
    Step("validate", validate_days),
)
RELEASING = (
    Step("reserve", reserve_budget),
    # Never repeatable: a second draw would cost a second time.
    Step("draw", draw_measurements),
    Step("estimate", estimate_releases),
    Step("publish", publish_releases, repeatable=True),
)
STEPS = READING + RELEASING
REVISING = (
    Step("revise", revise_estimates),
    Step("publish revisions", publish_revisions, repeatable=True),
)
"""After a night, or once at the end of a backfill: of the days that `vintage.due` names."""


def groups(run: Run, works: Works) -> list[list[Work]]:
    """The days that are released together: all of a chunk, or one by one where a day's plan depends on what
    was measured on the days before.
    """
    if works and mechanism_for(run.settings, works[0].day).adaptive:
        return [[work] for work in works]
    return [list(works)]

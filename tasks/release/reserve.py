"""Charge a day's plan to the privacy budget, after checking earlier publications."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from optstream.catalogue import Catalogue, find_catalogue
from optstream.catalogue.backends import open_storage
from optstream.errors import BudgetError, HeldError, LedgerError, OptStreamError, ParameterError
from optstream.ledger import Ledger, ReleaseOutline, ReleaseState
from optstream.privacy import Spend, worst_window
from optstream.privacy.spends import CUSTOMERS
from optstream.storage.store import StoreUrl
from optstream.stream import Calendar, day_of, period_from
from tasks.config import Settings
from tasks.release.lineage import released_by_lineage
from tasks.release.mechanism import facts_of, plan_of, recall
from tasks.release.run import (
    PUBLISHED_IN,
    Ended,
    Judged,
    Lease,
    Reserved,
    Run,
    Stage,
    Status,
    TakenOver,
    Unreleased,
    terms_of,
)
from tasks.release.witness import bear_witness
from tasks.trusted.files import fence_off, newest_token, whole_draw

# Days whose steps have other numbers by today's time zone data ("The number of a step", docs/privacy.md).

MARGIN = timedelta(days=2)
"""Beyond a window: a day for a period that began before it, one for how far numbers may be moved."""


def refuse_renumbered(settings: Settings, ledger: Ledger, asked: Stage) -> None:
    """Raise LedgerError if the ledger has other steps for a period in the windows of the day."""
    calendar, stream = settings.calendar, settings.stream.name
    first, end = calendar.first_step(asked.day), calendar.first_step(asked.day) + calendar.n_steps(asked.day)
    names, reach = _names_and_reach(settings, ledger)
    for name in names:
        for one in ledger.outlines(name, range(first - reach, end + reach)):
            is_asked = (name, one.period, one.revision) == (stream, asked.day.isoformat(), asked.revision)
            if not is_asked and _moved_by(calendar, one) != (0, 0):
                raise LedgerError(
                    f"the ledger has {one.period} of stream {name!r} at steps {one.first_step} to "
                    f"{one.end - 1}, and by this machine's time zone data of {calendar.time_zone} it has "
                    "others: the data changed since it was released, or differ between machines. Windows "
                    "over both would be added up wrongly, so nothing was reserved. Give all machines the "
                    "newest data (tzdata); where that is so already, days are released again that begin a "
                    f"window and {MARGIN.days} days after {day_of(period_from(one.period))}"
                )


def renumbered_releases(settings: Settings, ledger: Ledger) -> Iterator[str]:
    """Yield a line for each two neighbouring releases whose distance the calendar now contradicts."""
    calendar = settings.calendar
    names, reach = _names_and_reach(settings, ledger)
    known = ((one, name, _moved_by(calendar, one)) for name in names for one in ledger.outlines(name))
    in_order = sorted(known, key=lambda release: (release[0].first_step, release[0].end))
    for (one, name, moved), (after, other, moved_after) in pairwise(in_order):
        if after.first_step - one.end <= reach and moved != moved_after:
            yield (
                f"the ledger has {one.period} of stream {name!r} at steps {one.first_step} to {one.end - 1} "
                f"and {after.period} of stream {other!r} at {after.first_step} to {after.end - 1}; by this "
                f"machine's time zone data of {calendar.time_zone} they lie otherwise, so windows over both "
                "were added up wrongly and may have cost more than the ledger says. Look again with the "
                "newest data (tzdata); what stays was released under other data, and cannot be taken back"
            )


def _names_and_reach(settings: Settings, ledger: Ledger) -> tuple[tuple[str, ...], int]:
    """The streams of a budget, this one first; the steps of its longest window ever, and MARGIN."""
    stream = settings.stream.name
    names = (stream, *(terms.stream for terms in ledger.siblings(stream)))
    longest = max((one.window_length for one in ledger.guarantees(stream).values()), default=0)
    return names, longest + MARGIN.days * settings.calendar.slots


def _moved_by(calendar: Calendar, release: ReleaseOutline) -> tuple[int, int] | None:
    """How far begin and end of a release are from the calendar's, in steps; None for no period."""
    try:
        named = period_from(release.period)
        first = calendar.first_step(named)
        return release.first_step - first, release.end - first - calendar.n_steps(named)
    except (ParameterError, ValueError):
        return None


SOON = timedelta(seconds=30)  # longer than it takes to put a month's files and the catalogue that lists them


@dataclass(frozen=True)
class Shown:
    """What folders show before a reservation: heads of the ledger, and the days that the lineage has."""

    catalogue: Catalogue | None
    heads: frozenset[str]
    released: frozenset[tuple[str, int]] = frozenset()


def look_at_folders(run: Run, days: Sequence[date] | None = None) -> Shown:
    """What the published folders carry; LedgerError if the ledger is older or the folder another's."""
    bear_witness(run.settings, run.ledger)
    folder, value = run.settings.published_folder, run.settings.published.value
    catalogue = _own_catalogue(run)
    if catalogue and (catalogue.stream, catalogue.value_column) != (run.stream, value):
        raise LedgerError(
            f"{folder} belongs to stream {catalogue.stream!r} with column {catalogue.value_column!r}; "
            "give each stream a published folder of its own"
        )

    def named_in(documents: Sequence[str]) -> set[str]:
        return {str(json.loads(document).get(PUBLISHED_IN) or "") for document in documents} - {""}

    siblings = run.ledger.siblings(run.stream)
    streams = {run.stream, *(terms.stream for terms in siblings)}
    current = named_in([terms.document for terms in siblings])
    others = [find_catalogue(other) for other in sorted(current)]
    for earlier in sorted(named_in(run.ledger.documents(run.stream)) - current - {str(folder)}):
        # a folder that was given up may be gone, or of no catalogue any more: then it says nothing
        with suppress(OptStreamError, OSError):
            found = find_catalogue(earlier)
            # nor if it was named by mistake, or others have it now, whose head is of another ledger
            others.append(found if found and found.stream in streams else None)
    heads = frozenset(found.ledger_head for found in (catalogue, *others) if found)
    return Shown(catalogue, heads, released_by_lineage(run.settings, days))


def _own_catalogue(run: Run) -> Catalogue | None:
    """The catalogue of the stream's folder, None before its first day; waits for a first publication."""
    folder = run.settings.published_folder
    place = open_storage(folder)
    found = find_catalogue(place)
    if found is not None or not place.names_below("data"):
        return found
    found = place.change(find_catalogue)
    if found is None:
        problem = (
            f"{folder} holds data but no catalogue: a publication was cut short, or the catalogue was "
            "lost. Restore catalogue.json from a copy, or have `optstream publish --from DAY --to DAY` list "
            "the days again; where a first publication was cut short, run its day again, or withdraw it"
        )
        if isinstance(folder, StoreUrl):
            raise HeldError(problem, run.clock() + SOON)
        raise LedgerError(problem)
    return found


def reserve(run: Run, judged: Judged, shown: Shown) -> Reserved | TakenOver | Ended:
    """Charge the day's plan, or take over a whole draw; BudgetError, nothing spent, if a window is full."""
    settings, day, revision = run.settings, judged.day, judged.revision
    known = run.record(day, revision)
    if known is not None and known.state is ReleaseState.PUBLISHED:  # by another run, meanwhile
        if known.withdrawn is not None:
            return judged.ended(Status.WITHDRAWN, f"{known.withdrawn}; a restatement may take its place")
        words = "another run published it meanwhile; nothing changed, nothing spent"
        return judged.ended(Status.UNCHANGED, words)
    entry = shown.catalogue.entry(day) if shown.catalogue else None
    if entry is not None and entry.revision >= revision:
        raise LedgerError(
            f"{settings.published_folder} lists {day} already, and the ledger does not know it: this is not "
            "the ledger that the folder was written with; bring that one back"
        )
    is_drawn = _is_drawn(run, judged, shown)
    facts_of(settings, day)  # what no values can keep is refused while nothing is spent
    refuse_renumbered(settings, run.ledger, judged)
    mechanism = run.mechanism_of(day, revision)
    # Plans are functions of recorded spends: what was charged is what later days may know of earlier ones.
    memory = recall(settings, run.ledger, mechanism, day, revision)
    plan = plan_of(settings, mechanism, day, revision, memory.state)
    of_readings = [spend for spend in plan if spend.stage != CUSTOMERS]
    if revision and not worst_window(of_readings, settings.model.window_length).epsilon:
        raise BudgetError(
            f"{day} revision {revision} would measure nothing: its windows have nothing left of the "
            "share for restatements, and a revision without a measurement would only replace a better one. "
            "Nothing was reserved; keep more back, or divide it (docs/restate.md)"
        )
    lease = _reserved(run, judged, shown, plan, is_drawn)
    if lease.reservation.is_drawn:
        return TakenOver(day, revision, lease)
    return Reserved(day, revision, lease, judged.period, judged.inputs, memory)


def take_over_whole(run: Run, fresh: Unreleased, shown: Callable[[], Shown]) -> Unreleased | TakenOver:
    """Take over a day whose dead owner left the whole measurements; any other day as it is."""
    day, revision = fresh.day, fresh.revision
    if whole_draw(run.settings.measurements_of(day, revision)) is None:
        return fresh
    record = run.record(day, revision)
    if record is None or not record.drawing or not _is_drawn(run, fresh, shown()):
        return fresh
    lease = _reserved(run, fresh, shown(), record.spends, True)
    # called off or taken over meanwhile: then it is this owner's to draw, and is reserved again
    return TakenOver(day, revision, lease) if lease.reservation.is_drawn else fresh


def _reserved(run: Run, day: Stage, shown: Shown, plan: Sequence[Spend], is_drawn: bool) -> Lease:
    now = run.clock()
    reservation = run.ledger.reserve(
        run.key(day.day, day.revision),
        plan,
        run.owner,
        now,
        run.lease,
        catalogue_heads=shown.heads,
        terms=terms_of(run.settings),
        restatements_epsilon=run.settings.kept_for_restatements,
        is_drawn=is_drawn,
    )
    return Lease(reservation, now)


def _is_drawn(run: Run, stage: Stage, shown: Shown) -> bool:
    """Say whether a dead owner left the whole draw that the ledger has as begun. Raises LedgerError if folder
    or lineage know a draw that the ledger does not: it would draw again."""
    settings, day, revision = run.settings, stage.day, stage.revision
    folder, staging = settings.measurements_of(day, revision), settings.staging_of(day, revision)
    # files first: their owner had written to the ledger before
    token, found = newest_token(folder), whole_draw(folder)
    is_staged = staging.is_dir() and any(staging.iterdir())
    record = run.record(day, revision)
    if record is not None and record.state is not ReleaseState.RESERVED:
        return False  # the ledger's refusal follows
    is_begun = record is not None and (record.drawing or record.redraws > 0)
    for is_known, place in (
        (token <= (record.fencing_token if record else 0) and (is_begun or found is None), folder),
        (not is_staged, staging),
        ((day.isoformat(), revision) not in shown.released, settings.lineage_folder),
    ):
        if not is_known:
            raise LedgerError(
                f"{place} knows a draw of {day} revision {revision} that the ledger does not: the ledger was "
                "restored from an older copy, or is another one, and would draw again. Nothing was reserved; "
                "bring the newest ledger back (docs/recover.md)"
            )
    if record is None or not record.drawing:
        return False
    if record.lease_until <= run.ledger.lease_time(run.clock()):
        fence_off(folder)
    # also where its owner seems to live: the ledger decides that, maybe a moment later
    return found is not None

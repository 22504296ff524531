"""The state of each day of the span, from facts and the clock alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby

from optstream.catalogue import Entry
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.stream import Hour, day_of
from tasks.config import Settings
from tasks.ingest import Arrival
from tasks.ingest.arrival.parts import leaves_of, parts_of
from tasks.monitoring.deadlines import late_from, max_runtime, raw_expires
from tasks.monitoring.facts import Facts, Hold
from tasks.monitoring.regions import lacking, shown, touched


class State(StrEnum):
    """How a day stands. A release holds every node of every level, or is not there."""

    PUBLISHED = "published"
    RESTATED = "restated"
    LOST = "lost"
    WITHDRAWN = "withdrawn"
    HELD = "held"
    RUNNING = "running"
    WAITING = "waiting"
    LATE = "late"
    MISSING = "missing"
    FAILED = "failed"
    VOID = "void"

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be done."""
        return self in (State.PUBLISHED, State.RESTATED, State.WITHDRAWN)


@dataclass(frozen=True)
class DayState:
    """How one day stands.

    Attributes:
        day: The local day.
        state: As far as ledger, catalogue, folders and clock tell.
        note: Why, in words; may be empty.
        revision: The newest that the ledger knows; None without a release.
        listed: The revision that the catalogue lists; None where it lists none.
        file: The file that it lists, relative to the published folder; None as `listed`.
        waiting_for: The fewest nodes that cover the leaves without a complete dump.
        levels: For each level, how many of its nodes cannot be known without these.
        raw_expires: When the readings of a day that still needs them are deleted; None for other days, or
            without a retention.
        accepted: Whether `[watch] accepted_gaps` names the day.
    """

    day: date
    state: State
    note: str = ""
    revision: int | None = None
    listed: int | None = None
    file: str | None = None
    waiting_for: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    raw_expires: datetime | None = None
    accepted: bool = False


_WORST_FIRST = (
    State.FAILED,
    State.LOST,
    State.LATE,
    State.MISSING,
    State.VOID,
    State.RUNNING,
    State.HELD,
    State.WAITING,
    State.WITHDRAWN,
    State.RESTATED,
    State.PUBLISHED,
)


def by_day(states: Sequence[DayState]) -> tuple[DayState, ...]:
    """Return the local days of a calendar, rising: days as they are, of hours the worst of each day.

    A day of hours says in its note of how many.
    """
    return tuple(_worst(list(own)) for _, own in groupby(states, key=lambda one: day_of(one.day)))


def _worst(own: Sequence[DayState]) -> DayState:
    if not isinstance(own[0].day, Hour):
        return own[0]
    worst = min(own, key=lambda one: _WORST_FIRST.index(one.state))
    alike = sum(one.state is worst.state for one in own)
    told = f"{alike} of {len(own)} hours" + (f"; {worst.day}: {worst.note}" if worst.note else "")
    quiet = worst.state is State.PUBLISHED
    return replace(worst, day=day_of(worst.day), note="" if quiet else told)


def days_of(settings: Settings, facts: Facts, now: datetime) -> tuple[DayState, ...]:
    """Every day of the span, rising."""
    entries = () if facts.catalogue is None else facts.catalogue.listed
    listed = {entry.period: entry for entry in entries}
    accepted = frozenset(settings.watching.accepted_gaps)
    found = []
    for day in facts.days(settings):
        if day in facts.releases:
            state = _released(settings, facts, listed.get(day), day, now)
        else:
            state = _unreleased(settings, facts, day, now)
        state = _without_file(state, facts.lost.get(day))
        found.append(replace(state, accepted=day_of(day) in accepted))
    return tuple(found)


def _without_file(day: DayState, lost: str | None) -> DayState:
    """A day that readers should have, and whose file is not there as it was published, is lost."""
    if lost is None or day.listed is None:
        return day
    if day.state in (State.PUBLISHED, State.RESTATED):
        return replace(day, state=State.LOST, note=f"its published file {lost}")
    return replace(day, note=f"{day.note}; the file of revision {day.listed} {lost}")


def _released(settings: Settings, facts: Facts, listed: Entry | None, day: date, now: datetime) -> DayState:
    release = facts.releases[day]
    revision, file = (None, None) if listed is None else (listed.revision, listed.file)
    state, note = _of_ledger(settings, release, facts.holds.get(day), day, now)
    if state in (State.PUBLISHED, State.RESTATED) and revision != release.revision:
        note = "the ledger has it as published, and the published folder does not list it"
    elif not state.is_done and revision is not None:
        note = f"{note}; revision {revision} is published"
    needs_raw = release.state is ReleaseState.RESERVED
    expires = raw_expires(settings, day) if needs_raw else None
    return DayState(day, state, note, release.revision, revision, file, raw_expires=expires)


def _of_ledger(
    settings: Settings, release: ReleaseOutline, hold: Hold | None, day: date, now: datetime
) -> tuple[State, str]:
    if release.withdrawn is not None:
        return State.WITHDRAWN, release.withdrawn
    if release.state is ReleaseState.VOID:
        return State.VOID, release.reason or ""
    if release.state is ReleaseState.PUBLISHED:
        return (State.RESTATED if release.revision else State.PUBLISHED), ""
    hour = settings.publish_from(day)
    if release.state is ReleaseState.DRAWN and hour is not None and now < hour + max_runtime(settings):
        return State.HELD, f"drawn; published by the first run after {hour:%Y-%m-%d %H:%M}"
    begun = str(release.state).lower()
    if hold is not None and hold.lease_until > now:
        return State.RUNNING, f"{begun}; a run holds it"
    return State.FAILED, f"{begun}; its run died or failed, the next one continues"


def _unreleased(settings: Settings, facts: Facts, day: date, now: datetime) -> DayState:
    arrival = facts.arrivals.get(day)
    tree = settings.tree_of(day)
    parts = parts_of(settings, day) if arrival is None else (*arrival.waiting, *arrival.broken)
    leaves = leaves_of(settings, day, parts)
    state, note = _of_folders(settings, arrival, day in facts.refused, now >= late_from(settings, day))
    return DayState(
        day,
        state,
        note,
        waiting_for=lacking(tree, leaves),
        levels=touched(tree, leaves),
        raw_expires=raw_expires(settings, day),
    )


def _of_folders(settings: Settings, arrival: Arrival | None, refused: bool, due: bool) -> tuple[State, str]:
    """Of a day that was never reserved: what its dump's folders and its verdict say."""
    if arrival is None:
        return (State.LATE if due else State.WAITING), "the input folder cannot be listed"
    if arrival.unknown_regions:
        listed = ", ".join(f"region={shown(name)}" for name in arrival.unknown_regions[:3])
        return State.FAILED, f"{listed}: no leaf has a folder of this name"
    if arrival.broken:
        return State.FAILED, next(iter(arrival.broken.values()))
    if arrival.waiting:
        some = list(arrival.waiting.values())
        more = "" if len(some) == 1 else f", and {len(some) - 1} more"
        return (State.LATE if due else State.WAITING), some[0] + more
    if refused:
        return State.FAILED, "its dump breaks its contract"
    if due:
        return State.MISSING, "its dump is complete, and no run released it"
    return State.WAITING, "its dump is complete; a run is to come"

"""The state of each day of the span, from facts and the clock alone."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

from optstream.catalogue import Entry
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.stream import Hour, day_of, follows
from tasks.config import Settings
from tasks.ingest import Arrival
from tasks.ingest.arrivals import leaves_of, parts_of
from tasks.monitor.facts import Facts, Hold, lacking, late_from, max_runtime, raw_expires, shown, touched


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


# What a person should act on: a frozen value that holds no reading, no count of rows, and no secret.

Key = tuple[str, str, str]
"""Kind, day and node: what makes two alarms the same one."""


class Severity(StrEnum):
    """Whether a day is lost if nobody acts, or will be."""

    ALARM = "alarm"
    WARNING = "warning"


class Kind(StrEnum):
    """What happened; the name of the event is `optstream.alarm.` and this."""

    LATE = "late"
    UNKNOWN_REGION = "unknown-region"
    MISSING = "missing"
    FAILED = "failed"
    STUCK = "stuck"
    VOID = "void"
    UNLISTED = "unlisted"
    LOST = "lost"
    WITHDRAWN = "withdrawn"
    COMPROMISED = "compromised"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    BUDGET = "budget"
    LEDGER = "ledger"
    AUDIT = "audit"
    UNLIKE = "unlike-history"
    FAR = "far-from-history"
    SUSPECT = "suspect-readings"
    USER_SUITE = "user-suite"
    COVARIATE = "covariate-missing"
    CLOCK = "clock-ahead"
    NOT_BEGUN = "not-begun"
    BLIND = "blind"

    @property
    def depends_on_readings(self) -> bool:
        """Whether it may be shown in the trusted zone alone, and told to no channel."""
        return self in (Kind.SUSPECT, Kind.USER_SUITE)


@dataclass(frozen=True)
class Alarm:
    """What a person should act on; it holds no reading, no count of rows and no secret.

    words: which rule is broken, and the remedy. day, node: None where it is about none. suggestion: the node
    that was probably meant, if any. severity: whether a day is lost if nobody acts.
    """

    kind: Kind
    stream: str
    words: str
    day: date | None = None
    node: str | None = None
    suggestion: str | None = None
    severity: Severity = Severity.ALARM

    @property
    def key(self) -> Key:
        """Kind, day and node, as text: what makes two alarms the same one."""
        return (self.kind.value, "" if self.day is None else self.day.isoformat(), self.node or "")

    def to_document(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON; the day as YYYY-MM-DD."""
        return {
            "kind": self.kind.value,
            "severity": self.severity.value,
            "stream": self.stream,
            "day": None if self.day is None else self.day.isoformat(),
            "node": self.node,
            "suggestion": self.suggestion,
            "words": self.words,
        }


# Days in letters, and alarms in lines for people: periods in a row that are alike are one line.

MOST_LINES = 40
LETTERS = {
    State.PUBLISHED: ".",
    State.RESTATED: "R",
    State.LOST: "X",
    State.WITHDRAWN: "W",
    State.HELD: "h",
    State.RUNNING: "r",
    State.WAITING: "w",
    State.LATE: "L",
    State.MISSING: "M",
    State.FAILED: "F",
    State.VOID: "V",
}
"""What stands for a day in a calendar."""
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}B?|/hour=[0-9]{2}B?| [0-9]{2}:[0-9]{2})?")


def day_or_hour(period: date) -> str:
    """Return what a period is: "day" or "hour"."""
    return "hour" if isinstance(period, Hour) else "day"


def periods_in_words(n_periods: int, first: date, last: date) -> str:
    """Return "3 days, 2016-06-01 to 2016-06-04", or so of hours: for lists that people read."""
    return f"{n_periods} {day_or_hour(first)}s, {first} to {last}"


def but_for_dates(text: str) -> str:
    """Return a text without its dates, hours of dates, and the clock times behind them: two that are equal
    then say the same of two periods.
    """
    return _DATED.sub("", text)


@dataclass(frozen=True)
class AlarmRun:
    """Alarms of one kind, severity and node and of periods in a row, the earliest first; or a single one."""

    alarms: tuple[Alarm, ...]

    @property
    def first(self) -> Alarm:
        """The earliest."""
        return self.alarms[0]

    @property
    def last(self) -> Alarm:
        """The newest, whose words stand for all."""
        return self.alarms[-1]

    @property
    def when(self) -> str:
        """How many periods they are of, the first and the last; "" for a single alarm."""
        first, last = self.first.day, self.last.day
        if len(self.alarms) == 1 or first is None or last is None:
            return ""
        return periods_in_words(len(self.alarms), first, last)

    @property
    def words(self) -> str:
        """What people read of all of them."""
        return f"{self.when}; the last: {self.last.words}" if self.when else self.last.words


def alarm_runs(alarms: Iterable[Alarm], *, same_words: bool = False) -> tuple[AlarmRun, ...]:
    """Return alarms, which come by period, rising, with those in a row together. Pure.

    same_words: whether only those are together that say the same, but for dates and clock times; else the
    words of the last stand for what others of its kind and node say, too.
    """
    runs: list[list[Alarm]] = []
    newest: dict[tuple[str, ...], list[Alarm]] = {}
    for alarm in alarms:
        said = but_for_dates(alarm.words) if same_words else ""
        alike = (alarm.kind, alarm.severity, alarm.node or "", said)
        run = newest.get(alike)
        if run is not None and _follows(run[-1], alarm):
            run.append(alarm)
        else:
            newest[alike] = [alarm]
            runs.append(newest[alike])
    return tuple(AlarmRun(tuple(run)) for run in runs)


def lines_of(alarms: Iterable[Alarm], prefix: str = "") -> list[str]:
    """A line for each alarm or run of alike ones, in their order; of very many only the last are shown."""
    lines = [f"{prefix}{run.last.severity}: {run.last.kind}: {run.words}" for run in alarm_runs(alarms)]
    cut = len(lines) - MOST_LINES
    return lines if cut <= 0 else [f"{cut} earlier ones: see `optstream status --json`", *lines[cut:]]


def _follows(before: Alarm, alarm: Alarm) -> bool:
    return before.day is not None and alarm.day is not None and follows(before.day, alarm.day)

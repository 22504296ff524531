"""States of a day, one row each; every day's state, from facts; runs of neighbouring days that are alike."""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, field_serializer

from optstream.catalogue import Entry
from optstream.catalogue.documents import Count, OrAbsent, Part, Period, absent
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.stream import AggregationTree, Hour, day_of, follows
from tasks.config import Settings
from tasks.ingest import Arrival
from tasks.ingest.arrivals import leaves_of, parts_of
from tasks.monitor.facts import Facts, days_left, late_from, max_runtime, raw_expires

READERS_HAVE_IT = "Nothing needs to be done: readers have it"
NEXT_RUN = "Nothing: the next run releases it"
SUPPLIER = "Ask the supplier of the dump; the next run releases it, or release it then"
HANGS = "Nothing: a run processes it; if that hangs, end it, and the next run continues"
LONGEST_SHOWN = 80


class State(StrEnum):
    """How a day stands. A release holds every node of every level, or is not there. From best to worst: word,
    letter of a calendar, colour, meaning, advice, and the command that helps."""

    letter: str
    colour: str
    meaning: str
    advice: str
    action: str

    PUBLISHED = "published", ".", "good", "is in the catalogue, its file in place", READERS_HAVE_IT, ""
    RESTATED = "restated", "R", "calm", "was measured again, and is published", READERS_HAVE_IT, ""
    WITHDRAWN = "withdrawn", "W", "warn", "was withdrawn by an operator", "", "restate"
    WAITING = "waiting", "w", "calm", "is not due yet", NEXT_RUN, ""
    HELD = "held", "h", "calm", "is drawn, and is published at its hour", NEXT_RUN, ""
    RUNNING = "running", "r", "calm", "is being processed", HANGS, ""
    VOID = (
        "void", "V", "bad", "has an unusable draw: its budget is spent, and an operator decides", "",
        "restate",
    )  # fmt: skip
    MISSING = (
        "missing", "M", "bad", "was due, its dump is complete, and no run processed it", "Release it", "run",
    )  # fmt: skip
    LATE = "late", "L", "bad", "was due, and its dump is not complete", SUPPLIER, "run"
    LOST = (
        "lost", "X", "bad", "is listed, and its published file is missing or damaged",
        "Write its published file again, for free", "publish",
    )  # fmt: skip
    FAILED = (
        "failed", "F", "bad", "has a dump that cannot be processed, or a run that died or failed",
        "Have the dump delivered again, then release it", "run",
    )  # fmt: skip

    def __new__(cls, word: str, *row: str) -> "State":
        state = str.__new__(cls, word)
        state._value_ = word
        state.letter, state.colour, state.meaning, state.advice, state.action = row
        return state

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be done."""
        return self in (State.PUBLISHED, State.RESTATED, State.WITHDRAWN)


class LevelOfDay(Part):
    """How far a level has come on a day."""

    level: Count
    state: State
    nodes_without_input: Count


class DayState(Part):
    """A day of the calendar. listed: the revision that the catalogue lists; None where it lists none. levels:
    for each level, how many of its nodes cannot be known without the nodes that the day waits for.
    raw_expires: when the readings of a day that still needs them are deleted."""

    model_config = ConfigDict(frozen=True, use_enum_values=False)

    day: Period = Field(serialization_alias="date")
    state: State
    revision: Count | None = None
    file: str | None = None
    note: str = ""
    waiting_for: tuple[str, ...] = absent(
        "the fewest nodes that cover the leaves without a complete dump",
        (),
        json_schema_extra={"minItems": 1},
    )
    levels: tuple[int, ...] = absent("a fine day has all nodes of all levels", ())
    days_until_raw_expires: OrAbsent[int] = absent("negative when past")
    accepted: bool = absent("a person accepted the gap", False, json_schema_extra={"const": True})
    listed: int | None = Field(None, exclude=True)
    raw_expires: datetime | None = Field(None, exclude=True)

    @field_serializer("levels")
    def _with_the_state(self, levels: tuple[int, ...]) -> list[LevelOfDay]:
        return [
            LevelOfDay(level=number, state=self.state, nodes_without_input=count)
            for number, count in enumerate(levels)
        ]


def day_or_hour(period: date) -> str:
    return "hour" if isinstance(period, Hour) else "day"


def by_day(states: Sequence[DayState]) -> tuple[DayState, ...]:
    """Return the local days of a calendar, rising; of hours the worst of each day."""
    return tuple(_worst(list(own)) for _, own in groupby(states, key=lambda one: day_of(one.day)))


def _worst(own: Sequence[DayState]) -> DayState:
    if not isinstance(own[0].day, Hour):
        return own[0]
    worst = max(own, key=lambda one: [*State].index(one.state))
    alike = sum(one.state is worst.state for one in own)
    note = f"{alike} of {len(own)} hours" + (f"; {worst.day}: {worst.note}" if worst.note else "")
    if worst.state is State.PUBLISHED:
        note = ""
    return worst.model_copy(update={"day": day_of(worst.day), "note": note})


One = TypeVar("One", bound=Any)


def stretches(dated: Iterable[One], alike: Callable[[One], Hashable]) -> list[list[One]]:
    """Group things, rising by period, that have the same `alike` and periods in a row."""
    found: list[list[One]] = []
    newest: dict[Hashable, list[One]] = {}
    for one in dated:
        own = newest.get(alike(one))
        if own and own[-1].day and one.day and follows(own[-1].day, one.day):
            own.append(one)
        else:
            found.append([one])
            newest[alike(one)] = found[-1]
    return found


def days_of(settings: Settings, facts: Facts, now: datetime) -> tuple[DayState, ...]:
    """Every day of the span, rising."""
    listed = {entry.period: entry for entry in (facts.catalogue.listed if facts.catalogue else ())}
    accepted = frozenset(settings.watching.accepted_gaps)
    found = []
    for day in facts.days:
        if day in facts.releases:
            state = _released(settings, facts, listed.get(day), day, now)
        else:
            state = _unreleased(settings, facts, day, now)
        changes: dict[str, object] = {"accepted": day_of(day) in accepted}
        if state.raw_expires is not None:
            changes["days_until_raw_expires"] = days_left(state.raw_expires, now)
        found.append(state.model_copy(update=changes))
    return tuple(found)


def _released(settings: Settings, facts: Facts, listed: Entry | None, day: date, now: datetime) -> DayState:
    release, lost = facts.releases[day], facts.lost.get(day)
    revision, file = (None, None) if listed is None else (listed.revision, listed.file)
    state, note = _ledger_state(settings, release, day, now)
    if state in (State.PUBLISHED, State.RESTATED) and revision != release.revision:
        note = "the ledger has it as published, and the published folder does not list it"
    elif not state.is_done and revision is not None:
        note = f"{note}; revision {revision} is published"
    if lost is not None and state in (State.PUBLISHED, State.RESTATED) and listed:
        state, note = State.LOST, f"its published file {lost}"
    elif lost is not None and listed:
        note = f"{note}; the file of revision {revision} {lost}"
    expires = raw_expires(settings, day) if release.state is ReleaseState.RESERVED else None
    return DayState(
        day=day, state=state, revision=release.revision, file=file, note=note, listed=revision,
        raw_expires=expires,
    )  # fmt: skip


def _ledger_state(settings: Settings, release: ReleaseOutline, day: date, now: datetime) -> tuple[State, str]:
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
    if release.lease_until > now:
        return State.RUNNING, f"{begun}; a run holds it"
    return State.FAILED, f"{begun}; its run died or failed, the next one continues"


def _unreleased(settings: Settings, facts: Facts, day: date, now: datetime) -> DayState:
    arrival, tree = facts.arrivals.get(day), settings.tree_of(day)
    parts = parts_of(settings, day) if arrival is None else (*arrival.waiting, *arrival.broken)
    leaves = leaves_of(settings, day, parts)
    state, note = _folder_state(arrival, day in facts.refused, now >= late_from(settings, day))
    return DayState(
        day=day,
        state=state,
        note=note,
        waiting_for=lacking(tree, leaves),
        levels=touched(tree, leaves) if leaves else (),
        raw_expires=raw_expires(settings, day),
    )


def _folder_state(arrival: Arrival | None, refused: bool, due: bool) -> tuple[State, str]:
    """The state of a day that was never reserved, by its dump's folders and its verdict."""
    waiting = State.LATE if due else State.WAITING
    if arrival is None:
        return waiting, "the input folder cannot be listed"
    if arrival.unknown_regions:
        listed = ", ".join(f"region={printable(name)}" for name in arrival.unknown_regions[:3])
        return State.FAILED, f"{listed}: no leaf has a folder of this name"
    if arrival.broken:
        return State.FAILED, next(iter(arrival.broken.values()))
    if arrival.waiting:
        first, *others = arrival.waiting.values()
        return waiting, first + (f", and {len(others)} more" if others else "")
    if refused:
        return State.FAILED, "its dump breaks its contract"
    if due:
        return State.MISSING, "its dump is complete, and no run released it"
    return State.WAITING, "its dump is complete; a run is to come"


def printable(name: str) -> str:
    """A name found on disk, short, its unprintable characters escaped."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def lacking(tree: AggregationTree, leaves: Collection[str]) -> tuple[str, ...]:
    """The fewest nodes that cover exactly these leaves: a node stands for all leaves below it, if several."""
    tree = tree.tree  # a margin's nodes cover them a second time
    whole = _covered(tree, leaves) == tree.leaves_below
    child = {parent: one for one, parent in enumerate(tree.parents) if tree.leaves_below[parent] == 1}
    found = []
    for number in np.flatnonzero(whole).tolist():
        if tree.parents[number] < 0 or not whole[tree.parents[number]]:
            while number in child:
                number = child[number]
            found.append(tree.nodes[number])
    return tuple(found)


def touched(tree: AggregationTree, leaves: Collection[str]) -> tuple[int, ...]:
    """For each level, how many of its nodes cannot be known without these leaves."""
    hit = _covered(tree, leaves) > 0
    return tuple(int(hit[level.start : level.stop].sum()) for level in tree.levels)


def _covered(tree: AggregationTree, leaves: Collection[str]) -> NDArray[np.int64]:
    known = set(leaves)
    return tree.add_up(np.array([[name in known] for name in tree.leaves], dtype=np.int64))[:, 0]

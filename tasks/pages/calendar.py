"""The calendar of every page: a letter for each day, in months; the last 60 days first."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

from optstream.catalogue import Entry
from optstream.catalogue.index import day_entries
from optstream.stream import Calendar, days_from, follows
from tasks.monitor.days import DayState, State
from tasks.pages.published import PublicFacts
from tasks.pages.render import MONTHS, day_in_words

RECENT_DAYS = 60
STRETCHES_SHOWN = 40
ABSENT = "absent"
"""All that readers know of a day without a release."""
MEANINGS = {state.value: state.meaning for state in State} | {ABSENT: "is not published"}


@dataclass(frozen=True)
class Mark:
    """A day of the calendar. note: why it is so, in words."""

    day: date
    state: str
    note: str = ""

    @property
    def letter(self) -> str:
        return "–" if self.state == ABSENT else State(self.state).letter

    @property
    def colour(self) -> str:
        """The class of its cell."""
        return "warn" if self.state == ABSENT else State(self.state).colour

    @property
    def words(self) -> str:
        """What is read out, and shown where the pointer rests."""
        return f"{day_in_words(self.day)}: {self.state}{f', {self.note}' if self.note else ''}"


def marks_of_facts(facts: PublicFacts) -> tuple[Mark, ...]:
    """Every day from the first that was ever listed to the last, as readers can know it."""
    entries = {entry.period: entry for entry in day_entries(facts.catalogue.entries)}
    if not entries:
        return ()
    days, stated = days_from(min(entries), max(entries)), facts.statement
    if stated is not None:
        slots = Calendar(stated.step_minutes, stated.time_zone, stated.day)
        days = [day for day in days if not slots.skips(day)]
    return tuple(_public(day, entries.get(day), facts.lost.get(day)) for day in days)


def _public(day: date, entry: Entry | None, lost: str | None) -> Mark:
    if entry is None:
        return Mark(day, ABSENT)
    if lost is not None:
        return Mark(day, State.LOST.value, f"its file is {lost}")
    if entry.withdrawn:
        return Mark(day, State.WITHDRAWN.value)
    if entry.revision:
        return Mark(day, State.RESTATED.value, f"revision {entry.revision}")
    return Mark(day, State.PUBLISHED.value)


def marks_of_days(days: Sequence[DayState], called: Callable[[str], str] = str) -> tuple[Mark, ...]:
    """Every day as the watch has it. called: the name of a node."""
    return tuple(Mark(day.day, day.state.value, _note(day, called)) for day in days)


def _note(day: DayState, called: Callable[[str], str]) -> str:
    nodes = ", ".join(map(called, day.waiting_for[:5])) + (" …" if len(day.waiting_for) > 5 else "")
    lacking = ", ".join(f"{n} of level {level}" for level, n in enumerate(day.levels) if n)
    note = day.note.replace(f"{day.day}T", "hour ").replace(str(day.day), "its day")
    parts = ("accepted" if day.accepted else "", nodes, note, lacking and f"unknown nodes: {lacking}")
    return "; ".join(filter(None, parts))


def calendar(marks: Sequence[Mark], *, all_days: bool) -> dict[str, Any]:
    """Return the values of the template, by name. all_days: whether with those before the last 60."""
    found = stretches(marks)
    return {
        "months": months_of(marks[-RECENT_DAYS:]),
        "older": months_of(marks[:-RECENT_DAYS]) if all_days else [],
        "n_older": max(0, len(marks) - RECENT_DAYS),
        "counts": counted_states(marks),
        "legend": used_states(marks),
        "stretches": found[:STRETCHES_SHOWN],
        "n_stretches": len(found),
    }


def months_of(marks: Sequence[Mark]) -> list[tuple[str, list[Mark | None]]]:
    """Return "Feb 2016" and a mark or None for each of 31 days, the newest month first."""
    found = []
    for (year, month), own in groupby(marks, key=lambda mark: (mark.day.year, mark.day.month)):
        by_day = {mark.day.day: mark for mark in own}
        found.append((f"{MONTHS[month - 1]} {year}", [by_day.get(number) for number in range(1, 32)]))
    return found[::-1]


def counted_states(marks: Sequence[Mark]) -> str:
    """ "363 published, 2 withdrawn": in the order of the states."""
    counts = Counter(mark.state for mark in marks)
    return ", ".join(f"{counts[state]:,} {state}" for state in MEANINGS if counts[state])


def used_states(marks: Sequence[Mark]) -> list[tuple[Mark, str]]:
    """A mark of each state that occurs and the state's meaning: the legend."""
    used = {mark.state: mark for mark in marks}
    return [(used[state], meaning) for state, meaning in MEANINGS.items() if state in used]


def stretches(marks: Sequence[Mark]) -> list[tuple[str, str, str, int]]:
    """Return runs of alike neighbours that are not simply published, the newest first."""
    groups: list[list[Mark]] = []
    for mark in marks:
        if mark.state == State.PUBLISHED.value and not mark.note:
            continue
        before = groups[-1][-1] if groups else None
        alike = before is not None and (before.state, before.note) == (mark.state, mark.note)
        if before is not None and alike and follows(before.day, mark.day):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [
        (" to ".join(dict.fromkeys(day_in_words(one.day) for one in (own[0], own[-1]))),
         own[0].state, own[0].note, len(own))
        for own in reversed(groups)
    ]  # fmt: skip

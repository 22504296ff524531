"""The calendar of every page: a letter for each day, in months; the last 60 days first."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any, NamedTuple

from optstream.catalogue.index import day_entries
from optstream.stream import Calendar, days_from
from tasks.monitor.days import DayState, State
from tasks.monitor.days import stretches as alike_in_a_row
from tasks.pages.published import PublicFacts
from tasks.pages.render import MONTHS, day_in_words

RECENT_DAYS = 60
STRETCHES_SHOWN = 40


class Absent(NamedTuple):
    """The state of a day without a release for readers, in the form of a `State`."""

    value: str = "absent"
    letter: str = "–"
    colour: str = "warn"
    meaning: str = "is not published"


ABSENT = Absent()


@dataclass(frozen=True)
class Mark:
    """A day of the calendar. note: why it is so, in words."""

    day: date
    state: State | Absent
    note: str = ""

    @property
    def words(self) -> str:
        """Read out, and shown where the pointer rests."""
        return f"{day_in_words(self.day)}: {self.state.value}{f', {self.note}' if self.note else ''}"


def marks_of_facts(facts: PublicFacts) -> tuple[Mark, ...]:
    """Every day from the first that was ever listed to the last, as readers can know it."""
    entries = {entry.period: entry for entry in day_entries(facts.catalogue.entries)}
    if not entries:
        return ()
    days, stated = days_from(min(entries), max(entries)), facts.statement
    if stated is not None:
        slots = Calendar(stated.step_minutes, stated.time_zone, stated.day)
        days = [day for day in days if not slots.skips(day)]
    found = []
    for day in days:
        if (entry := entries.get(day)) is None:
            found.append(Mark(day, ABSENT))
        elif day in facts.lost:
            found.append(Mark(day, State.LOST, f"its file is {facts.lost[day]}"))
        elif entry.withdrawn:
            found.append(Mark(day, State.WITHDRAWN))
        elif entry.revision:
            found.append(Mark(day, State.RESTATED, f"revision {entry.revision}"))
        else:
            found.append(Mark(day, State.PUBLISHED))
    return tuple(found)


def marks_of_days(days: Sequence[DayState], called: Callable[[str], str] = str) -> tuple[Mark, ...]:
    """Every day as the watch has it. called: the name of a node."""
    return tuple(Mark(day.day, day.state, _note(day, called)) for day in days)


def _note(day: DayState, called: Callable[[str], str]) -> str:
    nodes = ", ".join(map(called, day.waiting_for[:5])) + (" …" if len(day.waiting_for) > 5 else "")
    lacking = ", ".join(f"{n} of level {level}" for level, n in enumerate(day.levels) if n)
    note = day.note.replace(f"{day.day}T", "hour ").replace(str(day.day), "its day")
    parts = ("accepted" if day.accepted else "", nodes, note, lacking and f"unknown nodes: {lacking}")
    return "; ".join(filter(None, parts))


def calendar(marks: Sequence[Mark], *, all_days: bool) -> dict[str, Any]:
    """Return the values of the template, by name. all_days: whether with those before the last 60."""
    used = {mark.state: mark for mark in marks}
    found = stretches(marks)
    return {
        "months": months_of(marks[-RECENT_DAYS:]),
        "older": months_of(marks[:-RECENT_DAYS]) if all_days else [],
        "n_older": max(0, len(marks) - RECENT_DAYS),
        "counts": counted_states(marks),
        "legend": [used[state] for state in (*State, ABSENT) if state in used],
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
    return ", ".join(f"{counts[one]:,} {one.value}" for one in (*State, ABSENT) if counts[one])


def stretches(marks: Sequence[Mark]) -> list[tuple[str, Mark, int]]:
    """Return when, the first and how many: runs of alike days that are not simply published, newest first."""
    special = (mark for mark in marks if mark.state is not State.PUBLISHED or mark.note)
    runs = alike_in_a_row(special, lambda mark: (mark.state, mark.note))
    return [
        (" to ".join(dict.fromkeys(day_in_words(one.day) for one in (own[0], own[-1]))), own[0], len(own))
        for own in reversed(runs)
    ]

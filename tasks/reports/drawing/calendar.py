"""The calendar of a page: a mark for each day, by years and months, and the last days level by level."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from optstream.catalogue import Entry
from optstream.catalogue.index import day_entries
from optstream.stream import days_from, follows
from tasks.monitor.view import DayState, State
from tasks.reports.facts import PublicFacts
from tasks.reports.numbers import MONTHS, day_in_words

ABSENT = "absent"
"""What readers know of a day without a release: only that it is not there."""
QUIET = (State.PUBLISHED.value,)
MEANINGS = {state.value: state.meaning for state in State} | {ABSENT: "is not published"}


@dataclass(frozen=True)
class Mark:
    """A day. lacking: for each level, how many of its nodes cannot be known yet; () where none."""

    day: date
    state: str
    note: str = ""
    lacking: tuple[int, ...] = ()

    @property
    def letter(self) -> str:
        return "–" if self.state == ABSENT else State(self.state).letter


@dataclass(frozen=True)
class Month:
    """A row of a calendar.

    name: "2016-02". marks: 31 of them, None where there is no such day or it is outside the span.
    """

    name: str
    marks: tuple[Mark | None, ...]


@dataclass(frozen=True)
class Year:
    """The months of a year. words: how many days are how."""

    number: int
    months: tuple[Month, ...]
    words: str


@dataclass(frozen=True)
class LevelRow:
    """The last days of a level.

    cells: (state, what stands in the cell, what is read out) of each of the last days.
    """

    name: str
    cells: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Stretch:
    """Neighbouring days that are alike and not simply published."""

    when: str
    state: str
    note: str
    n_days: int


def marks_of_facts(facts: PublicFacts) -> tuple[Mark, ...]:
    """Every day from the first that was ever listed to the last, as readers can know it."""
    entries = {entry.period: entry for entry in day_entries(facts.catalogue.entries)}
    if not entries:
        return ()
    days = days_from(min(entries), max(entries))
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
    """Every day as the watch has it. called: what a person is told of a node."""
    return tuple(Mark(day.day, day.state.value, _note(day, called), day.levels) for day in days)


def _note(day: DayState, called: Callable[[str], str]) -> str:
    accepted = "accepted" if day.accepted else ""
    nodes = ", ".join(map(called, day.waiting_for[:5])) + (" …" if len(day.waiting_for) > 5 else "")
    note = day.note.replace(f"{day.day}T", "hour ").replace(str(day.day), "its day")
    return "; ".join(filter(None, (accepted, nodes, note)))


def years_of(marks: Sequence[Mark]) -> tuple[Year, ...]:
    """The newest first."""
    found = []
    for number, group in groupby(marks, key=lambda mark: mark.day.year):
        own = list(group)
        months = tuple(
            _month(number, month, list(some)) for month, some in groupby(own, key=lambda mark: mark.day.month)
        )
        found.append(Year(number, months, counted(own)))
    return tuple(reversed(found))


def _month(year: int, month: int, marks: Sequence[Mark]) -> Month:
    by_day = {mark.day.day: mark for mark in marks}
    return Month(f"{MONTHS[month - 1]} {year}", tuple(by_day.get(number) for number in range(1, 32)))


def counted(marks: Sequence[Mark]) -> str:
    """ "363 published, 2 withdrawn": in the order of the states."""
    counts = Counter(mark.state for mark in marks)
    return ", ".join(f"{counts[state]:,} {state}" for state in MEANINGS if counts[state])


def used_states(marks: Sequence[Mark]) -> list[tuple[str, str, str]]:
    """State, letter and meaning of those that occur: the legend."""
    used = {mark.state: mark.letter for mark in marks}
    return [(state, used[state], meaning) for state, meaning in MEANINGS.items() if state in used]


def level_rows(
    marks: Sequence[Mark], n_nodes: Sequence[int], margin: str | None = None
) -> tuple[LevelRow, ...]:
    """A row a level, a cell a day. n_nodes: of each level. margin: the last one's name, if it is one."""
    last = len(n_nodes) - 1
    return tuple(
        LevelRow(
            level_name(level, count, margin if level == last else None),
            tuple(_cell(mark, level) for mark in marks),
        )
        for level, count in enumerate(n_nodes)
    )


def level_name(level: int, n_nodes: int, margin: str | None = None) -> str:
    title = f"Level {level}" if margin is None else f"Margin {margin}"
    return f"{title}, {n_nodes:,} node{'' if n_nodes == 1 else 's'}"


def _cell(mark: Mark, level: int) -> tuple[str, str, str]:
    lacking = mark.lacking[level] if level < len(mark.lacking) else 0
    said = f"{day_in_words(mark.day)}: {mark.state}"
    if not lacking:
        return mark.state, mark.letter, said
    return mark.state, f"{mark.letter}{lacking}", f"{said}, nodes that cannot be known yet: {lacking}"


def stretches(marks: Sequence[Mark]) -> list[Stretch]:
    """What is not simply published, the newest first."""
    groups: list[list[Mark]] = []
    for mark in marks:
        if mark.state in QUIET and not mark.note:
            continue
        if groups and _follows(groups[-1][-1], mark):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [_stretch(group) for group in reversed(groups)]


def _follows(before: Mark, mark: Mark) -> bool:
    alike = (before.state, before.note) == (mark.state, mark.note)
    return alike and follows(before.day, mark.day)


def _stretch(group: Sequence[Mark]) -> Stretch:
    first, last = group[0], group[-1]
    when = day_in_words(first.day)
    if len(group) > 1:
        when += f" to {day_in_words(last.day)}"
    return Stretch(when, first.state, first.note, len(group))


def month_spans(marks: Sequence[Mark]) -> Iterator[tuple[str, int]]:
    """Month and number of days, for the head of the table of levels."""
    for (year, month), group in groupby(marks, key=lambda mark: (mark.day.year, mark.day.month)):
        yield f"{MONTHS[month - 1]} {year}", len(list(group))

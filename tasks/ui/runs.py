"""Runs as the orchestrator knows them, and the bars of their steps."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks.ui.words import span_in_words

FULL = 1000
"""The width of a bar that is as long as its run."""


@dataclass(frozen=True)
class RunStep:
    """A step of a run. ends: None where it is under way."""

    name: str
    begins: datetime
    ends: datetime | None = None


@dataclass(frozen=True)
class RunLink:
    """A run by its name. page: its address on the orchestrator's pages."""

    name: str
    page: str


@dataclass(frozen=True)
class StreamRun:
    """A run of a stream. page: its address on the orchestrator's pages; ends: None where it is under way.

    parent: The run that started it, if one did and is known.
    """

    name: str
    state: str
    begins: datetime
    ends: datetime | None
    steps: tuple[RunStep, ...]
    page: str = ""
    parent: RunLink | None = None

    @property
    def link(self) -> RunLink:
        """Its name and address."""
        return RunLink(self.name, self.page)


@dataclass(frozen=True)
class Bar:
    """A step's bar, in thousandths of its run's length. words: its name and how long it took."""

    left: int
    width: int
    words: str


def length_of(one: StreamRun | RunStep, now: datetime) -> timedelta:
    """Return how long a run or a step took, or takes until now."""
    return max((one.ends or now) - one.begins, timedelta())


def bars_of(run: StreamRun, now: datetime) -> tuple[Bar, ...]:
    """Return a bar for each step of a run, in the order in which they began. Pure."""
    whole = max(length_of(run, now), timedelta(milliseconds=1))
    found = []
    for step in sorted(run.steps, key=lambda one: one.begins):
        left = min(FULL, max(0, round(FULL * ((step.begins - run.begins) / whole))))
        width = round(FULL * (length_of(step, now) / whole))
        words = f"{step.name} {span_in_words(length_of(step, now))}"
        found.append(Bar(left, max(2, min(width, FULL - left)), words))
    return tuple(found)

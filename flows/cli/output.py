"""What a person sees: progress while it runs, tables when it is done; plain lines where nobody watches."""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from tasks.config import Settings
from tasks.monitor.facts import loudest
from tasks.release.outcomes import Budget
from tasks.release.stages import Ended, Status

# A command that prints nothing for some seconds says on standard error what it does.

QUIET_SECONDS = 10.0
LONG_RUNNING = ("serve", "ui")
"""Commands that are quiet while all is well."""


@dataclass
class _Activity:
    """words: what is done now. moves: whether a bar or a spinner shows it."""

    words: str = ""
    moves: bool = False
    spoken_at: float = field(default_factory=monotonic)


_NOW = _Activity()


def spoken() -> None:
    """Note that a line was printed."""
    _NOW.spoken_at = monotonic()


@contextmanager
def work(words: str, moves: bool = False) -> Iterator[None]:
    """Name what is done meanwhile."""
    before = _NOW.words, _NOW.moves
    _NOW.words, _NOW.moves = words, moves
    spoken()
    try:
        yield
    finally:
        _NOW.words, _NOW.moves = before
        spoken()


@contextmanager
def reported(words: list[str]) -> Iterator[None]:
    """While the command of these words runs, report each time that it was quiet for `QUIET_SECONDS`."""
    if not words or words[0] in LONG_RUNNING:
        yield
        return
    ended, begun = threading.Event(), monotonic()

    def watch() -> None:
        while not ended.wait(QUIET_SECONDS / 10):
            now = monotonic()
            if not _NOW.moves and now - _NOW.spoken_at > QUIET_SECONDS:
                spoken()
                print(f"{_NOW.words}: still at work, {now - begun:.0f} s", file=sys.stderr, flush=True)

    with work(f"optstream {words[0]}"):
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()


MARKS = {
    Status.PUBLISHED: "[green]published[/]",
    Status.UNCHANGED: "[green]published already[/]",
    Status.WITHDRAWN: "[yellow]withdrawn[/]",
    Status.HELD: "[green]held[/]",
    Status.BUSY: "[yellow]with another run[/]",
    Status.WAITING: "[yellow]waiting[/]",
    Status.REFUSED: "[red]refused[/]",
    Status.VOID: "[red]void[/]",
    Status.FAILED: "[red]failed[/]",
}


class Terminal:
    """Rich on a terminal, plain lines elsewhere, nothing but one document with `--json`."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self.console = Console(file=sys.stdout, highlight=False, soft_wrap=True)

    @property
    def is_watched(self) -> bool:
        """Whether a person sees what moves, such as a bar."""
        return not self.as_json and self.console.is_terminal

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Show that a step is under way, and that it is done."""
        if self.is_watched:
            with self.console.status(label), work(label, moves=True):
                yield
            self.console.print(f"[green]✓[/] {label}")
            return
        if not self.as_json:
            print(label, flush=True)
        with work(label):
            yield

    @contextmanager
    def bar(
        self, *columns: Any, total: float | None = None, transient: bool = True, **fields: Any
    ) -> Iterator[Callable[..., None] | None]:
        """Show a bar of rich's columns; give what moves it on, or None where nobody watches."""
        if not self.is_watched:
            yield None
            return
        progress = Progress(*columns, console=self.console, transient=transient)
        with progress as shown, work("", moves=True):
            yield partial(shown.update, shown.add_task("", total=total, **fields))

    def say(self, text: str) -> None:
        """A line for people."""
        spoken()
        if not self.as_json:
            self.console.print(text, markup=False)

    def document(self, document: dict[str, Any]) -> None:
        """The one document of `--json`."""
        if self.as_json:
            print(json.dumps(document, indent=1))

    def outcomes(self, ended: Sequence[Ended], settings: Settings, budget: Budget) -> None:
        """A line for each day, then budget and places."""
        if self.as_json:
            return
        table = plain_table("date", "status", "what happened", n_texts=3)
        told: dict[str, str] = {}
        for day in ended:
            name, message = day.day.isoformat(), day.outcome.message
            first = told.setdefault(message.replace(name, ""), name)
            if first != name and not day.outcome.status.is_good:
                message = f"as {first}"
            table.add_row(name, MARKS[day.outcome.status], escape(message))
        self.console.print(table)
        self.budget(budget)
        self.say(f"published in {settings.published_folder}")
        self.say(f"alarms, if there are any, in {settings.validation_folder}")

    def attention(self, ended: Sequence[Ended], settings: Settings) -> None:
        """A line for each region most of whose readings were strange: for the operator, who may see readings.

        No exit code and no outcome depends on it.
        """
        drawn = {day.day for day in ended if day.outcome.status in (Status.PUBLISHED, Status.HELD)}
        for line in loudest(settings, drawn) if drawn and not self.as_json else ():
            self.say(f"ATTENTION {line}")

    def budget(self, budget: Budget) -> None:
        """What the worst window has been charged, of what it may."""
        self.say(
            f"budget: every window of {budget.model.window_length} steps may lose {budget.in_words}; "
            f"the fullest looked at was charged {float(budget.spent):.6g} (each window has its own: later "
            "releases are not touched)"
        )


def plain_table(*headings: str, n_texts: int) -> Table:
    """A table without lines, whose first columns are texts, and the others numbers."""
    columns = [Column(name, justify="left" if i < n_texts else "right") for i, name in enumerate(headings)]
    return Table(*columns, box=None, pad_edge=False)

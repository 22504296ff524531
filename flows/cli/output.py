"""What a command prints: progress, lines and tables for people, or one JSON document."""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from math import floor
from textwrap import fill
from time import monotonic
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table
from rich.text import Text

from optstream.ledger import Ledger
from optstream.privacy.model import Currency
from tasks.config import Settings
from tasks.ingest.clock import clock_ahead
from tasks.release.outcomes import Budget, Printed
from tasks.release.run import Ended, Status

RED, YELLOW = (Status.REFUSED, Status.VOID, Status.FAILED), (Status.WITHDRAWN, Status.BUSY, Status.WAITING)
WIDTH = 80


def rounded_down(amount: Fraction | float, currency: Currency = "epsilon") -> str:
    """Six decimals, nine of rho, which is small; rounded down: what is left is never overstated."""
    if isinstance(amount, float):
        return "nothing: noise was compromised"
    n = 9 if currency == "rho" else 6
    return f"{floor(amount * 10**n) / 10**n:.{n}f}".rstrip("0").rstrip(".")


def figure(value: float) -> str:
    """Three significant digits, without a power of ten."""
    return f"{float(f'{value:.3g}'):,.10g}"


class Terminal:
    """Rich on a terminal, plain lines elsewhere, nothing but one document with `--json`."""

    def __init__(self, as_json: bool = False, gathers: bool = False) -> None:
        self.as_json, self.gathers = as_json, gathers
        self.documents: list[dict[str, Any]] = []
        self.console = Console(file=sys.stdout, highlight=False, soft_wrap=True)

    @property
    def is_watched(self) -> bool:
        """Whether a person sees what moves, such as a bar."""
        return not self.as_json and self.console.is_terminal

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Show that a step is under way, and that it is done."""
        if self.is_watched:
            with self.console.status(label), work(""):
                yield
            self.console.print(f"[green]✓[/] {label}")
            return
        self.say(label)
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
        with progress as shown, work(""):
            yield partial(shown.update, shown.add_task("", total=total, **fields))

    def say(self, text: str) -> None:
        """Print a line for people."""
        spoken()
        if not self.as_json:
            self.console.print(text, markup=False)
            self.console.file.flush()

    def explain(self, text: str) -> None:
        """Print a paragraph for people, after an empty line."""
        self.say("\n" + fill(text, WIDTH))

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str | Text]], n_texts: int) -> None:
        """Print a table without lines, whose first columns are texts, and the others numbers, kept whole."""
        if self.as_json:
            return
        columns = [
            Column(escape(name)) if i < n_texts else Column(escape(name), justify="right", no_wrap=True)
            for i, name in enumerate(headings)
        ]
        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(escape(cell) if isinstance(cell, str) else cell for cell in row))
        self.console.print(table)

    def document(self, document: Printed | Mapping[str, Any]) -> None:
        """Print the one document of `--json`, or keep that of one of several streams."""
        found = document.to_json() if isinstance(document, Printed) else dict(document)
        if self.gathers:
            self.documents.append(found)
        elif self.as_json:
            print(json.dumps(found, indent=1))

    def outcomes(self, ended: Sequence[Ended], settings: Settings, budget: Budget) -> None:
        rows, first_of = [], dict[str, str]()
        for day in ended:
            name, message, status = day.day.isoformat(), day.message, day.status
            first = first_of.setdefault(message.replace(name, ""), name)
            if first != name and not status.is_good:
                message = f"as {first}"
            colour = "red" if status in RED else "yellow" if status in YELLOW else "green"
            rows.append((name, Text(status.value, colour), message))
        self.table(("date", "status", "what happened"), rows, n_texts=3)
        self.budget(budget)
        self.say(f"published in {settings.published_folder}")
        self.say(f"alarms, if there are any, in {settings.validation_folder}")

    def attention(self, ended: Sequence[Ended], settings: Settings, ledger: Ledger) -> None:
        """Print a line for each region with mostly strange readings, and for a clock that is ahead."""
        from tasks.monitor.facts import loudest  # it knows the mechanisms: a second of imports

        done = (Status.PUBLISHED, Status.HELD)
        drawn = {day.day: day.revision for day in ended if day.status in done}
        if not drawn or self.as_json:
            return
        for line in filter(None, (*loudest(settings, drawn), clock_ahead(settings, ledger, max(drawn)))):
            self.say(f"ATTENTION {line}")

    def budget(self, budget: Budget) -> None:
        """Print the charge of the worst window, and its limit."""
        self.say(
            f"budget: every window of {budget.model.window_length} steps may lose {budget.in_words}; "
            f"the fullest looked at was charged {float(budget.spent):.6g} (each window has its own: later "
            "releases are not touched)"
        )


# A command that has printed nothing for some seconds reports its activity on standard error.

QUIET_SECONDS = 10.0
LONG_RUNNING = ("serve", "ui")  # commands that are quiet while all is well
_NOW = SimpleNamespace(words="", spoken_at=0.0)


def spoken() -> None:
    """Note that a line was printed."""
    _NOW.spoken_at = monotonic()


@contextmanager
def work(words: str) -> Iterator[None]:
    """Name the work of the block; "" where a bar or a spinner shows it."""
    before, _NOW.words = _NOW.words, words
    spoken()
    try:
        yield
    finally:
        _NOW.words = before
        spoken()


@contextmanager
def reported(command: str) -> Iterator[None]:
    """While the command runs, report each time that it was quiet for `QUIET_SECONDS`."""
    if command in LONG_RUNNING:
        yield
        return
    ended, begun = threading.Event(), monotonic()

    def watch() -> None:
        while not ended.wait(QUIET_SECONDS / 10):
            now = monotonic()
            if _NOW.words and now - _NOW.spoken_at > QUIET_SECONDS:
                spoken()
                print(f"{_NOW.words}: still at work, {now - begun:.0f} s", file=sys.stderr, flush=True)

    with work(f"optstream {command}"):
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

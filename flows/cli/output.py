"""What a person sees: progress while it runs, tables when it is done; plain lines where nobody watches."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from flows.cli.activity import spoken, work
from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.ingest.clock import clock_ahead
from tasks.release.outcomes import Budget
from tasks.release.stages import Ended, Status

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

MOST_LISTED = 20


def listed(days: Sequence[date]) -> str:
    """Return days with commas between, the first ones where there are many."""
    more = f" and {len(days) - MOST_LISTED} more" if len(days) > MOST_LISTED else ""
    return ", ".join(map(str, days[:MOST_LISTED])) + more


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

    def attention(self, ended: Sequence[Ended], settings: Settings, ledger: Ledger) -> None:
        """A line for each region with mostly strange readings, and for a clock that refuses the next day."""
        from tasks.monitor.facts import loudest  # it knows the mechanisms: a second of imports

        drawn = {day.day for day in ended if day.outcome.status in (Status.PUBLISHED, Status.HELD)}
        if not drawn or self.as_json:
            return
        for line in filter(None, (*loudest(settings, drawn), clock_ahead(settings, ledger, max(drawn)))):
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

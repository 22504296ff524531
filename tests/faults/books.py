"""What the ledger of a world says, read without touching it: opening one would repair what a crash left."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.pool import NullPool

from optstream.ledger import ReleaseRecord, Vintage, open_ledger
from optstream.privacy import worst_window
from tests.faults.world import STREAM, World


@dataclass(frozen=True)
class Event:
    kind: str
    period: str | None
    revision: int | None
    body: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class Books:
    """Records by first step and revision, their new estimates, the problems of `verify`, the worst window."""

    records: tuple[ReleaseRecord, ...]
    vintages: Mapping[tuple[str, int], tuple[Vintage, ...]]
    events: tuple[Event, ...]
    problems: tuple[str, ...]
    worst: Fraction

    def of(self, period: str, revision: int, *kinds: str) -> list[Event]:
        return [
            event
            for event in self.events
            if (event.period, event.revision) == (period, revision) and event.kind in kinds
        ]


EMPTY = Books((), {}, (), (), Fraction(0))


def read_books(world: World) -> Books:
    """Empty where there is no ledger, or one without tables."""
    with _undisturbed(world) as url:
        if url is None:
            return EMPTY
        events = _events(url)
        if events is None:
            return EMPTY
        ledger = open_ledger(url)
        try:
            model = world.settings.model
            records = ledger.releases(STREAM)
            charged = [spend for record in records for spend in record.spends]
            # added up here from the releases, and there from the rows that are in force
            known = ledger.worst(world.settings.privacy.population).epsilon if events else Fraction(0)
            again = worst_window(charged, model.window_length).epsilon
            vintages = ledger.vintages(STREAM)
            return Books(records, vintages, events, tuple(ledger.verify()), max(known, again))
        finally:
            ledger.close()


@contextmanager
def _undisturbed(world: World) -> Iterator[str | None]:
    """The URL of the PostgreSQL ledger, or of a copy of the SQLite one."""
    address = make_url(world.settings.ledger_url)
    if address.get_backend_name() != "sqlite":
        yield world.settings.ledger_url.render_as_string(hide_password=False)
        return
    file = Path(str(address.database))
    if not file.exists():
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        # commits that are not in the file yet, and what a crash in the middle of a write left to be undone
        for end in ("", "-wal", "-journal"):
            path = file.with_name(f"{file.name}{end}")
            if path.exists():
                shutil.copy(path, folder)
        yield f"sqlite:///{folder}/{file.name}"


def _events(url: str) -> tuple[Event, ...] | None:
    """None without tables. Read past the library."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.connect() as connection:
        if not inspect(connection).has_table("events"):
            return None
        rows = connection.execute(
            text("SELECT kind, period, revision, body, hash FROM events ORDER BY stream_id, number")
        ).all()
    engine.dispose()
    return tuple(
        Event(kind, period, revision, json.loads(body), digest)
        for kind, period, revision, body, digest in rows
    )


def forge(world: World, statement: str) -> None:
    """Change a world's SQLite ledger behind its back; the triggers that would refuse it are dropped first."""
    engine = create_engine(world.settings.ledger_url)
    with engine.begin() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars()
        for name in names.all():
            connection.execute(text(f"DROP TRIGGER {name}"))
        connection.execute(text(statement))
    engine.dispose()

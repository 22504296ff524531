"""What the ledger of a world says, read without touching it: opening one would repair what a crash left."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.pool import NullPool

from optstream.catalogue import find_catalogue
from optstream.errors import OptStreamError
from optstream.ledger import ReleaseEvent, ReleaseRecord, Vintage, open_ledger
from optstream.privacy import worst_window
from tests.faults.world import STREAM, World


@dataclass(frozen=True)
class Books:
    """Records, their new estimates by period and revision, their events; the problems of `verify`; the worst
    window; heads that the catalogue names and the ledger does not have.
    """

    records: tuple[ReleaseRecord, ...] = ()
    vintages: Mapping[tuple[str, int], tuple[Vintage, ...]] = field(default_factory=dict)
    events: tuple[ReleaseEvent, ...] = ()
    problems: tuple[str, ...] = ()
    worst: Fraction = Fraction(0)
    missing_heads: tuple[str, ...] = ()

    def kinds(self, record: ReleaseRecord, *kinds: str) -> list[str]:
        """Of a release's events, those of these kinds."""
        named = (record.period, record.revision)
        return [one.kind for one in self.events if (one.period, one.revision) == named and one.kind in kinds]


def read_books(world: World) -> Books:
    """Empty where there is no ledger, or one without tables."""
    with _undisturbed(world) as url:
        if url is None or not _has_tables(url):
            return Books()
        with closing(open_ledger(url)) as ledger:
            events = ledger.events_of(STREAM)
            records = ledger.releases(STREAM)
            charged = [spend for record in records for spend in record.spends]
            # added up here from the releases, and there from the rows that are in force
            known = ledger.worst(world.settings.privacy.population).epsilon if events else Fraction(0)
            again = worst_window(charged, world.settings.model.window_length).epsilon
            problems, worst = tuple(ledger.verify()), max(known, again)
            missing = tuple(ledger.missing_heads(_heads(world)))
            return Books(records, ledger.vintages(STREAM), events, problems, worst, missing)


def _heads(world: World) -> list[str]:
    """Those that the catalogue names, if it can be read."""
    with suppress(OptStreamError):
        if catalogue := find_catalogue(world.settings.published_folder):
            return [entry.ledger_head for entry in catalogue.entries]
    return []


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


def _has_tables(url: str) -> bool:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.connect() as connection:
        return inspect(connection).has_table("events")


def forge(world: World, statement: str) -> None:
    """Change a world's SQLite ledger behind its back; the triggers that would refuse it are dropped first."""
    engine = create_engine(world.settings.ledger_url)
    with engine.begin() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars()
        for name in names.all():
            connection.execute(text(f"DROP TRIGGER {name}"))
        connection.execute(text(statement))
    engine.dispose()

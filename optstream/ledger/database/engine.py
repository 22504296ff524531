"""Opening the database: files that only their owner reads, transactions that really lock, a known schema."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from sqlite3 import OperationalError
from time import monotonic, sleep
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from optstream.errors import LedgerError, LedgerUnavailableError
from optstream.ledger.database.connections import keep_across_forks, watch_file
from optstream.ledger.database.schema import SCHEMA
from optstream.ledger.database.upgrade import upgrade, version_of
from optstream.storage.durable import sync_folder

UPGRADE_LOCK = 7_034_158_201
"""PostgreSQL's advisory lock under which tables are made and changed: arbitrary, the same for all."""

KEPT: dict[str, Any] = {
    "poolclass": QueuePool,
    "pool_logging_name": "ledger",
    # as few connections as are used at once; more threads than that wait for the database, not for the pool
    "pool_use_lifo": True,
    "max_overflow": -1,
    "hide_parameters": True,
}
# a connection that was cut is told of by the error; the pool would print its traceback beside it
logging.getLogger("sqlalchemy.pool.impl.QueuePool.ledger").setLevel(logging.CRITICAL)


def open_engine(url: str | URL, busy_timeout_seconds: float) -> Engine:
    """Return an engine on the ledger at `url`, its tables made if it has none, and brought to today's schema.

    Raises LedgerError, never echoing the URL (it may hold a password), for a URL that cannot be used, a
    database that does not answer and a schema newer than this version of OptStream.
    """
    try:
        address = make_url(url)
        dialect = address.get_backend_name()
        if dialect == "sqlite":
            engine = _sqlite(address, busy_timeout_seconds)
        elif dialect == "postgresql":
            engine = _postgresql(address, busy_timeout_seconds)
        else:
            raise LedgerError(f"the ledger runs on sqlite or postgresql; its URL names {dialect!r}")
    except (ArgumentError, NoSuchModuleError, ValueError):
        # a ValueError names what stands in the place of the port, which may be a password
        raise LedgerError(
            "the ledger's URL is not one; use for example sqlite:///trusted/ledger.sqlite"
        ) from None
    except ModuleNotFoundError as error:
        raise LedgerError(f"the ledger's database needs the driver {error.name!r}: install it") from None
    except OSError as error:
        raise LedgerError(f"the ledger's file or folder cannot be made: {error.strerror}") from error
    keep_across_forks(engine)
    try:
        with reading(engine) as connection:
            version = version_of(connection)
        if version != SCHEMA:
            with _migrating(engine) as connection:
                upgrade(connection, SCHEMA)
            # for a migration foreign keys are off; no kept connection may go on like that
            engine.dispose()
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that may write: on SQLite it holds the database from its first statement on."""
    with _translated(engine), engine.execution_options(ledger_writes=True).begin() as connection:
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads, all of it from one moment."""
    snapshot = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    with _translated(engine), engine.execution_options(**snapshot).begin() as connection:
        yield connection


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """A transaction that may change the tables, alone; all of it or nothing."""
    options = engine.execution_options(ledger_writes=True, ledger_migrates=True)
    with _translated(engine), options.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": UPGRADE_LOCK})
        yield connection
        if engine.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise LedgerError("rows of the ledger point to rows that are gone: its schema was not upgraded")


@contextmanager
def _translated(engine: Engine) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        # SQLite says only what is wrong ("database is locked"); another driver's text may name host and user
        cause = getattr(error, "orig", None) or error
        said = f": {cause}" if engine.dialect.name == "sqlite" else ""
        raise LedgerUnavailableError(
            f"the ledger's database refused ({type(cause).__name__}{said}); nothing of this was "
            "confirmed. See that it is reachable, writable and not held by another program, then run again"
        ) from error


def lease_time(connection: Connection, now: datetime) -> datetime:
    """Return the instant by which leases are over.

    Args:
        now: The caller's time.

    Returns:
        The time of the database server, where that has a clock, as SQLite has not, and the ledger was opened
        with `database_time`; else `now`.
    """
    if connection.dialect.name == "postgresql" and connection.get_execution_options().get("ledger_clock"):
        now = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    return now


def _sqlite(address: URL, busy_timeout_seconds: float) -> Engine:
    if address.database in (None, "", ":memory:"):
        raise LedgerError(
            "the ledger must outlive the program: give a file, as in sqlite:///trusted/ledger.sqlite"
        )
    if address != URL.create(address.drivername, database=address.database):
        raise LedgerError(
            "the ledger's URL must be sqlite:/// and a path, without a host and without a query: it would "
            "name another file than the one that is guarded here"
        )
    # absolute, for a program may change its folder while the ledger is open
    file = Path(str(address.database)).absolute()
    _make_private(file)
    if file.stat().st_nlink > 1:
        raise LedgerError(
            "the ledger's file must have one name, and has others (hard links): what was spent last is in a "
            "log beside the name by which it was opened, which whoever opens another does not see. Remove "
            "the others, and keep copies in their place"
        )
    engine = create_engine(
        URL.create("sqlite", database=str(file)), **KEPT, connect_args={"timeout": busy_timeout_seconds}
    )

    def connected(connection: Any, _record: object) -> None:
        # the driver would open transactions by itself, too late and not immediate
        connection.isolation_level = None
        _use_write_ahead_log(connection, busy_timeout_seconds)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    def begun(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("ledger_migrates", False):
            # to change a column the whole table is copied, dropped and renamed; only possible out here
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("ledger_writes", False) else "BEGIN")

    watch_file(engine, file)
    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def _use_write_ahead_log(connection: Any, patience_seconds: float) -> None:
    """Change the file's mode, permanently. SQLite does not wait here for others that do the same."""
    deadline = monotonic() + patience_seconds
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except OperationalError:
            if monotonic() > deadline:
                raise
            sleep(0.01)


def _postgresql(address: URL, busy_timeout_seconds: float) -> Engine:
    if "+" not in address.drivername:
        address = address.set(drivername="postgresql+psycopg")
    # asked whether it lives before anything is sent; what fails later is never sent again, for it may have
    # been committed
    engine = create_engine(address, **KEPT, isolation_level="READ COMMITTED", pool_pre_ping=True)
    settings = text(
        "SELECT set_config('lock_timeout', :milliseconds, true), set_config('synchronous_commit', "
        # a server may be told to confirm before the disk has it; stricter settings than `on` are left
        "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
        "ELSE current_setting('synchronous_commit') END, true)"
    )
    # 0 would wait without end
    milliseconds = str(max(1, round(1000 * busy_timeout_seconds)))

    def begun(connection: Connection) -> None:
        if connection.get_execution_options().get("ledger_writes", False):
            connection.execute(settings, {"milliseconds": milliseconds})

    event.listen(engine, "begin", begun)
    return engine


def _make_private(file: Path) -> None:
    """Make the file (0600) and the folders (0700) that are missing; those that exist are left as they are."""
    missing = [folder for folder in file.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    # A power cut must not lose the name of a file whose content was synced; whoever made it, or its folder,
    # may have died before that was durable. Who may not read the folder above did not make this one.
    sync_folder(file.parent)
    with suppress(PermissionError):
        for path in (file.parent, *missing):
            sync_folder(path.parent)

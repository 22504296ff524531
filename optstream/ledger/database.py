"""Opening the database: files that only their owner reads, transactions that really lock, a known schema."""

import ctypes
import logging
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from sqlite3 import OperationalError
from time import monotonic, sleep
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DisconnectionError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from optstream.errors import LedgerError, LedgerUnavailableError
from optstream.ledger.schema import SCHEMA
from optstream.storage.folders import sync_folder

# Connections outlive their transaction, for closing one makes SQLite copy its write-ahead log back, which is
# most of the disk's work. They are not used where that is unsafe:
#
# A fork. SQLite's locks belong to a process, which remembers those it holds: a child with an inherited
# connection, even an unused one, takes no locks, also for connections of its own, and its commits may vanish.
# On PostgreSQL a close by the child ends the parent's session. So idle connections are closed before a fork.
# One that another thread is using then cannot be: the child forgets it without closing it and, where it was
# SQLite's, refuses the file from then on.
#
# Another file under the same name. A connection keeps the file that it opened, so before each use the file at
# the path is compared with that. Another one is opened afresh: SQLite sees that its old file moved, and
# copies nothing into the new one. If the file is the same and its log is not, a ledger in use was written
# over: neither may the log that is still open be copied into it, nor can it be relied on, so the process
# refuses from then on.

Identity = tuple[int, int]  # device and number of a file: what stays the same as long as it is the same file

# engine to its open connections, by id; none of them can be referred to weakly
_opened: "WeakKeyDictionary[Engine, dict[int, Any]]" = WeakKeyDictionary()

_files: "WeakKeyDictionary[Engine, Path]" = WeakKeyDictionary()
_refused: set[Identity] = set()  # in a child: files on which SQLite believes to hold locks that it does not

OVERWRITTEN = (
    "its file was written over, or its log taken away, while this program had it open; end all programs that "
    "use it, bring the newest copy back, and run `optstream ledger verify`"
)


def watch_file(engine: Engine, file: Path) -> None:
    """Use a kept SQLite connection only while `file`, and its write-ahead log, are those that it opened."""
    log = file.with_name(f"{file.name}-wal")
    _files[engine] = file
    overwritten: list[bool] = []

    def connecting(_dialect: object, record: Any, _arguments: object, _named: object) -> None:
        if overwritten:
            raise OperationalError(OVERWRITTEN)
        # taken before the file is opened: one that is swapped in between is met at the next use
        found = _identity(file)
        if found is None:
            raise OperationalError("its file is gone: bring it back")
        if found in _refused:
            raise OperationalError(
                "this process was forked while another thread used the ledger, so nothing locks its file "
                "here; start such processes by spawn"
            )
        record.info.update(file=found, log=None)

    def returned(_connection: Any, record: Any) -> None:
        # the log exists from the first transaction on, and while this connection is open nobody removes it
        record.info["log"] = record.info.get("log") or _identity(log)

    def taken(connection: Any, record: Any, proxy: Any) -> None:
        if _identity(file) != record.info["file"]:
            raise DisconnectionError("another file is at the ledger's path")
        if record.info["log"] and _identity(log) != record.info["log"]:
            overwritten.append(True)
            _never_close(connection)
            record.dbapi_connection = proxy.dbapi_connection = None
            raise OperationalError(OVERWRITTEN)

    for name, listener in (("do_connect", connecting), ("checkin", returned), ("checkout", taken)):
        event.listen(engine, name, listener)


def _identity(file: Path) -> Identity | None:
    with suppress(OSError):
        found = file.stat()
        return found.st_dev, found.st_ino
    return None


def _never_close(connection: Any) -> None:
    """Keep a connection open beyond the interpreter's end, which would close it and copy SQLite's log."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _close_idle() -> None:
    for engine in list(_opened):
        engine.dispose()


def _forget_inherited() -> None:
    for engine, opened in list(_opened.items()):
        found = _identity(_files[engine]) if engine in _files else None
        if opened and found is not None:
            _refused.add(found)
        for connection in opened.values():
            _never_close(connection)
        opened.clear()
        engine.dispose(close=False)


os.register_at_fork(before=_close_idle, after_in_child=_forget_inherited)


# Which schema a database has, and the one way to today's: the migrations, from nothing or from any.

VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), nullable=False))
VERSION.append_constraint(PrimaryKeyConstraint("version_num", name="alembic_version_pkc"))
"""The schema's number, in alembic's table."""


def version_of(connection: Connection) -> str | None:
    """Return the schema's version, None for a database without tables; refuse a newer one."""
    tables = inspect(connection)
    if tables.has_table(VERSION.name):
        found = connection.execute(select(VERSION.c.version_num)).scalars().all()
    elif tables.has_table("schema_version"):
        # made before there were migrations: the first of them makes the same
        numbers = connection.execute(text("SELECT version FROM schema_version")).scalars().all()
        found = ["0001"] if numbers == [1] else []
    else:
        return None
    if len(found) != 1 or not found[0].isdecimal():
        raise LedgerError("the ledger's database does not say which schema it has: restore it from a backup")
    if int(found[0]) > int(SCHEMA):
        raise LedgerError(
            f"the ledger's database has schema {found[0]}, newer than the {SCHEMA} that this version of "
            "OptStream knows; use the newer OptStream"
        )
    return str(found[0])


def upgrade(connection: Connection, to: str) -> None:
    """Run the migrations that are missing up to `to`, in the caller's transaction; events stay unchanged."""
    # imported only when there is something to do: opening a ledger of today's schema needs none of it
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    from optstream.ledger.migrations import STEPS

    version = int(version_of(connection) or 0)
    for step in STEPS[version : int(to)]:
        step(Operations(MigrationContext.configure(connection)))
    VERSION.create(connection, checkfirst=True)
    connection.execute(VERSION.delete())
    connection.execute(VERSION.insert(), {"version_num": to})


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
# the error names a connection that was cut; the pool would print its traceback too
logging.getLogger("sqlalchemy.pool.impl.QueuePool.ledger").setLevel(logging.CRITICAL)


def open_engine(url: str | URL, busy_timeout_seconds: float) -> Engine:
    """Return an engine on the ledger at `url`, with today's schema; no error echoes the URL."""
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
        # a ValueError names the text in place of the port, which may be a password
        raise LedgerError(
            "the ledger's URL is not one; use for example sqlite:///trusted/ledger.sqlite"
        ) from None
    except ModuleNotFoundError as error:
        raise LedgerError(f"the ledger's database needs the driver {error.name!r}: install it") from None
    except OSError as error:
        raise LedgerError(f"the ledger's file or folder cannot be made: {error.strerror}") from error
    # registered, so that a child of this process lets them alone
    opened = _opened.setdefault(engine, {})
    event.listen(engine, "connect", lambda connection, _: opened.update({id(connection): connection}))
    event.listen(engine, "close", lambda connection, _: opened.pop(id(connection), None))
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


def writing(engine: Engine) -> AbstractContextManager[Connection]:
    """A transaction that may write: on SQLite it holds the database from its first statement on."""
    return _begun(engine, ledger_writes=True)


def reading(engine: Engine) -> AbstractContextManager[Connection]:
    """A transaction that only reads, all of it from one moment."""
    snapshot = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    return _begun(engine, **snapshot)


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """A transaction that may change the tables, alone; all of it or nothing."""
    with _begun(engine, ledger_writes=True, ledger_migrates=True) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": UPGRADE_LOCK})
        yield connection
        if engine.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise LedgerError("rows of the ledger point to rows that are gone: its schema was not upgraded")


@contextmanager
def _begun(engine: Engine, **options: Any) -> Iterator[Connection]:
    """A transaction under these options; set on an engine, they would slow down all of its events."""
    try:
        with engine.connect() as connection, connection.execution_options(**options).begin():
            yield connection
    except SQLAlchemyError as error:
        # SQLite's text has the problem alone ("database is locked"); another driver's may name host and user
        cause = getattr(error, "orig", None) or error
        found = f": {cause}" if engine.dialect.name == "sqlite" else ""
        raise LedgerUnavailableError(
            f"the ledger's database refused ({type(cause).__name__}{found}); nothing of this was "
            "confirmed. See that it is reachable, writable and not held by another program, then run again"
        ) from error


def lease_time(connection: Connection, now: datetime) -> datetime:
    """Return the instant that ends leases: the server's with `database_time`, else `now`."""
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
            "the ledger's file must have one name, and has others (hard links): the last spends are in a "
            "log next to the name used to open it, and not seen under another name. Remove "
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
    # tested before anything is sent; a later failure is never sent again, for it may have been committed
    engine = create_engine(address, **KEPT, isolation_level="READ COMMITTED", pool_pre_ping=True)
    settings = text(
        "SELECT set_config('lock_timeout', :milliseconds, true), set_config('synchronous_commit', "
        # a server may be set to confirm before the disk has it; stricter settings than `on` are left
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
    # A power cut must not lose the name of a file whose content was synced; the process that made it, or its
    # folder, may have died before that was durable. One that may not read the folder above did not make it.
    sync_folder(file.parent)
    with suppress(PermissionError):
        for path in (file.parent, *missing):
            sync_folder(path.parent)

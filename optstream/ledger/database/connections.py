"""Connections that outlive their transaction, and are let alone where they are not safe to touch.

A connection that is opened and closed for every transaction makes SQLite copy its write-ahead log back each
time, which is most of what the disk does. Kept ones meet two dangers.

A fork. SQLite's locks belong to the process that took them, and SQLite remembers which those are: a child
with an inherited connection, even one that it never uses, believes that it holds locks and asks the system
for none, also for connections of its own, and what it commits may vanish. On PostgreSQL a close by the child
ends the parent's session. So the process closes its idle connections before it forks
(`os.register_at_fork`). One that another thread was using at that moment cannot be closed: the child forgets
it without closing it and, where that was SQLite, refuses the file from then on.

Another file under the same name. A connection goes on with the file that it opened, so a ledger that was
deleted or put back from a backup would not be seen. So before each use the file at the path is compared with
the one that was opened. Another one is opened afresh: SQLite itself sees that its old file moved, and copies
nothing into the new one. If the file is the same and its log is not, somebody wrote over a ledger in use:
nothing of it can be relied on, neither may the log that is still held be copied into it, so the process
refuses from then on.
"""

import ctypes
import os
from pathlib import Path
from sqlite3 import OperationalError
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError

Identity = tuple[int, int]
"""Device and number of a file: what stays the same as long as it is the same file."""

# engine to its open connections, by id; none of them can be referred to weakly
_opened: "WeakKeyDictionary[Engine, dict[int, Any]]" = WeakKeyDictionary()

_files: "WeakKeyDictionary[Engine, Path]" = WeakKeyDictionary()
_refused: set[Identity] = set()
"""In a child: files on which SQLite believes to hold locks that it does not."""

FORKED = (
    "this process was forked while another thread used the ledger, so nothing locks its file here; start "
    "such processes by spawn"
)
GONE = "its file is gone: bring it back"
OVERWRITTEN = (
    "its file was written over, or its log taken away, while this program had it open; end all programs that "
    "use it, bring the newest copy back, and run `optstream ledger verify`"
)


def keep_across_forks(engine: Engine) -> None:
    """Register the engine's connections, so that a child of this process lets them alone."""
    opened = _opened.setdefault(engine, {})

    def connected(connection: Any, _record: Any) -> None:
        opened[id(connection)] = connection

    def closed(connection: Any, _record: Any) -> None:
        opened.pop(id(connection), None)

    event.listen(engine, "connect", connected)
    event.listen(engine, "close", closed)


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
            raise OperationalError(GONE)
        if found in _refused:
            raise OperationalError(FORKED)
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

    event.listen(engine, "do_connect", connecting)
    event.listen(engine, "checkin", returned)
    event.listen(engine, "checkout", taken)


def _identity(file: Path) -> Identity | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _never_close(connection: Any) -> None:
    """Hold the connection beyond the interpreter's own end, which would close whatever is left.

    No object of Python's can: the end clears them all, and SQLite then copies its log into the other file.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _close_idle() -> None:
    for engine in list(_opened):
        engine.dispose()


def _forget_inherited() -> None:
    for engine, opened in list(_opened.items()):
        file = _files.get(engine)
        found = None if file is None else _identity(file)
        if opened and found is not None:
            _refused.add(found)
        for connection in opened.values():
            _never_close(connection)
        opened.clear()
        engine.dispose(close=False)


os.register_at_fork(before=_close_idle, after_in_child=_forget_inherited)

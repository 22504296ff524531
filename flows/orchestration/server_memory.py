"""How large the memory of the temporary server may become: its database and its log, in the trusted folder.

Prefect's own vacuum goes by age and by the hour, and a server that lives for a run never comes to it.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

DATABASE, LOG = "prefect.db", "server.log"
LARGEST = 20 * 2**20
"""Bytes of either, about a hundred runs; what was there before is kept once more beside it."""


def bound_memory(home: Path, largest: int = LARGEST) -> None:
    """Put a database or log that has grown beyond `largest` aside as `<name>.old`, over the one from before.

    The next server begins with new ones. A database that some server has open is left for the next time.
    The caller holds the lock under which servers of this folder start.
    """
    log, database = home / LOG, home / DATABASE
    if _size(log) > largest:
        log.replace(log.with_name(f"{LOG}.old"))
    if _size(database) > largest and _is_unused(database):
        database.replace(database.with_name(f"{DATABASE}.old"))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _is_unused(database: Path) -> bool:
    """Whether nobody has the database open; what was only in its log is then in its file."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as own:
        own.execute("PRAGMA locking_mode=EXCLUSIVE")
        own.execute("BEGIN EXCLUSIVE")
        own.execute("COMMIT")
        own.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return True
    return False

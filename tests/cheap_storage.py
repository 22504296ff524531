"""Small ledgers on SQLite, whose statements are compiled and tables made once a process; files in memory."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psutil import virtual_memory
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from optstream.ledger import database as module
from optstream.ledger.database import upgrade

COMPILED: LRUCache = LRUCache(2000)
TABLES: dict[str, list[str]] = {}
"""For a schema, the statements that make what its migrations make."""


class OneDialect(SQLiteDialect_pysqlite):
    """Equal to every other of its kind, which compiles the same: compiled statements are kept by dialect."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneDialect)

    def __hash__(self) -> int:
        return hash(OneDialect)


def make_engine(*address: Any, **more: Any) -> Engine:
    """Make an engine as SQLAlchemy does, and let those on SQLite share compiled statements."""
    engine = create_engine(*address, **more)
    if type(engine.dialect) is SQLiteDialect_pysqlite:
        engine.dialect.__class__ = OneDialect
        engine._compiled_cache = COMPILED
    return engine


def make_tables(connection: Connection, to: str) -> None:
    """Do as `upgrade` does; in a file without tables the migrations run once, then what they made is made."""
    asked = connection.exec_driver_sql
    empty = connection.dialect.name == "sqlite" and not asked("SELECT 1 FROM sqlite_master").first()
    if not empty:
        upgrade(connection, to)
    elif to in TABLES:
        for statement in TABLES[to]:
            asked(statement)
    else:
        upgrade(connection, to)
        made = asked("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").scalars()
        TABLES[to] = [*made, *_rows(connection)]


def _rows(connection: Connection) -> Iterator[str]:
    """What makes the rows again that the migrations put in."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    for table in connection.exec_driver_sql(tables).scalars().all():
        for row in connection.exec_driver_sql(f"SELECT * FROM {table}").all():
            yield f"INSERT INTO {table} VALUES ({', '.join(map(repr, row))})"


@pytest.fixture(autouse=True, scope="module")
def ledgers_made_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both, except in the tests of the database."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name != "test_database.py":
            patch.setattr(module, "upgrade", make_tables)
            patch.setattr(module, "create_engine", make_engine)
        yield


MEMORY, LEAST_FREE = Path("/dev/shm"), 6 * 2**30
"""Linux keeps what lies there in memory; with fewer bytes free, there or of all memory, it is left alone."""


def keep_in_memory() -> None:
    """Put temporary files of this process and its children into memory, unless TMPDIR says where."""
    if MEMORY.is_dir() and min(shutil.disk_usage(MEMORY).free, virtual_memory().available) > LEAST_FREE:
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None

"""Rows, typed by their tables: read, inserted, and read as the driver gives them where there are many."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from sqlite3 import OperationalError
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Select, insert

from optstream.errors import LedgerError
from optstream.ledger.database.schema import Row

Found = TypeVar("Found", bound=Row)
Columns = TypeVar("Columns", bound=tuple[Any, ...])


def read_rows(connection: Connection, query: Select[tuple[Found]], **values: object) -> Sequence[Found]:
    """Return the rows of one table that a query finds. values: of its bound parameters.

    They are SQLAlchemy's plain rows, with the columns of the class that they are typed as, and nothing else.
    """
    found: Any = connection.execute(query, values).all()
    return cast(Sequence[Found], found)


def one_row(connection: Connection, query: Select[tuple[Found]], **values: object) -> Found | None:
    """Return the only row that a query finds, as `rows` does; None if it finds none."""
    found: Any = connection.execute(query, values).one_or_none()
    return cast(Found | None, found)


def insert_row(connection: Connection, table: type[Row], **columns: object) -> int:
    """Insert one row and return its key."""
    keys = connection.execute(insert(table).values(**columns)).inserted_primary_key
    assert keys is not None
    return int(keys[0])


def plain_rows(connection: Connection, query: Select[Columns]) -> Iterator[Columns]:
    """Yield the rows of a long query, of text and integers, as the driver gives them: plain tuples."""
    cursor: Any = connection.execute(query).cursor
    return iter(cursor)


def plain_batches(connection: Connection, query: Select[Columns], n_rows: int) -> Iterator[list[Columns]]:
    """Yield the rows as `plain_rows` does, at most so many at once."""
    found = plain_rows(connection, query)
    return iter(lambda: list(islice(found, n_rows)), [])


@contextmanager
def any_text(connection: Connection) -> Iterator[None]:
    """Make text that is not UTF-8 come as bytes instead of raising. Of SQLite: PostgreSQL keeps none."""
    driver: Any = connection.connection.dbapi_connection
    driver.text_factory = _text_or_bytes
    try:
        yield
    finally:
        driver.text_factory = str


def is_undecodable(error: OperationalError | LedgerError) -> bool:
    """Return whether SQLite's driver raised it for text that is not UTF-8."""
    return "Could not decode to UTF-8" in str(error)


def _text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw

"""Checking the vintages of a stream against its events."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from optstream.ledger.database.engine import plain_rows
from optstream.ledger.database.schema import releases, vintages
from optstream.ledger.transactions.transitions import describe

ToldOfVintages = dict[tuple[str, int, Any], dict[str, Any]]
"""What the events say of each vintage, by period, revision and number."""
COLUMNS = ("basis", "staged_hash", "published_name", "published")


def vintage_problems(connection: Connection, stream: Any, told: ToldOfVintages) -> Iterator[str]:
    """Yield what differs between a stream's vintages and what its events record of them."""
    left = dict(told)
    query = (
        select(releases.c.period, releases.c.revision, *(vintages.c[name] for name in ("number", *COLUMNS)))
        .join(releases, releases.c.id == vintages.c.release_id)
        .where(releases.c.stream_id == stream.id)
        .order_by(vintages.c.release_id, vintages.c.number)
    )
    for period, revision, number, *values in plain_rows(connection, query):
        named = f"{describe(stream.name, period, revision)}, vintage {number}"
        said = left.pop((period, revision, number), None)
        if said is None:
            yield f"{named}: no event tells of it"
            continue
        differing = [name for name, value in zip(COLUMNS, values, strict=True) if said.get(name) != value]
        if differing:
            yield f"{named}: {', '.join(differing)} differ from what its events record"
    for period, revision, number in left:
        named = f"{describe(stream.name, period, revision)}, vintage {number}"
        yield f"{named}: its events are there, its row is gone"

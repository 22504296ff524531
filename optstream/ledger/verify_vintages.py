"""Checking the vintages of a stream against its events."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from optstream.ledger.transitions import describe
from optstream.ledger.vintages import of_stream

ToldOfVintages = dict[tuple[str, int, Any], dict[str, Any]]
"""What the events say of each vintage, by period, revision and number."""
COLUMNS = ("basis", "staged_hash", "published_name", "published")


def vintage_problems(connection: Connection, stream: Any, told: ToldOfVintages) -> Iterator[str]:
    """What differs between a stream's vintages and what its events record of them."""
    left = dict(told)
    for (period, revision), vintages in of_stream(connection, stream.id).items():
        for vintage in vintages:
            named = f"{describe(stream.name, period, revision)}, vintage {vintage.number}"
            said = left.pop((period, revision, vintage.number), None)
            if said is None:
                yield f"{named}: no event tells of it"
                continue
            differing = [name for name in COLUMNS if said.get(name) != getattr(vintage, name)]
            if differing:
                yield f"{named}: {', '.join(differing)} differ from what its events record"
    for period, revision, number in left:
        named = f"{describe(stream.name, period, revision)}, vintage {number}"
        yield f"{named}: its events are there, its row is gone"

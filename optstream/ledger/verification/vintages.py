"""Checking the vintages of a stream against its events."""

from collections.abc import Iterator

from sqlalchemy import Connection, select

from optstream.ledger.database.rows import plain_rows
from optstream.ledger.database.schema import ReleaseRow, StreamRow, VintageRow
from optstream.ledger.transactions.held import describe

ToldOfVintages = dict[tuple[str, int | None, object], dict[str, object]]
"""What the events say of each vintage, by period, revision and number."""
COLUMNS = ("basis", "staged_hash", "published_name", "published")
_COLUMNS = [getattr(VintageRow, name) for name in COLUMNS]


def vintage_problems(connection: Connection, stream: StreamRow, told: ToldOfVintages) -> Iterator[str]:
    """Yield what differs between a stream's vintages and what its events record of them."""
    left = dict(told)
    query = (
        select(ReleaseRow.period, ReleaseRow.revision, VintageRow.number, *_COLUMNS)
        .join(ReleaseRow, ReleaseRow.id == VintageRow.release_id)
        .where(ReleaseRow.stream_id == stream.id)
        .order_by(VintageRow.release_id, VintageRow.number)
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
    for key in left:
        yield f"{describe(stream.name, *key[:2])}, vintage {key[2]}: its events are there, its row is gone"

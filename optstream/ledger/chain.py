"""The events of a stream: each carries the hash of the one before, so no edit, gap or swap goes unseen."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from optstream.ledger.records import stamp
from optstream.ledger.schema import events, releases, streams

GENESIS = "0" * 64
"""What stands for the hash before a stream's first event."""


def event_hash(stream: str, row: Any) -> str:
    """sha256 of the stream's name and the event's columns, a line each; none of them holds a line break."""
    columns = ("previous", "number", "at", "kind", "period", "revision", "body")
    # None is written as nothing; a period is never empty text
    lines = [stream, *("" if row[column] is None else str(row[column]) for column in columns)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def append(
    connection: Connection,
    stream_id: int,
    kind: str,
    now: datetime,
    body: Mapping[str, Any],
    key: tuple[str, int] | None = None,
) -> None:
    """Add an event to a stream whose row the transaction holds. key: period and revision of a release."""
    stream = connection.execute(select(streams).where(streams.c.id == stream_id)).one()
    row: dict[str, Any] = {
        "number": stream.n_events,
        "at": stamp(now),
        "kind": kind,
        "period": key[0] if key else None,
        "revision": key[1] if key else None,
        "body": json.dumps(body, sort_keys=True, separators=(",", ":")),
        "previous": stream.head,
    }
    head = event_hash(stream.name, row)
    connection.execute(insert(events).values(stream_id=stream_id, hash=head, **row))
    connection.execute(
        update(streams).where(streams.c.id == stream_id).values(head=head, n_events=stream.n_events + 1)
    )


def move(connection: Connection, release: Any, kind: str, now: datetime, **columns: Any) -> None:
    """Change a release's row and append the event that says so, with the columns' new values as its body."""
    connection.execute(update(releases).where(releases.c.id == release.id).values(**columns))
    append(connection, release.stream_id, kind, now, columns, (release.period, release.revision))


def contains(connection: Connection, head: str) -> bool:
    """Whether some event has this hash."""
    return connection.execute(select(events.c.id).where(events.c.hash == head)).first() is not None

"""The events of a stream: each carries the hash of the one before, so no edit, gap or swap goes unseen."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from optstream.errors import LedgerError
from optstream.ledger.database.schema import events, releases, streams
from optstream.ledger.records import stamp

HEADS_AT_ONCE = 1000

HASHED = ("previous", "number", "at", "kind", "period", "revision", "body")
"""The columns of an event that its hash is made of, in this order."""

GENESIS = "0" * 64
"""What stands for the hash before a stream's first event."""

# built once: making and comparing a statement costs the processor more than SQLite does to run it
_STREAM = select(streams).where(streams.c.id == bindparam("stream"))
_APPEND = insert(events)
_ADVANCE = update(streams).where(streams.c.id == bindparam("stream"))
_ADVANCE = _ADVANCE.values(head=bindparam("new_head"), n_events=bindparam("new_count"))


def event_hash(stream: str, row: Mapping[str, Any]) -> str:
    """Return sha256 of the stream's name and the event's columns, a line each; none of them holds a line
    break.
    """
    return hashes_of(stream, [(*(row[column] for column in HASHED), None)])[0]


def hashes_of(stream: str, rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return `event_hash` of each of many rows: the HASHED columns, and one more, the hash that is kept."""
    # None is written as nothing; a period is never empty text
    return [
        sha256(
            f"{stream}\n{previous}\n{number}\n{at}\n{kind}\n{'' if period is None else period}\n"
            f"{'' if revision is None else revision}\n{body}".encode()
        ).hexdigest()
        for previous, number, at, kind, period, revision, body, _ in rows
    ]


def append(
    connection: Connection,
    stream_id: int,
    kind: str,
    now: datetime,
    body: Mapping[str, Any],
    key: tuple[str, int] | None = None,
) -> None:
    """Add an event to a stream whose row the transaction holds. key: period and revision of a release."""
    stream = connection.execute(_STREAM, {"stream": stream_id}).one()
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
    connection.execute(_APPEND, {"stream_id": stream_id, "hash": head, **row})
    moved = {"stream": stream_id, "new_head": head, "new_count": stream.n_events + 1}
    connection.execute(_ADVANCE, moved)


def move(
    connection: Connection,
    release: Any,
    kind: str,
    now: datetime,
    said: Mapping[str, Any] = MappingProxyType({}),
    **columns: Any,
) -> None:
    """Change a release's row and append the event that says so, with the columns' new values as its body.

    said: what the event tells beside them.
    """
    connection.execute(update(releases).where(releases.c.id == release.id).values(**columns))
    append(connection, release.stream_id, kind, now, {**said, **columns}, (release.period, release.revision))


def check_contains(connection: Connection, heads: Iterable[str]) -> None:
    """Raise LedgerError unless the ledger has every one of the heads that a catalogue carries."""
    for head in missing(connection, heads):
        raise LedgerError(
            f"the ledger does not contain the head {head[:12]} of the published catalogue: it was "
            "restored from an older copy, or belongs to another folder; nothing may be drawn or published "
            "from it. Bring back the ledger that the catalogue was written with"
        )


def missing(connection: Connection, heads: Iterable[str]) -> list[str]:
    """Return those of the heads that no stream's event has as its hash, sorted."""
    asked = sorted(set(heads))
    found: set[str] = set()
    # a catalogue of ten years carries thousands; a database takes so many in one question
    for place in range(0, len(asked), HEADS_AT_ONCE):
        some = asked[place : place + HEADS_AT_ONCE]
        query = select(events.c.hash).join(streams, events.c.stream_id == streams.c.id)
        found.update(connection.execute(query.where(events.c.hash.in_(some))).scalars())
    return [head for head in asked if head not in found]

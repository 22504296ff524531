"""The events of a stream: each carries the hash of the one before, so no edit, gap or swap goes unseen."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from types import MappingProxyType

from sqlalchemy import Connection, bindparam, insert, select, update

from optstream.errors import LedgerError
from optstream.ledger.records import stamp
from optstream.ledger.schema import EventRow, ReleaseRow, StreamRow, one_row

HEADS_AT_ONCE = 1000

HASHED = ("previous", "number", "at", "kind", "period", "revision", "body")
"""The columns of an event that its hash is made of, in this order."""
PlainEvent = tuple[str, int, str, str, str | None, int | None, str, str]
"""Those, and one more: the hash that is kept."""

GENESIS = "0" * 64
"""What stands for the hash before a stream's first event."""

# built once: making and comparing a statement costs the processor more than SQLite does to run it
_STREAM = select(StreamRow).where(StreamRow.id == bindparam("stream"))
_APPEND = insert(EventRow)
_ADVANCE = update(StreamRow).where(StreamRow.id == bindparam("stream"))
_ADVANCE = _ADVANCE.values(head=bindparam("new_head"), n_events=bindparam("new_count"))


def hash_of(stream: str, event: PlainEvent) -> str:
    """Return sha256 of the stream's name and the HASHED columns of an event, none with a line break."""
    previous, number, at, kind, period, revision, body, _ = event
    # None is written as nothing; a period is never empty text
    return sha256(
        f"{stream}\n{previous}\n{number}\n{at}\n{kind}\n{'' if period is None else period}\n"
        f"{'' if revision is None else revision}\n{body}".encode()
    ).hexdigest()


def append(
    connection: Connection,
    stream_id: int,
    kind: str,
    now: datetime,
    body: Mapping[str, object],
    key: tuple[str, int] | None = None,
) -> None:
    """Add an event to a stream whose row the transaction holds. key: period and revision of a release."""
    stream = one_row(connection, _STREAM, stream=stream_id)
    assert stream is not None
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    period, revision = key or (None, None)
    event = (stream.head, stream.n_events, stamp(now), kind, period, revision, text)
    head = hash_of(stream.name, (*event, ""))
    columns = dict(zip(HASHED, event, strict=True))
    connection.execute(_APPEND, {"stream_id": stream_id, "hash": head, **columns})
    moved = {"stream": stream_id, "new_head": head, "new_count": stream.n_events + 1}
    connection.execute(_ADVANCE, moved)


def move(
    connection: Connection,
    release: ReleaseRow,
    kind: str,
    now: datetime,
    more: Mapping[str, object] = MappingProxyType({}),
    /,
    **columns: object,
) -> None:
    """Change columns of a release's row and append the event that records them, with `more` in its body."""
    connection.execute(update(ReleaseRow).where(ReleaseRow.id == release.id).values(**columns))
    append(connection, release.stream_id, kind, now, {**more, **columns}, (release.period, release.revision))


def check_contains(connection: Connection, heads: Iterable[str]) -> None:
    """Raise LedgerError unless the ledger has every one of the heads that a catalogue carries."""
    for head in missing_heads(connection, heads):
        raise LedgerError(
            f"the ledger does not contain the head {head[:12]} of the published catalogue: it was "
            "restored from an older copy, or belongs to another folder; nothing may be drawn or published "
            "from it. Bring back the ledger that the catalogue was written with"
        )


def missing_heads(connection: Connection, heads: Iterable[str]) -> list[str]:
    """Return, sorted, a catalogue's heads that no event has: with any, the ledger is an older copy."""
    wanted = sorted(set(heads))
    found: set[str] = set()
    # a catalogue of ten years carries thousands; a database takes so many in one question
    for place in range(0, len(wanted), HEADS_AT_ONCE):
        some = wanted[place : place + HEADS_AT_ONCE]
        query = select(EventRow.hash).join(StreamRow, EventRow.stream_id == StreamRow.id)
        found.update(connection.execute(query.where(EventRow.hash.in_(some))).scalars())
    return [head for head in wanted if head not in found]

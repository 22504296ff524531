"""Streams and their grants: a promise may not change under releases that were made under it."""

import json
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from optstream.errors import LedgerError
from optstream.ledger.chain import GENESIS, append
from optstream.ledger.engine import insert_row
from optstream.ledger.records import StreamTerms
from optstream.ledger.schema import grants, releases, streams
from optstream.privacy import PrivacyModel

OF_GRANT = ("epsilon", "window_length", "alpha", "unit", "leaves_per_step", "windows", "calendar")
"""What all streams of a grant agree on: their spends are added up, step by step."""

REMEDY = "a change of the promise needs an amendment; restore the configuration, or release under a new grant"

_LOCKED_STREAM = select(streams).where(streams.c.name == bindparam("stream")).with_for_update()
_LOCKED_GRANT = select(grants).where(grants.c.id == bindparam("grant")).with_for_update()


def lock(connection: Connection, stream: str) -> tuple[Any, Any]:
    """The rows of a stream and of its grant, held to the end of the transaction, always in this order.

    Raises LedgerError for a stream that is not enrolled.
    """
    row = connection.execute(_LOCKED_STREAM, {"stream": stream}).one_or_none()
    if row is None:
        raise LedgerError(f"stream {stream!r} is not in the ledger: enrol it first")
    grant = connection.execute(_LOCKED_GRANT, {"grant": row.grant_id}).one()
    return row, grant


def find_stream(connection: Connection, stream: str) -> Any:
    """The row of a stream, or None."""
    return connection.execute(select(streams).where(streams.c.name == stream)).one_or_none()


def find_grant(connection: Connection, grant: str) -> Any:
    """The row of a grant. Raises LedgerError if there is none."""
    row = connection.execute(select(grants).where(grants.c.name == grant)).one_or_none()
    if row is None:
        raise LedgerError(f"grant {grant!r} is not in the ledger: enrol one of its streams first")
    return row


def enrol(connection: Connection, terms: StreamTerms, now: datetime) -> None:
    """Insert the stream, or compare it with what is there."""
    query = select(streams).where(streams.c.name == terms.stream).with_for_update()
    stream = connection.execute(query).one_or_none()
    if stream is not None:
        known = terms_of(connection, stream)
        if known == terms:
            return
        changed = [name for name, value in known.promise().items() if terms.promise()[name] != value]
        if changed and _has_releases(connection, stream.id):
            raise LedgerError(
                f"stream {terms.stream!r} has releases, and its {', '.join(changed)} differ from what they "
                f"were made under: {REMEDY}"
            )
    columns = {
        "grant_id": _agreed_grant(connection, terms, None if stream is None else stream.id),
        "model": json.dumps(terms.model.to_document(), sort_keys=True),
        "hierarchy_hash": terms.hierarchy_hash,
        "calibration": terms.calibration,
        "calendar": terms.calendar,
        "document": terms.document,
    }
    if stream is None:
        start = {"name": terms.stream, "head": GENESIS, "n_events": 0}
        stream_id = insert_row(connection, streams, **start, **columns)
    else:
        stream_id = stream.id
        connection.execute(update(streams).where(streams.c.id == stream_id).values(**columns))
    append(connection, stream_id, "enrolled" if stream is None else "terms", now, event_body(terms))


def event_body(terms: StreamTerms) -> dict[str, str | int]:
    """The terms as an event records them."""
    return {**terms.promise(), "document": terms.document}


def terms_of(connection: Connection, stream: Any) -> StreamTerms:
    """A stream's row as terms."""
    grant = connection.execute(select(grants.c.name).where(grants.c.id == stream.grant_id)).scalar_one()
    model = json.loads(stream.model)
    amounts = {name: Fraction(model[name]) for name in ("epsilon", "alpha", "resolution")}
    return StreamTerms(
        stream=stream.name,
        grant=grant,
        model=PrivacyModel(**{**model, **amounts}),
        hierarchy_hash=stream.hierarchy_hash,
        calibration=stream.calibration,
        calendar=stream.calendar,
        document=stream.document,
    )


def _has_releases(connection: Connection, *stream_ids: int) -> bool:
    query = select(releases.c.id).where(releases.c.stream_id.in_(stream_ids)).limit(1)
    return connection.execute(query).first() is not None


def _agreed_grant(connection: Connection, terms: StreamTerms, stream_id: int | None) -> int:
    """The key of the grant, made or changed if nobody else relies on it; else it must agree."""
    promise = terms.promise()
    wanted = {name: promise[name] for name in OF_GRANT}
    grant = connection.execute(
        select(grants).where(grants.c.name == terms.grant).with_for_update()
    ).one_or_none()
    if grant is None:
        return insert_row(connection, grants, name=terms.grant, longest_spend=0, **wanted)
    differing = [name for name, value in wanted.items() if getattr(grant, name) != value]
    if differing:
        members = (
            connection.execute(select(streams.c.id).where(streams.c.grant_id == grant.id)).scalars().all()
        )
        if any(member != stream_id for member in members):
            raise LedgerError(
                f"grant {terms.grant!r} is shared, and the {', '.join(differing)} of stream {terms.stream!r} "
                f"differ from it: streams of one grant must agree; {REMEDY}"
            )
        connection.execute(update(grants).where(grants.c.id == grant.id).values(**wanted))
    return int(grant.id)

"""What is asked of streams and changes nothing: functions of a connection, each a method of `Ledger`."""

import json
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, Select, select

from optstream.errors import LedgerError
from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.database.rows import read_rows
from optstream.ledger.database.schema import EventRow, StreamRow
from optstream.ledger.database.stream_rows import find_stream, grant_of, id_of, terms_of
from optstream.ledger.dated_trees import Entries, trees_said
from optstream.ledger.hash_chain import check_contains
from optstream.ledger.records import StreamTerms
from optstream.privacy import PrivacyModel


def terms(connection: Connection, stream: str) -> StreamTerms | None:
    """Return a stream's terms.

    Args:
        stream: Name of the stream.

    Returns:
        The terms; None where the stream is not enrolled.
    """
    row = find_stream(connection, stream)
    return None if row is None else terms_of(connection, row)


def siblings(connection: Connection, stream: str) -> tuple[StreamTerms, ...]:
    """Return the terms of all other streams of a stream's privacy budget.

    Args:
        stream: Name of the stream.

    Returns:
        Terms in the order of enrolment; empty for an unknown stream.
    """
    others = _members(stream).where(StreamRow.name != stream).order_by(StreamRow.id)
    return tuple(terms_of(connection, other) for other in read_rows(connection, others))


def streams(connection: Connection) -> tuple[str, ...]:
    """Return the names of all enrolled streams.

    Returns:
        Sorted; empty for a new ledger.
    """
    return tuple(sorted(connection.execute(select(StreamRow.name)).scalars()))


def documents(connection: Connection, stream: str) -> tuple[str, ...]:
    """Return every document that the terms of a privacy budget's streams ever had.

    Args:
        stream: Name of one of its streams.

    Returns:
        JSON texts, each once, the oldest first; empty for an unknown stream.
    """
    of_grant = _members(stream).with_only_columns(StreamRow.id)
    query = select(EventRow.body).where(EventRow.period.is_(None), EventRow.stream_id.in_(of_grant))
    bodies = connection.execute(query.order_by(EventRow.id)).scalars()
    return tuple(dict.fromkeys(json.loads(body).get("document", "{}") for body in bodies))


def trees(connection: Connection, stream: str) -> dict[int, Entries]:
    """Return the list of trees under which the days of each privacy guarantee were planned.

    Args:
        stream: Name of the stream.

    Returns:
        By number of the privacy guarantee, as `ReleaseOutline.amendment` names it; empty for an unknown
        stream.
    """
    query = select(EventRow.body).where(EventRow.stream_id == id_of(stream), EventRow.period.is_(None))
    bodies = map(json.loads, connection.execute(query.order_by(EventRow.number)).scalars())
    return {int(body.get("amendment", 0)): trees_said(body) for body in bodies}


def guarantee_number(connection: Connection, stream: str) -> int:
    """Return the number of the privacy guarantee that is in force for a stream.

    Args:
        stream: Name of the stream.

    Returns:
        The number; 0 until the first amendment, and for an unknown stream.
    """
    row = find_stream(connection, stream)
    return 0 if row is None else grant_of(connection, row).amendment


def guarantees(connection: Connection, stream: str) -> dict[int, PrivacyModel]:
    """Return the privacy guarantees that a stream ever had, since its privacy budget began.

    Args:
        stream: Name of the stream.

    Returns:
        By number, as `ReleaseOutline.amendment` names them; the highest is in force for new days. With the
        stream's own alpha, where it is a product of the budget (Lemma 12a), and its resolution of now. Empty
        for an unknown stream.
    """
    row = find_stream(connection, stream)
    if row is None:
        return {}
    known, found = terms_of(connection, row), guarantees_of(connection, grant_of(connection, row))
    own, resolution = known.alpha_ratio, known.model.resolution
    return {
        number: replace(model, alpha=own * model.alpha, resolution=resolution)
        for number, model in found.by_number.items()
    }


def head(connection: Connection, stream: str) -> str:
    """Return the hash of a stream's last event, for the catalogue to carry.

    Args:
        stream: Name of the stream.

    Returns:
        SHA-256 in hexadecimal.

    Raises:
        LedgerError: The stream is not enrolled.
    """
    return head_after(connection, stream, None)


def head_after(connection: Connection, stream: str, known: str | None) -> str:
    """Return the head as `head` does, if the ledger contains the one that the catalogue carries.

    Called inside the published folder's lock, as `optstream.catalogue.publish` does, it makes the newest head
    of a catalogue stand for all of them. Each publication then carries the last event of a chain that has the
    head of the publication before; chains only grow, so a ledger, or a copy of it from any time, that
    contains the newest head contains all earlier ones, and whatever was published with them.

    Args:
        stream: Name of the stream.
        known: The head that the catalogue carries now; None if there is no catalogue yet.

    Returns:
        SHA-256 in hexadecimal.

    Raises:
        LedgerError: The ledger does not contain `known`, so that it is an older copy or another ledger; or
            the stream is not enrolled.
    """
    row = find_stream(connection, stream)
    if row is None:
        raise LedgerError(f"stream {stream!r} is not in the ledger: enrol it first")
    check_contains(connection, [] if known is None else [known])
    return row.head


def heads(connection: Connection, stream: str) -> dict[str, tuple[int, str]]:
    """Return how long the chain of each stream of a privacy budget is, and its head.

    Args:
        stream: Name of one of its streams.

    Returns:
        For each stream how many events it has and the hash of the last; empty for an unknown stream.
    """
    return {one.name: (one.n_events, one.head) for one in read_rows(connection, _members(stream))}


def last_event_at(connection: Connection, stream: str) -> datetime | None:
    """Return the instant of a stream's last event, by the clock of who wrote it.

    Args:
        stream: Name of the stream.

    Returns:
        The instant (UTC); None where there is no event.
    """
    last = select(EventRow.at).where(EventRow.stream_id == id_of(stream)).order_by(EventRow.number.desc())
    at = connection.execute(last.limit(1)).scalar()
    return None if at is None else datetime.fromisoformat(at)


def _members(stream: str) -> Select[tuple[StreamRow]]:
    """Return the streams of a stream's privacy budget, itself among them; none of an unknown one."""
    grant = select(StreamRow.grant_id).where(StreamRow.name == stream).scalar_subquery()
    return select(StreamRow).where(StreamRow.grant_id == grant)

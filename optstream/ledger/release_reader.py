"""What is asked of releases and changes nothing: functions of a connection, each a method of `Ledger`."""

import json
from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection, Row, func, select

from optstream.ledger.accounting.spends import charged_to_release
from optstream.ledger.database.rows import one_row, read_rows
from optstream.ledger.database.schema import EventRow, ReleaseRow, StreamRow
from optstream.ledger.database.stream_rows import id_of
from optstream.ledger.records import ReleaseEvent, ReleaseOutline, ReleaseRecord, ReleaseState, check_key
from optstream.ledger.transactions import revisions
from optstream.ledger.transactions.held import find_row
from optstream.ledger.transactions.revisions import Vintage

ROWS_AT_ONCE = 10_000
_OUTLINES = select(*(getattr(ReleaseRow, name) for name in ReleaseOutline.__dataclass_fields__))


def find(connection: Connection, stream: str, period: str, revision: int = 0) -> ReleaseRecord | None:
    """Return one release.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.

    Returns:
        The release; None where there is none.

    Raises:
        ParameterError: A name is not printable text, or the revision less than 0.
    """
    check_key(stream, period, revision)
    release = find_row(connection, stream, period, revision)
    return None if release is None else _record(connection, stream, release)


def releases(connection: Connection, stream: str) -> tuple[ReleaseRecord, ...]:
    """Return all releases of a stream.

    Args:
        stream: Name of the stream.

    Returns:
        The releases by first step, then revision; empty for an unknown stream.
    """
    query = select(ReleaseRow).where(ReleaseRow.stream_id == id_of(stream))
    found = read_rows(connection, query.order_by(ReleaseRow.first_step, ReleaseRow.revision))
    return tuple(_record(connection, stream, release) for release in found)


def latest(connection: Connection, stream: str, period: str) -> ReleaseRecord | None:
    """Return the release of a period that has the highest revision.

    Args:
        stream: Name of the stream.
        period: Key of the period.

    Returns:
        The release; None where the period has none.

    Raises:
        ParameterError: A name is not printable text.
    """
    check_key(stream, period, 0)
    query = select(ReleaseRow).where(ReleaseRow.stream_id == id_of(stream), ReleaseRow.period == period)
    release = one_row(connection, query.order_by(ReleaseRow.revision.desc()).limit(1))
    return None if release is None else _record(connection, stream, release)


def drawn_before(connection: Connection, stream: str, first_step: int) -> ReleaseRecord | None:
    """Return the last release before a step that has measurements: DRAWN or PUBLISHED.

    Restatements are left out: they go on from nothing, and nothing goes on from them.

    Args:
        stream: Name of the stream.
        first_step: Running index; only releases that begin before it are looked at.

    Returns:
        The release; None where none has measurements.
    """
    query = select(ReleaseRow).where(
        ReleaseRow.stream_id == id_of(stream),
        ReleaseRow.revision == 0,
        ReleaseRow.first_step < first_step,
        ReleaseRow.state.in_([ReleaseState.DRAWN.value, ReleaseState.PUBLISHED.value]),
    )
    release = one_row(connection, query.order_by(ReleaseRow.first_step.desc()).limit(1))
    return None if release is None else _record(connection, stream, release)


def vintages_of(connection: Connection, stream: str, period: str, revision: int) -> tuple[Vintage, ...]:
    """Return the new estimates of one release.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.

    Returns:
        Vintages by number, rising; none for an unknown release.

    Raises:
        ParameterError: A name is not printable text, or the revision less than 0.
    """
    check_key(stream, period, revision)
    release = find_row(connection, stream, period, revision)
    return () if release is None else tuple(revisions.of_release(connection, release.id))


def outlines(connection: Connection, stream: str, steps: range | None = None) -> Iterator[ReleaseOutline]:
    """Yield a stream's releases without their spends, by first step, then revision.

    Memory does not grow with the history; the transaction is open until the last release was taken.

    Args:
        stream: Name of the stream.
        steps: Only releases that begin at one of these steps; None for all.

    Yields:
        One release after the other; none for an unknown stream.
    """
    query = _OUTLINES.where(ReleaseRow.stream_id == id_of(stream))
    if steps is not None:
        query = query.where(ReleaseRow.first_step >= steps.start, ReleaseRow.first_step < steps.stop)
    ordered = query.order_by(ReleaseRow.first_step, ReleaseRow.revision)
    yield from map(_outline, connection.execute(ordered.execution_options(yield_per=ROWS_AT_ONCE)))


def last_release(connection: Connection, stream: str) -> ReleaseOutline | None:
    """Return the release of a stream that begins last, in its newest revision.

    Args:
        stream: Name of the stream.

    Returns:
        The release; None where there is none.
    """
    query = _OUTLINES.where(ReleaseRow.stream_id == id_of(stream)).limit(1)
    newest = query.order_by(ReleaseRow.first_step.desc(), ReleaseRow.revision.desc())
    row = connection.execute(newest).one_or_none()
    return None if row is None else _outline(row)


def has_known_noise(connection: Connection, stream: str, steps: range) -> bool:
    """Return whether the noise of a first release was compromised that begins at one of these steps.

    Args:
        stream: Name of the stream.
        steps: Running indices.

    Returns:
        True where there is at least one.
    """
    lost = select(ReleaseRow.id).where(
        ReleaseRow.stream_id == id_of(stream),
        ReleaseRow.first_step >= steps.start,
        ReleaseRow.first_step < steps.stop,
        ReleaseRow.compromised.is_not(None),
        ReleaseRow.revision == 0,
    )
    return connection.execute(lost.limit(1)).first() is not None


def known_noise(connection: Connection, stream: str) -> tuple[tuple[str, str], ...]:
    """Return whose noise was compromised, of all streams that share a stream's privacy budget.

    A window of the budget that holds a step of one of them has lost everything, in every stream (Lemma 1).

    Args:
        stream: Name of one of the streams.

    Returns:
        Stream and period of each release, once, sorted; empty for an unknown stream.
    """
    grant = select(StreamRow.grant_id).where(StreamRow.name == stream).scalar_subquery()
    query = select(StreamRow.name, ReleaseRow.period).join(ReleaseRow, ReleaseRow.stream_id == StreamRow.id)
    lost = query.where(StreamRow.grant_id == grant, ReleaseRow.compromised.is_not(None)).distinct()
    return tuple(sorted((row.name, row.period) for row in connection.execute(lost)))


def count_by_state(connection: Connection, stream: str) -> dict[ReleaseState, int]:
    """Return how many releases of a stream are in each state.

    Args:
        stream: Name of the stream.

    Returns:
        Counts of the states that occur, in the states' order; empty for an unknown stream.
    """
    query = select(ReleaseRow.state, func.count()).where(ReleaseRow.stream_id == id_of(stream))
    found = dict(connection.execute(query.group_by(ReleaseRow.state)).tuples().all())
    return {state: found[state] for state in ReleaseState if state in found}


def event_times(connection: Connection, stream: str, kind: str) -> dict[tuple[str, int], datetime]:
    """Return when each release had its last event of a kind. Reads all events of the stream.

    Args:
        stream: Name of the stream.
        kind: Such as "reserved", "drawn" or "published".

    Returns:
        Instants by period and revision, of those that had such an event.
    """
    query = select(EventRow.period, EventRow.revision, EventRow.at).order_by(EventRow.number)
    found = connection.execute(query.where(EventRow.stream_id == id_of(stream), EventRow.kind == kind))
    return {(row.period, row.revision): datetime.fromisoformat(row.at) for row in found}


def last_shown(connection: Connection, stream: str) -> int:
    """Return how many events a stream had once the newest thing that readers have was staged.

    Args:
        stream: Name of the stream.

    Returns:
        Up to that of the last release or new estimate that was staged and is published by now, as `heads`
        counts; 0 for none.
    """
    kinds = ("staged", "vintage staged", "published", "vintage published")
    query = select(EventRow.number, EventRow.kind, EventRow.period, EventRow.revision, EventRow.body)
    of_kind = query.where(EventRow.stream_id == id_of(stream), EventRow.kind.in_(kinds))
    last, staged = 0, dict[tuple[str | None, int | None, int], int]()
    for row in connection.execute(of_kind.order_by(EventRow.number)):
        key = (row.period, row.revision, json.loads(row.body).get("vintage", 0))
        if row.kind.endswith("staged"):
            staged[key] = row.number + 1  # numbers are from 0
        else:
            last = max(last, staged.get(key, 0))
    return last


def events_of(
    connection: Connection, stream: str, period: str | None = None, first: int = 0
) -> tuple[ReleaseEvent, ...]:
    """Return what happened to the releases of a period, or to a stream.

    Args:
        stream: Name of the stream.
        period: Key of the only period; None for all, and for what happened to the stream itself.
        first: Number of the first event of the stream that counts.

    Returns:
        Events in the order of the chain; none where the period has no release.
    """
    columns = (EventRow.at, EventRow.kind, EventRow.revision, EventRow.period, EventRow.number)
    query = select(*columns).where(EventRow.stream_id == id_of(stream), EventRow.number >= first)
    if period is not None:
        query = query.where(EventRow.period == period)
    return tuple(
        ReleaseEvent(datetime.fromisoformat(row.at), row.kind, row.revision or 0, row.period, row.number)
        for row in connection.execute(query.order_by(EventRow.number))
    )


def _record(connection: Connection, stream: str, release: ReleaseRow) -> ReleaseRecord:
    outline = {name: getattr(release, name) for name in ReleaseOutline.__dataclass_fields__}
    return ReleaseRecord(
        **{**outline, "state": ReleaseState(release.state)},
        stream=stream,
        owner=release.owner,
        lease_until=datetime.fromisoformat(release.lease_until),
        fencing_token=release.fence,
        drawing=release.drawing,
        redraws=release.redraws,
        spends=charged_to_release(connection, release.id),
    )


def _outline(row: Row[tuple[object, ...]]) -> ReleaseOutline:
    return ReleaseOutline(**{**row._mapping, "state": ReleaseState(row.state)})

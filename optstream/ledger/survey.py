"""What an operator asks of the ledger: outlines, events and exports; each method is one transaction."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from sqlalchemy import Row as RowOfColumns
from sqlalchemy import Select, func, select

from optstream.ledger import hash_chain
from optstream.ledger.database.engine import reading
from optstream.ledger.database.rows import rows
from optstream.ledger.database.schema import EventRow, ReleaseRow, StreamRow
from optstream.ledger.dated_trees import Entries, trees_said
from optstream.ledger.export import Batch, batches
from optstream.ledger.records import (
    ReleaseEvent,
    ReleaseOutline,
    ReleaseState,
    StreamTerms,
)
from optstream.ledger.transactions.stream_rows import id_of, terms_of
from optstream.ledger.window_reader import WindowReader

ROWS_AT_ONCE = 10_000
_OUTLINES = select(*(getattr(ReleaseRow, name) for name in ReleaseOutline.__dataclass_fields__))


class Survey(WindowReader):
    """The part of `Reader` that no run needs."""

    def siblings(self, stream: str) -> tuple[StreamTerms, ...]:
        """Return the terms of all other streams of a stream's privacy budget.

        Args:
            stream: Name of the stream.

        Returns:
            Terms in the order of enrolment; empty for an unknown stream.
        """
        others = _members(stream).where(StreamRow.name != stream).order_by(StreamRow.id)
        with reading(self._engine) as connection:
            return tuple(terms_of(connection, other) for other in rows(connection, others))

    def heads(self, stream: str) -> dict[str, tuple[int, str]]:
        """Return how long the chain of each stream of a privacy budget is, and its head.

        Args:
            stream: Name of one of its streams.

        Returns:
            For each stream how many events it has and the hash of the last; empty for an unknown stream.
        """
        with reading(self._engine) as connection:
            return {one.name: (one.n_events, one.head) for one in rows(connection, _members(stream))}

    def documents(self, stream: str) -> tuple[str, ...]:
        """Return every document that the terms of a privacy budget's streams ever had.

        Args:
            stream: Name of one of its streams.

        Returns:
            JSON texts, each once, the oldest first; empty for an unknown stream.
        """
        of_grant = _members(stream).with_only_columns(StreamRow.id)
        query = select(EventRow.body).where(EventRow.period.is_(None), EventRow.stream_id.in_(of_grant))
        with reading(self._engine) as connection:
            bodies = connection.execute(query.order_by(EventRow.id)).scalars()
            return tuple(dict.fromkeys(json.loads(body).get("document", "{}") for body in bodies))

    def streams(self) -> tuple[str, ...]:
        """Return the names of all enrolled streams.

        Returns:
            Sorted; empty for a new ledger.
        """
        with reading(self._engine) as connection:
            return tuple(sorted(connection.execute(select(StreamRow.name)).scalars()))

    def outlines(self, stream: str, steps: range | None = None) -> Iterator[ReleaseOutline]:
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
        with reading(self._engine) as connection:
            for row in connection.execute(ordered.execution_options(yield_per=ROWS_AT_ONCE)):
                yield _outline(row)

    def has_known_noise(self, stream: str, steps: range) -> bool:
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
        with reading(self._engine) as connection:
            return connection.execute(lost.limit(1)).first() is not None

    def count_by_state(self, stream: str) -> dict[ReleaseState, int]:
        """Return how many releases of a stream are in each state.

        Args:
            stream: Name of the stream.

        Returns:
            Counts of the states that occur, in the states' order; empty for an unknown stream.
        """
        query = select(ReleaseRow.state, func.count()).where(ReleaseRow.stream_id == id_of(stream))
        with reading(self._engine) as connection:
            found = dict(connection.execute(query.group_by(ReleaseRow.state)).tuples().all())
        return {state: found[state] for state in ReleaseState if state in found}

    def last_release(self, stream: str) -> ReleaseOutline | None:
        """Return the release of a stream that begins last, in its newest revision.

        Args:
            stream: Name of the stream.

        Returns:
            The release; None where there is none.
        """
        query = _OUTLINES.where(ReleaseRow.stream_id == id_of(stream)).limit(1)
        with reading(self._engine) as connection:
            row = connection.execute(
                query.order_by(ReleaseRow.first_step.desc(), ReleaseRow.revision.desc())
            ).one_or_none()
            return None if row is None else _outline(row)

    def event_times(self, stream: str, kind: str) -> dict[tuple[str, int], datetime]:
        """Return when each release had its last event of a kind. Reads all events of the stream.

        Args:
            stream: Name of the stream.
            kind: Such as "reserved", "drawn" or "published".

        Returns:
            Instants by period and revision, of those that had such an event.
        """
        query = select(EventRow.period, EventRow.revision, EventRow.at).order_by(EventRow.number)
        of_kind = query.where(EventRow.stream_id == id_of(stream), EventRow.kind == kind)
        with reading(self._engine) as connection:
            found = connection.execute(of_kind)
            return {(row.period, row.revision): datetime.fromisoformat(row.at) for row in found}

    def last_shown(self, stream: str) -> int:
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
        with reading(self._engine) as connection:
            for row in connection.execute(of_kind.order_by(EventRow.number)):
                key = (row.period, row.revision, json.loads(row.body).get("vintage", 0))
                if row.kind.endswith("staged"):
                    staged[key] = row.number + 1  # numbers are from 0
                else:
                    last = max(last, staged.get(key, 0))
        return last

    def trees(self, stream: str) -> dict[int, Entries]:
        """Return the list of trees under which the days of each privacy guarantee were planned.

        Args:
            stream: Name of the stream.

        Returns:
            By number of the privacy guarantee, as `ReleaseOutline.amendment` names it; empty for an unknown
            stream.
        """
        query = select(EventRow.body).where(EventRow.stream_id == id_of(stream), EventRow.period.is_(None))
        found = {}
        with reading(self._engine) as connection:
            for text in connection.execute(query.order_by(EventRow.number)).scalars():
                body = json.loads(text)
                found[int(body.get("amendment", 0))] = trees_said(body)
        return found

    def events_of(self, stream: str, period: str | None = None, first: int = 0) -> tuple[ReleaseEvent, ...]:
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
        with reading(self._engine) as connection:
            return tuple(
                ReleaseEvent(
                    datetime.fromisoformat(row.at), row.kind, row.revision or 0, row.period, row.number
                )
                for row in connection.execute(query.order_by(EventRow.number))
            )

    def batches(self, n_rows: int) -> Iterator[Batch]:
        """Yield all tables for an export, from one moment, in bounded memory.

        Args:
            n_rows: The most rows of a batch, at least 1.

        Yields:
            A table's name, and some of its rows as columns.
        """
        with reading(self._engine) as connection:
            yield from batches(connection, n_rows)

    def missing_heads(self, heads: Iterable[str]) -> list[str]:
        """Return those of a catalogue's heads that no event has; with any, the ledger is an older copy.

        Args:
            heads: Hashes of events.

        Returns:
            Those that are missing, sorted.
        """
        with reading(self._engine) as connection:
            return hash_chain.missing(connection, heads)

    def last_event_at(self, stream: str) -> datetime | None:
        """Return the instant of a stream's last event, by the clock of who wrote it.

        Args:
            stream: Name of the stream.

        Returns:
            The instant (UTC); None where there is no event.
        """
        last = select(EventRow.at).where(EventRow.stream_id == id_of(stream)).order_by(EventRow.number.desc())
        with reading(self._engine) as connection:
            at = connection.execute(last.limit(1)).scalar()
            return None if at is None else datetime.fromisoformat(at)


def _outline(row: RowOfColumns[tuple[object, ...]]) -> ReleaseOutline:
    return ReleaseOutline(**{**row._mapping, "state": ReleaseState(row.state)})


def _members(stream: str) -> Select[tuple[StreamRow]]:
    """Return the streams of a stream's privacy budget, itself among them; none of an unknown one."""
    grant = select(StreamRow.grant_id).where(StreamRow.name == stream).scalar_subquery()
    return select(StreamRow).where(StreamRow.grant_id == grant)

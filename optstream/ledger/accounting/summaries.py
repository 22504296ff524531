"""The ledger's facts without its spends: cheap to read for a long history. Nothing is changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from optstream.ledger.database.schema import EventRow, ReleaseRow, StreamRow
from optstream.ledger.records import ReleaseState

ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class ReleaseOutline:
    """A release without what it is charged; the fields are those of `ReleaseRecord`."""

    period: str
    revision: int
    state: ReleaseState
    first_step: int
    n_steps: int
    measurements_hash: str | None
    staged_hash: str | None
    published_name: str | None
    reason: str | None
    withdrawn: str | None
    compromised: str | None
    amendment: int

    @property
    def end(self) -> int:
        """The step after its last."""
        return self.first_step + self.n_steps


def stream_names(connection: Connection) -> tuple[str, ...]:
    """Return every enrolled stream, sorted."""
    return tuple(sorted(connection.execute(select(StreamRow.name)).scalars()))


def outlines(connection: Connection, stream_id: int, steps: range | None) -> Iterator[ReleaseOutline]:
    """Yield a stream's releases by first step, then revision; of `steps`, those that begin at one of them."""
    columns = [getattr(ReleaseRow, name) for name in ReleaseOutline.__dataclass_fields__]
    query = select(*columns).where(ReleaseRow.stream_id == stream_id)
    if steps is not None:
        query = query.where(ReleaseRow.first_step >= steps.start, ReleaseRow.first_step < steps.stop)
    ordered = query.order_by(ReleaseRow.first_step, ReleaseRow.revision)
    for row in connection.execute(ordered.execution_options(yield_per=ROWS_AT_ONCE)):
        yield ReleaseOutline(**{**row._mapping, "state": ReleaseState(row.state)})


def has_known_noise(connection: Connection, stream_id: int, steps: range) -> bool:
    """Return whether a first release that begins at one of these steps was compromised; one answer, no
    rows.
    """
    inside = (ReleaseRow.first_step >= steps.start) & (ReleaseRow.first_step < steps.stop)
    lost = ReleaseRow.compromised.is_not(None) & (ReleaseRow.revision == 0)
    query = select(ReleaseRow.id).where(ReleaseRow.stream_id == stream_id, inside, lost).limit(1)
    return connection.execute(query).first() is not None


def count_by_state(connection: Connection, stream_id: int) -> dict[ReleaseState, int]:
    """Return how many releases of a stream are in each state; states without any are left out."""
    query = select(ReleaseRow.state, func.count()).where(ReleaseRow.stream_id == stream_id)
    found = {
        ReleaseState(state): count for state, count in connection.execute(query.group_by(ReleaseRow.state))
    }
    return {state: found[state] for state in ReleaseState if state in found}


def last_release(connection: Connection, stream_id: int) -> ReleaseOutline | None:
    """Return the release that begins last, in its newest revision."""
    latest = select(func.max(ReleaseRow.first_step)).where(ReleaseRow.stream_id == stream_id)
    first_step = connection.execute(latest).scalar_one()
    if first_step is None:
        return None
    return list(outlines(connection, stream_id, range(first_step, first_step + 1)))[-1]


def event_times(connection: Connection, stream_id: int, kind: str) -> dict[tuple[str, int], datetime]:
    """Return when each release of a stream had its last event of this kind, by period and revision."""
    query = select(EventRow.period, EventRow.revision, EventRow.at).where(
        EventRow.stream_id == stream_id, EventRow.kind == kind
    )
    rows = connection.execute(query.order_by(EventRow.number))
    return {(row.period, row.revision): datetime.fromisoformat(row.at) for row in rows}

"""The ledger as the flow sees it: each method is one transaction, and takes the time as an argument."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, ColumnElement, Connection, Engine, Select, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute

from optstream.errors import LedgerError
from optstream.ledger import accounting, lifecycle
from optstream.ledger.accounting import COLUMNS, charged_to_release, guarantees_of
from optstream.ledger.database import lease_time, open_engine, reading, writing
from optstream.ledger.lifecycle import Vintage, list_vintages
from optstream.ledger.records import (
    Entries,
    Key,
    ReleaseEvent,
    ReleaseOutline,
    ReleaseRecord,
    ReleaseState,
    StreamTerms,
    check_key,
    trees_from,
)
from optstream.ledger.schema import (
    GUARANTEE_COLUMNS,
    HASHED,
    EventRow,
    GrantRow,
    ReleaseRow,
    SpendRow,
    StreamRow,
    check_contains,
    columns_named,
    find_row,
    find_stream,
    grant_of,
    id_of,
    missing_heads,
    one_row,
    read_rows,
    terms_of,
)
from optstream.ledger.terms import amend, enrol, refuse_amendment
from optstream.ledger.verify import verify
from optstream.privacy import PrivacyModel

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def open_ledger(
    url: str | URL, *, busy_timeout_seconds: float = 30.0, database_time: bool = False
) -> "Ledger":
    """Open the ledger at an SQLAlchemy URL; make it, or upgrade its schema, where needed.

    Missing SQLite files are made with mode 0600, folders with 0700. Every commit is synced. With
    `database_time` leases end by the clock of PostgreSQL's server, whatever that of a machine. Raises
    LedgerError, which does not show the URL, for it may hold a password.
    """
    engine = open_engine(url, busy_timeout_seconds)
    engine.update_execution_options(ledger_clock=database_time)
    return Ledger(engine)


# Questions about releases, which change nothing.

ROWS_AT_ONCE = 10_000
_AS_STORED = [name for name in ReleaseOutline.__dataclass_fields__ if hasattr(ReleaseRow, name)]


def find(connection: Connection, key: Key) -> ReleaseRecord | None:
    """Return one release; None where there is none."""
    check_key(key)
    release = find_row(connection, key)
    return None if release is None else _record(connection, key.stream, release)


def releases(connection: Connection, stream: str) -> tuple[ReleaseRecord, ...]:
    """Return all releases of a stream by first step, then revision; none for an unknown stream."""
    query = select(ReleaseRow).where(ReleaseRow.stream_id == id_of(stream))
    found = read_rows(connection, query.order_by(ReleaseRow.first_step, ReleaseRow.revision))
    return tuple(_record(connection, stream, release) for release in found)


def latest(connection: Connection, stream: str, period: str) -> ReleaseRecord | None:
    """Return the release of a period that has the highest revision; None where the period has none."""
    check_key(Key(stream, period))
    return _last(connection, stream, ReleaseRow.revision, ReleaseRow.period == period)


def drawn_before(connection: Connection, stream: str, first_step: int) -> ReleaseRecord | None:
    """Return the last revision 0 before a step that is DRAWN or PUBLISHED: only these carry state."""
    is_drawn = ReleaseRow.state.in_([ReleaseState.DRAWN.value, ReleaseState.PUBLISHED.value])
    only = (ReleaseRow.revision == 0, ReleaseRow.first_step < first_step, is_drawn)
    return _last(connection, stream, ReleaseRow.first_step, *only)


def _last(
    connection: Connection, stream: str, by: InstrumentedAttribute[int], *only: ColumnElement[bool]
) -> ReleaseRecord | None:
    """Return the release with the greatest `by` among those that `only` keeps, in its newest revision."""
    query = select(ReleaseRow).where(ReleaseRow.stream_id == id_of(stream), *only)
    release = one_row(connection, query.order_by(by.desc(), ReleaseRow.revision.desc()).limit(1))
    return None if release is None else _record(connection, stream, release)


def vintages_of(connection: Connection, key: Key) -> tuple[Vintage, ...]:
    """Return the new estimates of one release by number; none for an unknown release."""
    check_key(key)
    release = find_row(connection, key)
    return () if release is None else list_vintages(connection, release.id)


def outlines(connection: Connection, stream: str, steps: range | None = None) -> Iterator[ReleaseOutline]:
    """Yield a stream's releases without their spends, by first step, then revision, in bounded memory."""
    query = select(ReleaseRow).where(ReleaseRow.stream_id == id_of(stream))
    if steps is not None:
        query = query.where(ReleaseRow.first_step >= steps.start, ReleaseRow.first_step < steps.stop)
    ordered = query.order_by(ReleaseRow.first_step, ReleaseRow.revision)
    for release in connection.execute(ordered.execution_options(yield_per=ROWS_AT_ONCE)):
        yield ReleaseOutline(**_facts(stream, release))


def last_release(connection: Connection, stream: str) -> ReleaseRecord | None:
    """Return the release of a stream that begins last, in its newest revision, or None."""
    return _last(connection, stream, ReleaseRow.first_step)


def known_noise(connection: Connection, stream: str) -> tuple[tuple[str, str], ...]:
    """Return stream and period of each release of the budget with compromised noise (Lemma 1)."""
    grant = select(StreamRow.grant_id).where(StreamRow.name == stream).scalar_subquery()
    query = select(StreamRow.name, ReleaseRow.period).join(ReleaseRow, ReleaseRow.stream_id == StreamRow.id)
    lost = query.where(StreamRow.grant_id == grant, ReleaseRow.compromised.is_not(None)).distinct()
    return tuple(sorted((row.name, row.period) for row in connection.execute(lost)))


def count_by_state(connection: Connection, stream: str) -> dict[ReleaseState, int]:
    """Return how many releases of a stream are in each state that occurs, in the states' order."""
    query = select(ReleaseRow.state, func.count()).where(ReleaseRow.stream_id == id_of(stream))
    found = dict(connection.execute(query.group_by(ReleaseRow.state)).tuples().all())
    return {state: found[state] for state in ReleaseState if state in found}


def event_times(connection: Connection, stream: str, kind: str) -> dict[tuple[str, int], datetime]:
    """Return the instant of each release's last event of a kind, by period and revision."""
    query = select(EventRow.period, EventRow.revision, EventRow.at).order_by(EventRow.number)
    found = connection.execute(query.where(EventRow.stream_id == id_of(stream), EventRow.kind == kind))
    return {(row.period, row.revision): datetime.fromisoformat(row.at) for row in found}


def last_shown(connection: Connection, stream: str) -> int:
    """Return how many events a stream had when the newest bytes published so far were staged; 0 for none."""
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
    """Return the events of a stream, or of one of its periods, from a first number on, in their order."""
    columns = (EventRow.at, EventRow.kind, EventRow.revision, EventRow.period, EventRow.number)
    query = select(*columns).where(EventRow.stream_id == id_of(stream), EventRow.number >= first)
    if period is not None:
        query = query.where(EventRow.period == period)
    return tuple(
        ReleaseEvent(datetime.fromisoformat(row.at), row.kind, row.revision or 0, row.period, row.number)
        for row in connection.execute(query.order_by(EventRow.number))
    )


def _record(connection: Connection, stream: str, release: ReleaseRow) -> ReleaseRecord:
    return ReleaseRecord(**_facts(stream, release), spends=charged_to_release(connection, release.id))


def _facts(stream: str, release: Any) -> dict[str, Any]:
    return {name: getattr(release, name) for name in _AS_STORED} | {
        "stream": stream,
        "state": ReleaseState(release.state),
        "lease_until": datetime.fromisoformat(release.lease_until),
        "fencing_token": release.fence,
    }


# Streams.


def terms(connection: Connection, stream: str) -> StreamTerms | None:
    """Return a stream's terms; None where the stream is not enrolled."""
    row = find_stream(connection, stream)
    return None if row is None else terms_of(connection, row)


def siblings(connection: Connection, stream: str) -> tuple[StreamTerms, ...]:
    """Return the terms of all other streams of a stream's privacy budget, in the order of enrolment."""
    others = _members(stream).where(StreamRow.name != stream).order_by(StreamRow.id)
    return tuple(terms_of(connection, other) for other in read_rows(connection, others))


def streams(connection: Connection) -> tuple[str, ...]:
    """Return the names of all enrolled streams, sorted."""
    return tuple(sorted(connection.execute(select(StreamRow.name)).scalars()))


def documents(connection: Connection, stream: str) -> tuple[str, ...]:
    """Return every document that the terms of the budget's streams ever had, the oldest first."""
    of_grant = _members(stream).with_only_columns(StreamRow.id)
    query = select(EventRow.body).where(EventRow.period.is_(None), EventRow.stream_id.in_(of_grant))
    bodies = connection.execute(query.order_by(EventRow.id)).scalars()
    return tuple(dict.fromkeys(json.loads(body).get("document", "{}") for body in bodies))


def trees(connection: Connection, stream: str) -> dict[int, Entries]:
    """Return the list of trees of each privacy guarantee, by its number (`ReleaseOutline.amendment`)."""
    query = select(EventRow.body).where(EventRow.stream_id == id_of(stream), EventRow.period.is_(None))
    bodies = map(json.loads, connection.execute(query.order_by(EventRow.number)).scalars())
    return {int(body.get("amendment", 0)): trees_from(body) for body in bodies}


def guarantee_number(connection: Connection, stream: str) -> int:
    """Return the number of the privacy guarantee in force for a stream; 0 until the first amendment."""
    row = find_stream(connection, stream)
    return 0 if row is None else grant_of(connection, row).amendment


def guarantees(connection: Connection, stream: str) -> dict[int, PrivacyModel]:
    """Return all privacy guarantees of a stream by number, with its own alpha and its current resolution."""
    row = find_stream(connection, stream)
    if row is None:
        return {}
    known, found = terms_of(connection, row), guarantees_of(connection, grant_of(connection, row))
    own, resolution = known.alpha_ratio, known.model.resolution
    return {
        number: replace(model, alpha=own * model.alpha, resolution=resolution)
        for number, model in found.by_number.items()
    }


def head(connection: Connection, stream: str, known: str | None = None) -> str:
    """Return the hash of a stream's last event (SHA-256, hexadecimal), for the catalogue to carry.

    `known` is the head that the catalogue carries now, None without one; raises LedgerError for a ledger that
    lacks it, an older copy or another. Called under the published folder's lock, each publication then
    carries an event after those of all earlier ones.
    """
    row = find_stream(connection, stream)
    if row is None:
        raise LedgerError(f"stream {stream!r} is not in the ledger: enrol it first")
    check_contains(connection, [] if known is None else [known])
    return row.head


def heads(connection: Connection, stream: str) -> dict[str, tuple[int, str]]:
    """Return the number of events and the head of each stream of a stream's privacy budget."""
    return {one.name: (one.n_events, one.head) for one in read_rows(connection, _members(stream))}


def last_event_at(connection: Connection, stream: str) -> datetime | None:
    """Return the instant (UTC) of a stream's last event, by its writer's clock; None without events."""
    last = select(EventRow.at).where(EventRow.stream_id == id_of(stream)).order_by(EventRow.number.desc())
    at = connection.execute(last.limit(1)).scalar()
    return None if at is None else datetime.fromisoformat(at)


def _members(stream: str) -> Select[tuple[StreamRow]]:
    """Return the streams of a stream's privacy budget, itself among them; none of an unknown one."""
    grant = select(StreamRow.grant_id).where(StreamRow.name == stream).scalar_subquery()
    return select(StreamRow).where(StreamRow.grant_id == grant)


# The ledger's tables as batches of columns, for an export: whole, from one moment, in bounded memory.

Batch = tuple[str, dict[str, list[Any]]]  # a table's name, and some of its rows as columns
_STREAM, _GRANT = StreamRow.name.label("stream"), GrantRow.name.label("grant")
_OWN = [one.name for one in ReleaseRow.__table__.columns if one.name not in ("id", "stream_id", "fence")]
_EXPORTED: dict[str, Select[Any]] = {
    "streams": select(_STREAM, _GRANT, *columns_named(GrantRow, GUARANTEE_COLUMNS))
    .add_columns(*columns_named(StreamRow, ("model", "hierarchy_hash", "calibration", "calendar")))
    .add_columns(StreamRow.document, StreamRow.n_events, StreamRow.head)
    .join(GrantRow, GrantRow.id == StreamRow.grant_id)
    .order_by(StreamRow.id),
    "releases": select(_STREAM, *columns_named(ReleaseRow, _OWN), ReleaseRow.fence.label("fencing_token"))
    .join(StreamRow, StreamRow.id == ReleaseRow.stream_id)
    .order_by(ReleaseRow.id),
    "spends": select(_STREAM, _GRANT, ReleaseRow.period, ReleaseRow.revision, SpendRow.generation)
    .add_columns((SpendRow.generation == ReleaseRow.generation).label("in_force"))
    .add_columns(*columns_named(SpendRow, COLUMNS), GrantRow.window_length)
    .join(ReleaseRow, ReleaseRow.id == SpendRow.release_id)
    .join(StreamRow, StreamRow.id == ReleaseRow.stream_id)
    .join(GrantRow, GrantRow.id == SpendRow.grant_id)
    .order_by(SpendRow.id),
    "events": select(_STREAM, *columns_named(EventRow, HASHED[1:]), EventRow.previous, EventRow.hash)
    .join(StreamRow, StreamRow.id == EventRow.stream_id)
    .order_by(EventRow.id),
}


def batches(connection: Connection, n_rows: int) -> Iterator[Batch]:
    """Yield streams, releases, spends and events for an export; one without rows once, with empty columns.

    A stream has its privacy budget's columns; a spend says whether it is in force, that is, charged.
    """
    for table, query in _EXPORTED.items():
        names = list(query.selected_columns.keys())
        result = connection.execute(query.execution_options(yield_per=n_rows))
        rows: Sequence[Any] = ()
        for rows in result.partitions():
            yield table, dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        if not rows:
            yield table, {name: [] for name in names}


def transaction(
    work: Callable[Concatenate[Connection, Arguments], Result | LedgerError],
) -> Callable[Concatenate["Ledger", Arguments], Result]:
    """Return the method that does `work` in a transaction, and raises the error that it returns, if any."""

    @wraps(work)
    def method(self: "Ledger", /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        def attempt() -> Result | LedgerError:
            with writing(self._engine) as connection:
                return work(connection, *arguments, **named)

        try:
            outcome = attempt()
        except LedgerError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            # two first enrolments met (PostgreSQL): the second try finds the other's row
            outcome = attempt()
        if isinstance(outcome, LedgerError):
            raise outcome
        return outcome

    return method


def question(
    work: Callable[Concatenate[Connection, Arguments], Result],
) -> Callable[Concatenate["Ledger", Arguments], Result]:
    """Return the method of `Ledger` that does `work`, which changes nothing, on the ledger of one moment."""

    @wraps(work)
    def method(self: "Ledger", /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with reading(self._engine) as connection:
            return work(connection, *arguments, **named)

    return method


def series(
    work: Callable[Concatenate[Connection, Arguments], Iterator[Result]],
) -> Callable[Concatenate["Ledger", Arguments], Iterator[Result]]:
    """Return the method as `question` does, for `work` that yields; it is over when the last was taken."""

    @wraps(work)
    def method(self: "Ledger", /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Iterator[Result]:
        with reading(self._engine) as connection:
            yield from work(connection, *arguments, **named)

    return method


class Ledger:
    """Spends and releases. Made by `open_ledger`; threads and processes may share the database.

    Each method is one transaction: when it returns, its records are durable, and its reads are of one
    moment; recording twice changes nothing. After an error nothing was changed, unless the message says that
    the release is VOID, or the connection to PostgreSQL broke during the commit, which may then have been
    made. The methods are functions of this package, without their first argument. They share:

    - `now`: the caller's time, with a time zone. `lease`: greater than 0, a day at most.
    - `owner`: a name unique to the run. `reason`: text without any value.
    - `reservation`: the newest one of its release; where it may be None, the caller is not checked.
    - ParameterError: an argument is outside its range.
    - LedgerError: release or privacy budget are not in the ledger, the release is not in a state that the
      method takes, or the reservation is not the newest. LedgerUnavailableError: try again later.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    enrol = transaction(enrol)
    amend = transaction(amend)
    reserve = transaction(lifecycle.reserve)

    renew = transaction(lifecycle.renew)
    end_lease = transaction(lifecycle.end_lease)
    release_lease = transaction(lifecycle.release_lease)
    adopt = transaction(lifecycle.adopt)

    begin_draw = transaction(lifecycle.begin_draw)
    call_off_draw = transaction(lifecycle.call_off_draw)
    record_drawn = transaction(lifecycle.record_drawn)
    record_staged = transaction(lifecycle.record_staged)
    record_published = transaction(lifecycle.record_published)
    void = transaction(lifecycle.void)
    withdraw = transaction(lifecycle.withdraw)
    compromise = transaction(lifecycle.compromise)

    revise = transaction(lifecycle.revise)
    record_vintage = transaction(lifecycle.record_vintage)
    record_vintage_published = transaction(lifecycle.record_vintage_published)

    refuse_amendment = question(refuse_amendment)
    terms = question(terms)
    siblings = question(siblings)
    streams = question(streams)
    documents = question(documents)
    trees = question(trees)
    guarantee_number = question(guarantee_number)
    guarantees = question(guarantees)
    head = question(head)
    heads = question(heads)
    missing_heads = question(missing_heads)
    last_event_at = question(last_event_at)

    find = question(find)
    releases = question(releases)
    latest = question(latest)
    drawn_before = question(drawn_before)
    vintages = question(lifecycle.vintages)
    vintages_of = question(vintages_of)
    outlines = series(outlines)
    last_release = question(last_release)
    known_noise = question(known_noise)
    count_by_state = question(count_by_state)
    event_times = question(event_times)
    last_shown = question(last_shown)
    events_of = question(events_of)

    window_spent = question(accounting.window_spent)
    charged_near = question(accounting.charged_near)
    judge_plan = question(accounting.judge_plan)
    worst = question(accounting.worst)
    charged_windows = question(accounting.charged_windows)
    last_charged = question(accounting.last_charged)
    shared_window = question(accounting.shared_window)
    spent_over = question(accounting.spent_over)

    batches = series(batches)
    lease_time = question(lease_time)

    def verify(self) -> list[str]:
        """Return a line for each edit, gap and reordering that hash chain and replay of the events show.

        Compare the catalogue's heads as well (`missing_heads`): a chain cut at its end is whole in itself,
        and a stream of which every row was deleted leaves no trace. Not seen are a renewed lease, the number
        of a row, and a change that keeps the meaning.
        """
        return verify(self._engine)

    def close(self) -> None:
        """Close the database's connections."""
        self._engine.dispose()

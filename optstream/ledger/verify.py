"""Checking the ledger against itself: the chain is recomputed and every row replayed from its events."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from sqlite3 import OperationalError
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Engine, Select, func, or_, select

from optstream.errors import LedgerError, OptStreamError
from optstream.ledger.accounting import (
    COLUMNS,
    GUARANTEE_COLUMNS,
    History,
    PlainSpend,
    guarantees_of,
    hash_of_lines,
    lines_of,
)
from optstream.ledger.database import reading
from optstream.ledger.hash_chain import GENESIS, HASHED, PlainEvent, hashes_of
from optstream.ledger.records import Entries, Key, StreamTerms, continues, trees_of_event
from optstream.ledger.schema import (
    AmendmentRow,
    EventRow,
    GrantRow,
    ReleaseRow,
    Row,
    SpendRow,
    StreamRow,
    VintageRow,
    any_text,
    event_body,
    is_undecodable,
    plain_batches,
    plain_rows,
    read_rows,
    terms_of,
)
from optstream.ledger.terms import OF_GRANT

# Checking a stream's chain of events, and its terms, releases, spends and vintages against it.

_PLAIN_EVENTS: Select[PlainEvent] = select(*(getattr(EventRow, name) for name in (*HASHED, "hash")))
EventColumns = dict[str, object]
"""The columns of an event with their new values, of any type, as they were read."""
Named = tuple[str, Any]
"""Period and revision, as an event has them."""
Generation = tuple[str, Any, object]
"""Period, revision, generation of its spends."""
VintageColumns = dict[tuple[str, Any, object], EventColumns]
"""The columns of each vintage by the events, by period, revision and number."""
EVENTS_AT_ONCE = 200
NOTHING_RESERVED = -(2**62)

RecordedGuarantees = dict[tuple[object, object], list[object]]
"""Each privacy guarantee by the events, by privacy budget and number."""


@dataclass
class EventRecord:
    """The contents of a stream's events: columns of releases, hashes of spends, and the list of trees in
    force.

    `tree_problems` are events that changed the tree of a reserved step without an amendment.
    """

    releases: dict[Named, EventColumns] = field(default_factory=dict)
    spends: dict[Generation, object] = field(default_factory=dict)
    vintages: VintageColumns = field(default_factory=dict)
    guarantees: RecordedGuarantees = field(default_factory=dict)
    terms: EventColumns | None = None
    trees: Entries | None = None
    reserved_until: int = NOTHING_RESERVED
    tree_problems: list[int] = field(default_factory=list)


def chain_problems(connection: Connection, stream: StreamRow, record: EventRecord) -> Iterator[str]:
    """Recompute a stream's chain; fill in what its events say."""
    before, expected = GENESIS, 0
    of_stream = _PLAIN_EVENTS.where(EventRow.stream_id == stream.id).order_by(EventRow.number)
    for rows in plain_batches(connection, of_stream, EVENTS_AT_ONCE):
        yield from _link_problems(stream.name, rows, before, expected)
        before, expected = _after(rows[-1], expected + len(rows) - 1)
        _replay(rows, record)
    if (stream.head, stream.n_events) != (before, expected):
        yield f"stream {stream.name!r}: its last event is not the one that its row names"
    for number in record.tree_problems:
        yield (
            f"stream {stream.name!r}, event {number}: changes the hierarchy of days that were reserved "
            "before it, and is no amendment"
        )
    terms = readable_terms(connection, stream)
    if terms is None or not _records(record.terms, terms):
        yield f"stream {stream.name!r}: its terms are not those that its events record"


def _link_problems(name: str, rows: Sequence[PlainEvent], before: str, expected: int) -> Iterator[str]:
    """Yield what breaks the chain in consecutive rows. before, expected: hash before, number of the first."""
    computed = hashes_of(name, rows)
    previous, numbers, *_, found = zip(*rows, strict=True)
    is_linked = previous == (before, *found[:-1]) and numbers == tuple(range(expected, expected + len(rows)))
    if is_linked and found == tuple(computed):
        return
    for row, digest in zip(rows, computed, strict=True):
        place = f"stream {name!r}, event {row[1]}"
        if row[1] != expected:
            yield f"{place}: event {expected} should be here; events are missing or out of order"
        if row[0] != before:
            yield f"{place}: does not follow the event before it"
        if row[-1] != digest:
            yield f"{place}: was changed after it was written"
        before, expected = _after(row, expected)


def _after(row: PlainEvent, expected: int) -> tuple[str, int]:
    """Return the hash before the next event, and its number. SQLite keeps text among numbers."""
    return row[-1], (row[1] if isinstance(row[1], int) else expected) + 1


def _replay(rows: Sequence[PlainEvent], record: EventRecord) -> None:
    """Add consecutive events to the record of those before them."""
    release: Named | None = None
    stated: EventColumns = {}
    for _, event, _, kind, period, revision, text, _ in rows:
        try:
            body = orjson.loads(text)
        except ValueError:
            body = {}
        if type(body) is not dict:
            body = {}
        try:
            if period is None:
                record.terms = body
                number = body.get("amendment", 0)
                record.guarantees[body.get("grant"), number] = [body.get(name) for name in GUARANTEE_COLUMNS]
                _replay_trees(event, kind, body, record)
                continue
            if "vintage" in body:
                record.vintages.setdefault((period, revision, body["vintage"]), {}).update(body)
                continue
            # a release's events mostly follow each other
            if (period, revision) != release:
                release = period, revision
                stated = record.releases.setdefault(release, body)
            stated |= body
            if "n_steps" in body:
                record.reserved_until = max(record.reserved_until, body["first_step"] + body["n_steps"])
            if "spends_hash" in body:
                record.spends[period, revision, body.get("generation", 0)] = body["spends_hash"]
        except (TypeError, ValueError, KeyError):
            # a list in the place of a name names nothing, and its row is missed below
            continue


def _replay_trees(event: int, kind: str, body: EventColumns, record: EventRecord) -> None:
    """Take the list of trees of an event about the stream's terms, and judge its change."""
    trees = trees_of_event(body)
    # until something is reserved, terms may be any
    is_kept = kind == "amended" or record.trees is None or record.reserved_until == NOTHING_RESERVED
    if not is_kept and not continues(record.trees or (), trees, record.reserved_until):
        record.tree_problems.append(event)
    record.trees = trees


def readable_terms(connection: Connection, stream: StreamRow) -> StreamTerms | None:
    """Return a stream's terms; None where its row cannot be read as such."""
    try:
        return terms_of(connection, stream)
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OptStreamError):
        return None


def _records(body: EventColumns | None, terms: StreamTerms) -> bool:
    """Return whether the last event about a stream's terms records these."""
    expected = event_body(terms, 0)
    # some that not every stream's terms have: a row that lacks them where the event has them was edited
    names = {*expected, "hierarchy", "own_alpha", "stream_share", "delta", "rho"} - {"amendment"}
    return body is not None and all(body.get(name) == expected.get(name) for name in names)


# Checking a stream's releases, spends and vintages against its events.

# a renewed lease leaves no event
REPLAYED = tuple(
    column.name
    for column in ReleaseRow.__table__.columns
    if column.name not in ("id", "stream_id", "period", "revision", "lease_until")
)
GENERATION, AMENDMENT = REPLAYED.index("generation"), REPLAYED.index("amendment")

PlainGeneration = tuple[int, int, int, int, int, int, str]
"""Release, generation and privacy budget of a spend; then as `PlainSpend`."""
_PLAIN_SPEND = [getattr(SpendRow, name) for name in COLUMNS]
OF_VINTAGE = ("basis", "staged_hash", "published_name", "published")
_OF_VINTAGE = [getattr(VintageRow, name) for name in OF_VINTAGE]
_replayed = itemgetter(*REPLAYED)
_generation = itemgetter(0, 1, 2)
_n_steps = itemgetter(2)


@dataclass
class Account:
    """The spends in force of a privacy budget, their longest and number, and the recorded guarantees."""

    history: History = field(default_factory=History)
    longest: int = 0
    n_spends: int = 0
    recorded_guarantees: RecordedGuarantees = field(default_factory=dict)


def release_problems(
    connection: Connection, stream: StreamRow, record: EventRecord, account: Account
) -> Iterator[str]:
    """Yield each difference of releases or spends from the events; charge the spends to `account`."""
    rows = yield from _releases(connection, stream, record.releases)
    yield from _spends(connection, stream, rows, record.spends, account)


def _releases(
    connection: Connection, stream: StreamRow, replayed: dict[Named, EventColumns]
) -> Generator[str, None, list[tuple[int, str, int, int, int]]]:
    """Compare the stream's releases with their events; return the columns that name their spends."""
    found = []
    columns = [getattr(ReleaseRow, name) for name in REPLAYED]
    query = select(ReleaseRow.id, ReleaseRow.period, ReleaseRow.revision, *columns).where(
        ReleaseRow.stream_id == stream.id
    )
    query = query.order_by(ReleaseRow.first_step, ReleaseRow.id)
    for row in plain_rows(connection, query):
        release_id, period, revision = row[:3]
        values = row[3:]
        found.append((release_id, period, revision, values[GENERATION], values[AMENDMENT]))
        stated = replayed.pop((period, revision), None)
        if stated is None:
            yield f"{Key(stream.name, period, revision)}: no event tells of it"
            continue
        # events from before there were amendments do not say it
        stated.setdefault("amendment", 0)
        # a driver may give 0 and 1 for false and true; they are equal
        try:
            recorded = _replayed(stated)
        except KeyError:
            recorded = tuple(map(stated.get, REPLAYED))
        if recorded != values:
            differing = [
                name
                for name, value, found_value in zip(REPLAYED, recorded, values, strict=True)
                if value != found_value
            ]
            named = Key(stream.name, period, revision)
            yield f"{named}: differs from what its events record in {', '.join(differing)}"
    for key in replayed:
        yield f"{Key(stream.name, *key)}: its events are there, its row is gone"
    return found


def _spends(
    connection: Connection,
    stream: StreamRow,
    rows: list[tuple[int, str, int, int, int]],
    recorded: dict[Generation, object],
    account: Account,
) -> Iterator[str]:
    """Compare every generation of spends with its recorded hash; charge the one in force if they agree."""
    nothing = hash_of_lines(stream.grant_id, "")
    releases_read = {row[0]: row[1:] for row in rows}
    for (release_id, generation, grant_id), group in groupby(
        _spend_rows(connection, stream), key=_generation
    ):
        if release_id not in releases_read:
            # of another kind, as text; its spends are strays
            continue
        period, revision, in_force, amendment = releases_read[release_id]
        plan = [row[3:] for row in group]
        account.n_spends += len(plan)
        digest = recorded.pop((period, revision, generation), None)
        if digest != hash_of_lines(grant_id, lines_of(plan)) or not _are_numbered(plan):
            yield f"{Key(stream.name, period, revision)}: its spends are not those of its events"
            continue
        account.longest = max(account.longest, *map(_n_steps, plan))
        if generation == in_force:
            for position, first_step, _, document in plan:
                account.history.add(position, first_step, document, amendment)
    for key, digest in recorded.items():
        if digest != nothing:
            yield f"{Key(stream.name, *key[:2])}: its spends are gone"


def _are_numbered(plan: Sequence[PlainSpend]) -> bool:
    """Return whether numbers stand before the documents: then a line can be read in one way only.

    SQLite keeps text among numbers, and a line whose spaces are in other columns has the same hash.
    """
    try:
        sum([position + first_step + n_steps for position, first_step, n_steps, _ in plan])
    except TypeError:
        return False
    return True


def _spend_rows(connection: Connection, stream: StreamRow) -> Iterator[PlainGeneration]:
    # in the order of indexes, so that SQLite sorts nothing
    order = (ReleaseRow.first_step, ReleaseRow.id, SpendRow.generation, SpendRow.position)
    query: Select[PlainGeneration] = (
        select(SpendRow.release_id, SpendRow.generation, SpendRow.grant_id, *_PLAIN_SPEND)
        .join(ReleaseRow, SpendRow.release_id == ReleaseRow.id)
        .where(ReleaseRow.stream_id == stream.id)
        .order_by(*order)
    )
    return plain_rows(connection, query)


def vintage_problems(connection: Connection, stream: StreamRow, recorded: VintageColumns) -> Iterator[str]:
    """Yield what differs between a stream's vintages and what its events record of them."""
    left = dict(recorded)
    query = (
        select(ReleaseRow.period, ReleaseRow.revision, VintageRow.number, *_OF_VINTAGE)
        .join(ReleaseRow, ReleaseRow.id == VintageRow.release_id)
        .where(ReleaseRow.stream_id == stream.id)
        .order_by(VintageRow.release_id, VintageRow.number)
    )
    for period, revision, number, *values in plain_rows(connection, query):
        named = f"{Key(stream.name, period, revision)}, vintage {number}"
        stated = left.pop((period, revision, number), None)
        if stated is None:
            yield f"{named}: no event tells of it"
            continue
        differing = [
            name for name, value in zip(OF_VINTAGE, values, strict=True) if stated.get(name) != value
        ]
        if differing:
            yield f"{named}: differs from what its events record in {', '.join(differing)}"
    for key in left:
        yield f"{Key(stream.name, *key[:2])}, vintage {key[2]}: its events are there, its row is gone"


OWNED = (
    (ReleaseRow, ReleaseRow.stream_id, StreamRow),
    (EventRow, EventRow.stream_id, StreamRow),
    (VintageRow, VintageRow.release_id, ReleaseRow),
    (AmendmentRow, AmendmentRow.grant_id, GrantRow),
)
"""Tables, and whose their rows are."""


def problems(connection: Connection) -> Iterator[str]:
    """Yield everything that does not fit, in words; nothing if the ledger is whole. Memory: one stream."""
    n_spends = 0
    for grant in read_rows(connection, select(GrantRow).order_by(GrantRow.name)):
        account = Account()
        members = select(StreamRow).where(StreamRow.grant_id == grant.id).order_by(StreamRow.name)
        for stream in read_rows(connection, members):
            yield from stream_problems(connection, stream, account)
        yield from grant_problems(connection, grant, account)
        n_spends += account.n_spends
    yield from stray_problems(connection, n_spends)


def stream_problems(connection: Connection, stream: StreamRow, account: Account) -> Iterator[str]:
    """Yield what does not fit in a stream by itself; its spends are entered into the account."""
    record = EventRecord(guarantees=account.recorded_guarantees)
    yield from chain_problems(connection, stream, record)
    yield from vintage_problems(connection, stream, record.vintages)
    yield from release_problems(connection, stream, record, account)


def stray_problems(connection: Connection, n_spends: int) -> Iterator[str]:
    """Yield rows whose owner is not there, which were not read above; `n_spends` were."""
    for owner in (GrantRow, StreamRow, ReleaseRow):
        # in a table that was replaced; and a NULL hides what is missing
        if _count(connection, owner, owner.id.is_(None)):
            yield f"some {owner.__tablename__} have no number, so what belongs to them cannot be told"
    grant_id = StreamRow.grant_id
    query = select(StreamRow.name).where(or_(grant_id.is_(None), grant_id.not_in(select(GrantRow.id))))
    for name in connection.execute(query).scalars():
        yield f"stream {name!r}: its privacy budget is missing"
    for table, key, owner in OWNED:
        # one after the other, for together they are in no index
        strays = _count(connection, table, key.not_in(select(owner.id)))
        strays += _count(connection, table, key.is_(None))
        if strays:
            yield f"{strays} {table.__tablename__} belong to no row of {owner.__tablename__}"
    strays = _count(connection, SpendRow) - n_spends
    if strays > 0:
        yield f"{strays} spends belong to no release of a stream with a privacy budget"
    elif strays:
        yield "some spends were met twice: rows of privacy budgets, streams or releases are there twice"


def _count(connection: Connection, table: type[Row], *conditions: ColumnElement[bool]) -> int:
    return connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one()


def grant_problems(connection: Connection, grant: GrantRow, account: Account) -> Iterator[str]:
    """Yield what does not fit in a privacy budget whose streams were read: its row, its windows' price."""
    budget = f"privacy budget {grant.name!r}"
    kept = read_rows(connection, select(AmendmentRow).where(AmendmentRow.grant_id == grant.id))
    counted = grant.longest_spend, grant.amendment, *(row.number for row in kept)
    if not all(isinstance(number, int) for number in counted):
        # SQLite keeps text among numbers
        yield f"{budget}: its row or its amendments hold what is no number"
        return
    if account.longest != grant.longest_spend:
        yield f"{budget}: its longest spend, by which windows are judged, is not as its row says"
    for stream in read_rows(connection, select(StreamRow).where(StreamRow.grant_id == grant.id)):
        terms = readable_terms(connection, stream)
        guarantee = terms.guarantee() if terms else {}
        # terms that cannot be read are reported with their stream
        differing = [name for name in OF_GRANT if guarantee and guarantee.get(name) != getattr(grant, name)]
        if differing:
            yield f"{budget}: differs from stream {stream.name!r} in {', '.join(differing)}"
    if not _guarantees_as_recorded(grant, kept, account):
        yield f"{budget}: its privacy guarantees are not those in the events of its streams"
        return
    yield from _windows(connection, grant, account.history)


def _guarantees_as_recorded(grant: GrantRow, found: Sequence[AmendmentRow], account: Account) -> bool:
    """Return whether the guarantees that price spends (found: amendments) are those of the events."""
    kept: dict[object, list[object]] = {
        row.number: [getattr(row, name) for name in GUARANTEE_COLUMNS] for row in found
    }
    recorded = {
        number: stated for (name, number), stated in account.recorded_guarantees.items() if name == grant.name
    }
    if sorted(row.number for row in found) != list(range(grant.amendment + 1)):
        return False
    relied_on = set(account.history.amendments)
    if recorded:
        relied_on.add(grant.amendment)
        if kept.get(grant.amendment) != [getattr(grant, name) for name in GUARANTEE_COLUMNS]:
            return False
    return relied_on <= set(recorded) and all(
        kept.get(number) == stated for number, stated in recorded.items()
    )


def _windows(connection: Connection, grant: GrantRow, history: History) -> Iterator[str]:
    """Yield which privacy guarantee is broken in a window with a step of its plans, by all spends."""
    budget = f"privacy budget {grant.name!r}"
    try:
        costs = history.costs(guarantees_of(connection, grant))
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        yield f"{budget}: some of its spends cannot be read, so its windows have no price"
        return
    for number, guarantee, cost in costs:
        if cost.epsilon > guarantee.budget:
            problem = (
                f"{budget}: the window from step {cost.first_step} costs {cost.epsilon}, "
                f"more than {guarantee.budget}"
            )
            kept = f", which privacy guarantee {number} allows: days in it were released under that"
            yield problem + (kept if grant.amendment else "")


def verify(engine: Engine) -> list[str]:
    """Return the `problems` of one moment; again, and slower, where SQLite keeps text that is none."""
    try:
        with reading(engine) as connection:
            return list(problems(connection))
    except (OperationalError, LedgerError) as error:
        if not is_undecodable(error):
            raise
    with reading(engine) as connection, any_text(connection):
        return list(problems(connection))

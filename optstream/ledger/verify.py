"""Checking the ledger against itself: the chain is recomputed and every row replayed from its events."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson
from sqlalchemy import Connection, func, select

from optstream.errors import OptStreamError
from optstream.ledger.accounts import hash_of_spends
from optstream.ledger.chain import GENESIS, HASHED, hash_of_event
from optstream.ledger.engine import plain_rows
from optstream.ledger.enrol import OF_GRANT, event_body, terms_of
from optstream.ledger.history import History
from optstream.ledger.promises import PROMISED, promises_of
from optstream.ledger.records import StreamTerms
from optstream.ledger.schema import amendments, events, grants, releases, spends, streams, vintages
from optstream.ledger.transitions import describe
from optstream.ledger.verify_vintages import Told, vintage_problems

# a renewed lease leaves no event
REPLAYED = tuple(
    column.name
    for column in releases.columns
    if column.name not in ("id", "stream_id", "period", "revision", "lease_until")
)
GENERATION, AMENDMENT = REPLAYED.index("generation"), REPLAYED.index("amendment")

Generation = tuple[str, int, int]
"""Period, revision, generation of its spends."""
Promised = dict[tuple[Any, Any], list[Any]]
"""What the events say of each promise, by grant and number."""
Replay = dict[tuple[str, int], dict[str, Any]]
"""What the events say of each release: column to value, by period and revision."""

OWNED = (
    (releases, releases.c.stream_id, streams),
    (events, events.c.stream_id, streams),
    (vintages, vintages.c.release_id, releases),
    (amendments, amendments.c.grant_id, grants),
)
"""Tables, and whose their rows are."""
NAMING = ("grant", "amendment", "vintage", "generation")
"""What events name things by: plain values, unless somebody wrote them anew."""

_generation = itemgetter(0, 1, 2)
_n_steps = itemgetter(2)


@dataclass
class Account:
    """What was read of a grant's spends: those in force, the most steps of any, how many rows there are.

    promised: what the events of its streams say of its promises.
    priced: the windows were judged already, and the history let go.
    """

    history: History = field(default_factory=History)
    longest: int = 0
    n_spends: int = 0
    promised: Promised = field(default_factory=dict)
    priced: bool = False

    def include(self, other: "Account") -> None:
        """Add what was read of other streams of the grant."""
        self.history.include(other.history)
        self.promised |= other.promised
        self.longest = max(self.longest, other.longest)
        self.n_spends += other.n_spends
        self.priced |= other.priced


def problems(connection: Connection) -> Iterator[str]:
    """Everything that does not fit, in words; nothing if the ledger is whole. Memory: one stream."""
    n_spends = 0
    for grant in connection.execute(select(grants).order_by(grants.c.name)).all():
        account = Account()
        members = select(streams).where(streams.c.grant_id == grant.id).order_by(streams.c.name)
        for stream in connection.execute(members).all():
            yield from stream_problems(connection, stream, account)
        yield from grant_problems(connection, grant, account)
        n_spends += account.n_spends
    yield from stray_problems(connection, n_spends)


def stream_problems(connection: Connection, stream: Any, account: Account) -> Iterator[str]:
    """What does not fit in a stream by itself; its spends are entered into its grant's account."""
    replayed: Replay = {}
    recorded: dict[Generation, str] = {}
    told: Told = {}
    yield from _chain(connection, stream, replayed, recorded, account.promised, told)
    yield from vintage_problems(connection, stream, told)
    rows = yield from _releases(connection, stream, replayed)
    yield from _spends(connection, stream, rows, recorded, account)


def _chain(
    connection: Connection,
    stream: Any,
    replayed: Replay,
    recorded: dict[Generation, str],
    promised: Promised,
    told: Told,
) -> Iterator[str]:
    """Recompute a stream's chain; fill in what its events say of its releases, spends and vintages."""
    name, before, expected, terms = stream.name, GENESIS, 0, None
    columns = [events.c[name] for name in HASHED]
    query = select(*columns, events.c.hash).where(events.c.stream_id == stream.id).order_by(events.c.number)
    for row in plain_rows(connection, query):
        previous, number, at, kind, period, revision, text, digest = row
        digest_now = hash_of_event(name, previous, number, at, kind, period, revision, text)
        if number != expected or previous != before or digest != digest_now:
            yield from _broken(f"stream {name!r}, event {number}", row, expected, before, digest_now)
        before, expected = digest, number + 1
        body = _body(text)
        if period is None:
            terms = body
            promised[body.get("grant"), body.get("amendment", 0)] = [body.get(name) for name in PROMISED]
            continue
        if "vintage" in body:
            told.setdefault((period, revision, body["vintage"]), {}).update(body)
            continue
        said = replayed.setdefault((period, revision), body)
        if said is not body:
            said.update(body)
        if "spends_hash" in body:
            recorded[period, revision, body.get("generation", 0)] = body["spends_hash"]
    if (stream.head, stream.n_events) != (before, expected):
        yield f"stream {stream.name!r}: its last event is not the one that its row names"
    now = _terms(connection, stream)
    if now is None or not _says(terms, now):
        yield f"stream {stream.name!r}: its terms are not those that its events record"


def _terms(connection: Connection, stream: Any) -> StreamTerms | None:
    """A stream's terms; None where its row cannot be read as such."""
    try:
        return terms_of(connection, stream)
    except (ValueError, KeyError, TypeError, ArithmeticError, OptStreamError):
        return None


def _says(body: dict[str, Any] | None, terms: StreamTerms) -> bool:
    """Whether the last event about a stream's terms tells these."""
    told = event_body(terms, 0)
    return body is not None and all(body.get(name) == told[name] for name in told if name != "amendment")


def _broken(place: str, row: Any, expected: int, before: str, digest: str) -> Iterator[str]:
    if row[1] != expected:
        yield f"{place}: event {expected} should be here; events are missing or out of order"
    if row[0] != before:
        yield f"{place}: does not follow the event before it"
    if row[-1] != digest:
        yield f"{place}: was changed after it was written"


def _body(text: str) -> dict[str, Any]:
    try:
        body = orjson.loads(text)
    except ValueError:
        return {}
    if type(body) is not dict or any(isinstance(body.get(name), (list, dict)) for name in NAMING):
        return {}
    return body


def _releases(
    connection: Connection, stream: Any, replayed: Replay
) -> Generator[str, None, list[tuple[int, str, int, int, int]]]:
    """Compare the stream's releases with their events.

    Returns their id, period, revision, generation and amendment.
    """
    found = []
    columns = [releases.c[name] for name in ("id", "period", "revision", *REPLAYED)]
    query = select(*columns).where(releases.c.stream_id == stream.id)
    query = query.order_by(releases.c.first_step, releases.c.id)
    for row in plain_rows(connection, query):
        release_id, period, revision = row[:3]
        values = row[3:]
        found.append((release_id, period, revision, values[GENERATION], values[AMENDMENT]))
        said = replayed.pop((period, revision), None)
        if said is None:
            yield f"{describe(stream.name, period, revision)}: no event tells of it"
            continue
        # events from before there were amendments do not say it
        said.setdefault("amendment", 0)
        # a driver may give 0 and 1 for false and true; they are equal
        recorded = tuple(map(said.get, REPLAYED))
        if recorded != values:
            differing = [
                name
                for name, value, found_value in zip(REPLAYED, recorded, values, strict=True)
                if value != found_value
            ]
            named = describe(stream.name, period, revision)
            yield f"{named}: {', '.join(differing)} differ from what its events record"
    for period, revision in replayed:
        yield f"{describe(stream.name, period, revision)}: its events are there, its row is gone"
    return found


def _spends(
    connection: Connection,
    stream: Any,
    rows: list[tuple[int, str, int, int, int]],
    recorded: dict[Generation, str],
    account: Account,
) -> Iterator[str]:
    """Compare every generation of spends with the hash that its event recorded; charge the one in force."""
    nothing = hash_of_spends(stream.grant_id, ())
    releases_read = {row[0]: row[1:] for row in rows}
    for (release_id, generation, grant_id), group in groupby(
        _spend_rows(connection, stream), key=_generation
    ):
        period, revision, in_force, amendment = releases_read[release_id]
        kept = [row[3:] for row in group]
        account.n_spends += len(kept)
        account.longest = max(account.longest, max(map(_n_steps, kept)))
        if recorded.pop((period, revision, generation), None) != hash_of_spends(grant_id, kept):
            named = describe(stream.name, period, revision)
            yield f"{named}: its spends are not those of its events"
        if generation == in_force:
            for _, first_step, _, document in kept:
                account.history.add(first_step, document, amendment)
    for (period, revision, _), digest in recorded.items():
        if digest != nothing:
            yield f"{describe(stream.name, period, revision)}: its spends are gone"


def _spend_rows(connection: Connection, stream: Any) -> Iterator[Any]:
    columns = [spends.c[name] for name in ("release_id", "generation", "grant_id", "position")]
    # in the order of indexes, so that SQLite sorts nothing
    order = (releases.c.first_step, releases.c.id, spends.c.generation, spends.c.position)
    query = (
        select(*columns, spends.c.first_step, spends.c.n_steps, spends.c.document)
        .join(releases, spends.c.release_id == releases.c.id)
        .where(releases.c.stream_id == stream.id)
        .order_by(*order)
    )
    return plain_rows(connection, query)


def stray_problems(connection: Connection, n_spends: int) -> Iterator[str]:
    """What is not looked at above: rows whose owner is not there. n_spends: how many were looked at."""
    query = select(streams.c.name).where(streams.c.grant_id.not_in(select(grants.c.id)))
    for name in connection.execute(query).scalars():
        yield f"stream {name!r}: its grant is gone"
    for table, key, owner in OWNED:
        count = select(func.count()).select_from(table).where(key.not_in(select(owner.c.id)))
        strays = connection.execute(count).scalar_one()
        if strays:
            yield f"{strays} {table.name} belong to no row of {owner.name}"
    strays = connection.execute(select(func.count()).select_from(spends)).scalar_one() - n_spends
    if strays:
        yield f"{strays} spends belong to no release of a stream with a grant"


def grant_problems(connection: Connection, grant: Any, account: Account) -> Iterator[str]:
    """What does not fit in a grant whose streams were all read: its row, and the price of its windows."""
    if account.longest > grant.longest_spend:
        yield f"grant {grant.name!r}: a spend is longer than its row says; windows were judged without it"
    for stream in connection.execute(select(streams).where(streams.c.grant_id == grant.id)).all():
        terms = _terms(connection, stream)
        promise = terms.promise() if terms else {}
        # terms that cannot be read are told with their stream
        differing = [name for name in OF_GRANT if promise and promise[name] != getattr(grant, name)]
        if differing:
            yield f"grant {grant.name!r}: {', '.join(differing)} differ from those of stream {stream.name!r}"
    if not _promises_as_recorded(connection, grant, account):
        yield f"grant {grant.name!r}: its promises are not those that the events of its streams record"
        return
    yield from _windows(connection, grant, account.history)


def _promises_as_recorded(connection: Connection, grant: Any, account: Account) -> bool:
    """Whether the promises that spends are priced by are those of the events."""
    rows = connection.execute(select(amendments).where(amendments.c.grant_id == grant.id)).all()
    kept = {row.number: [getattr(row, name) for name in PROMISED] for row in rows}
    recorded = {number: said for (name, number), said in account.promised.items() if name == grant.name}
    if max(kept, default=0) > grant.amendment:
        return False
    relied_on = set(account.history.amendments)
    if recorded:
        relied_on.add(grant.amendment)
        if kept.get(grant.amendment) != [getattr(grant, name) for name in PROMISED]:
            return False
    return relied_on <= set(recorded) and all(kept.get(number) == said for number, said in recorded.items())


def _windows(connection: Connection, grant: Any, history: History) -> Iterator[str]:
    """Whether each promise was kept, where something was planned under it, by all that was planned so far."""
    try:
        costs = history.costs(promises_of(connection, grant))
    except (ValueError, KeyError, TypeError, ArithmeticError):
        yield f"grant {grant.name!r}: some of its spends cannot be read, so its windows have no price"
        return
    for promise, cost in costs:
        if cost.epsilon > promise.epsilon:
            yield (
                f"grant {grant.name!r}: the window from step {cost.first_step} costs {cost.epsilon}, "
                f"more than {promise.epsilon}"
            )

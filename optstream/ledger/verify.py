"""Checking the ledger against itself: the chain is recomputed and every row replayed from its events."""

import json
from collections.abc import Collection, Generator, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, func, select

from optstream.ledger.accounts import hash_of_spends
from optstream.ledger.chain import GENESIS, HASHED, hash_of_event
from optstream.ledger.engine import plain_rows
from optstream.ledger.enrol import OF_GRANT, event_body, terms_of
from optstream.ledger.history import History
from optstream.ledger.promises import PROMISED, promises_of
from optstream.ledger.records import StreamTerms
from optstream.ledger.schema import amendments, events, grants, releases, spends, streams
from optstream.ledger.transitions import describe

# a renewed lease leaves no event
REPLAYED = tuple(
    column.name
    for column in releases.columns
    if column.name not in ("id", "stream_id", "period", "revision", "lease_until")
)
GENERATION, AMENDMENT = REPLAYED.index("generation"), REPLAYED.index("amendment")
BEFORE_AMENDMENTS = {"amendment": 0}
"""What events from before there were amendments do not say."""
RELEASES_AT_ONCE = 500

Generation = tuple[str, int, int]
"""Period, revision, generation of its spends."""
Promised = dict[tuple[Any, Any], list[Any]]
"""What the events say of each promise, by grant and number."""
Replay = dict[tuple[str, int], dict[str, Any]]
"""What the events say of each release: column to value, by period and revision."""

_generation = itemgetter(0, 1, 2)
_decode = json.JSONDecoder().raw_decode


def problems(connection: Connection) -> Iterator[str]:
    """Everything that does not fit, in words; nothing if the ledger is whole. Memory: one stream."""
    for grant in connection.execute(select(grants).order_by(grants.c.name)).all():
        history = History(promises_of(connection, grant))
        promises: Promised = {}
        members = select(streams).where(streams.c.grant_id == grant.id).order_by(streams.c.name)
        for stream in connection.execute(members).all():
            replayed: Replay = {}
            recorded: dict[Generation, str] = {}
            yield from _chain(connection, stream, replayed, recorded, promises)
            rows = yield from _releases(connection, stream, replayed)
            yield from _spends(connection, stream, rows, recorded, history)
        yield from _grant(connection, grant, history, promises)
    yield from _strays(connection)


def _chain(
    connection: Connection,
    stream: Any,
    replayed: Replay,
    recorded: dict[Generation, str],
    promises: Promised,
) -> Iterator[str]:
    """Recompute a stream's chain; fill in what its events say of its releases and spends."""
    before, expected, terms = GENESIS, 0, None
    columns = [events.c[name] for name in HASHED]
    query = select(*columns, events.c.hash).where(events.c.stream_id == stream.id).order_by(events.c.number)
    for row in plain_rows(connection, query):
        previous, number, at, kind, period, revision, text, digest = row
        digest_now = hash_of_event(stream.name, previous, number, at, kind, period, revision, text)
        if (number, previous, digest) != (expected, before, digest_now):
            yield from _broken(f"stream {stream.name!r}, event {number}", row, expected, before, digest_now)
        before, expected = digest, number + 1
        body = _body(text)
        if period is None:
            terms = body
            promises[body.get("grant"), body.get("amendment", 0)] = [body.get(name) for name in PROMISED]
            continue
        replayed.setdefault((period, revision), {}).update(body)
        if "spends_hash" in body:
            recorded[period, revision, body.get("generation", 0)] = body["spends_hash"]
    if (stream.head, stream.n_events) != (before, expected):
        yield f"stream {stream.name!r}: its last event is not the one that its row names"
    if not _says(terms, terms_of(connection, stream)):
        yield f"stream {stream.name!r}: its terms are not those that its events record"


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
        body, end = _decode(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) and end == len(text) else {}


def _releases(
    connection: Connection, stream: Any, replayed: Replay
) -> Generator[str, None, list[tuple[int, str, int, int, int]]]:
    """Compare the stream's releases with their events.

    Returns their id, period, revision, generation and amendment.
    """
    found = []
    columns = [releases.c[name] for name in ("id", "period", "revision", *REPLAYED)]
    query = select(*columns).where(releases.c.stream_id == stream.id).order_by(releases.c.id)
    for release_id, period, revision, *values in plain_rows(connection, query):
        found.append((release_id, period, revision, values[GENERATION], values[AMENDMENT]))
        said = replayed.pop((period, revision), None)
        if said is None:
            yield f"{describe(stream.name, period, revision)}: no event tells of it"
            continue
        # a driver may give 0 and 1 for false and true; they are equal
        said = {**BEFORE_AMENDMENTS, **said}
        differing = [name for name, value in zip(REPLAYED, values, strict=True) if said.get(name) != value]
        if differing:
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
    history: History,
) -> Iterator[str]:
    """Compare every generation of spends with the hash that its event recorded; charge the one in force."""
    nothing = hash_of_spends(stream.grant_id, ())
    for place in range(0, len(rows), RELEASES_AT_ONCE):
        some = {row[0]: row[1:] for row in rows[place : place + RELEASES_AT_ONCE]}
        for (release_id, generation, grant_id), group in groupby(
            _spend_rows(connection, some), key=_generation
        ):
            period, revision, in_force, amendment = some[release_id]
            kept = [row[3:] for row in group]
            if recorded.pop((period, revision, generation), None) != hash_of_spends(grant_id, kept):
                named = describe(stream.name, period, revision)
                yield f"{named}: its spends are not those of its events"
            if generation == in_force:
                for _, first_step, _, document in kept:
                    history.add(first_step, document, amendment)
    for (period, revision, _), digest in recorded.items():
        if digest != nothing:
            yield f"{describe(stream.name, period, revision)}: its spends are gone"


def _spend_rows(connection: Connection, release_ids: Collection[int]) -> Iterator[Any]:
    ordered = (spends.c.release_id, spends.c.generation, spends.c.position)
    query = (
        select(
            spends.c.release_id,
            spends.c.generation,
            spends.c.grant_id,
            spends.c.position,
            spends.c.first_step,
            spends.c.n_steps,
            spends.c.document,
        )
        .where(spends.c.release_id.in_(release_ids))
        .order_by(*ordered)
    )
    return plain_rows(connection, query)


def _strays(connection: Connection) -> Iterator[str]:
    """Streams of no grant would not be looked at above."""
    query = select(streams.c.name).where(streams.c.grant_id.not_in(select(grants.c.id)))
    for name in connection.execute(query).scalars():
        yield f"stream {name!r}: its grant is gone"


def _grant(connection: Connection, grant: Any, history: History, promises: Promised) -> Iterator[str]:
    longest = connection.execute(
        select(func.max(spends.c.n_steps)).where(spends.c.grant_id == grant.id)
    ).scalar_one()
    if (longest or 0) > grant.longest_spend:
        yield f"grant {grant.name!r}: a spend is longer than its row says; windows were judged without it"
    for stream in connection.execute(select(streams).where(streams.c.grant_id == grant.id)).all():
        promise = terms_of(connection, stream).promise()
        differing = [name for name in OF_GRANT if promise[name] != getattr(grant, name)]
        if differing:
            yield f"grant {grant.name!r}: {', '.join(differing)} differ from those of stream {stream.name!r}"
    rows = connection.execute(select(amendments).where(amendments.c.grant_id == grant.id)).all()
    kept = {(grant.name, row.number): [getattr(row, name) for name in PROMISED] for row in rows}
    recorded = {key: promise for key, promise in promises.items() if key[0] == grant.name}
    relied_on = {(grant.name, number) for number in history.amendments}
    if recorded:
        relied_on.add((grant.name, grant.amendment))
        recorded[None, None] = [getattr(grant, name) for name in PROMISED]
        kept[None, None] = kept.get((grant.name, grant.amendment), [])
    if any(kept.get(key) != promise for key, promise in recorded.items()) or not relied_on <= set(recorded):
        yield f"grant {grant.name!r}: its promises are not those that the events of its streams record"
        return
    yield from _windows(grant, history)


def _windows(grant: Any, history: History) -> Iterator[str]:
    """Whether each promise was kept, where something was planned under it, by all that was planned so far."""
    try:
        costs = history.costs()
    except (ValueError, KeyError, TypeError, ArithmeticError):
        yield f"grant {grant.name!r}: some of its spends cannot be read, so its windows have no price"
        return
    for promise, cost in costs:
        if cost.epsilon > promise.epsilon:
            yield (
                f"grant {grant.name!r}: the window from step {cost.first_step} costs {cost.epsilon}, "
                f"more than {promise.epsilon}"
            )

"""Checking the ledger against itself: the chain is recomputed and every row replayed from its events."""

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, func, select

from optstream.ledger.accounts import cost_of_all, spends_hash
from optstream.ledger.chain import GENESIS, event_hash
from optstream.ledger.enrol import OF_GRANT, event_body, terms_of
from optstream.ledger.schema import events, grants, releases, spends, streams
from optstream.ledger.transitions import describe

# a renewed lease leaves no event
REPLAYED = tuple(
    column.name
    for column in releases.columns
    if column.name not in ("id", "stream_id", "period", "revision", "lease_until")
)
Generation = tuple[int, str, int, int]
"""Stream's key, period, revision, generation of its spends."""


def problems(connection: Connection) -> Iterator[str]:
    """Everything that does not fit, in words; nothing if the ledger is whole."""
    recorded: dict[Generation, str] = {}
    for stream in connection.execute(select(streams).order_by(streams.c.name)).all():
        replayed: dict[tuple[str, int], dict[str, Any]] = {}
        yield from _chain(connection, stream, replayed, recorded)
        yield from _releases(connection, stream, replayed)
    yield from _spends(connection, recorded)
    for grant in connection.execute(select(grants).order_by(grants.c.name)).all():
        yield from _grant(connection, grant)


def _chain(
    connection: Connection,
    stream: Any,
    replayed: dict[tuple[str, int], dict[str, Any]],
    recorded: dict[Generation, str],
) -> Iterator[str]:
    """Recompute a stream's chain; fill in what its events say of its releases and spends."""
    previous, number, terms = GENESIS, 0, None
    query = select(events).where(events.c.stream_id == stream.id).order_by(events.c.number)
    for row in connection.execute(query).mappings():
        place = f"stream {stream.name!r}, event {row['number']}"
        if row["number"] != number:
            yield f"{place}: event {number} should be here; events are missing or out of order"
        if row["previous"] != previous:
            yield f"{place}: does not follow the event before it"
        if row["hash"] != event_hash(stream.name, row):
            yield f"{place}: was changed after it was written"
        previous, number = row["hash"], row["number"] + 1
        body = _body(row["body"])
        if row["period"] is None:
            terms = body
            continue
        release = replayed.setdefault((row["period"], row["revision"]), {})
        release.update(body)
        if "spends_hash" in body:
            generation = (stream.id, row["period"], row["revision"], body.get("generation", 0))
            recorded[generation] = body["spends_hash"]
    if (stream.head, stream.n_events) != (previous, number):
        yield f"stream {stream.name!r}: its last event is not the one that its row names"
    if terms != event_body(terms_of(connection, stream)):
        yield f"stream {stream.name!r}: its terms are not those that its events record"


def _body(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def _releases(
    connection: Connection, stream: Any, replayed: dict[tuple[str, int], dict[str, Any]]
) -> Iterator[str]:
    query = select(releases).where(releases.c.stream_id == stream.id)
    for row in connection.execute(query).mappings():
        named = describe(stream.name, row["period"], row["revision"])
        said = replayed.pop((row["period"], row["revision"]), None)
        if said is None:
            yield f"{named}: no event tells of it"
            continue
        differing = [name for name in REPLAYED if said.get(name) != row[name]]
        if differing:
            yield f"{named}: {', '.join(differing)} differ from what its events record"
    for period, revision in replayed:
        yield f"{describe(stream.name, period, revision)}: its events are there, its row is gone"


def _spends(connection: Connection, recorded: dict[Generation, str]) -> Iterator[str]:
    """Compare every generation of spends with the hash that its event recorded."""
    names: dict[int, str] = {
        row.id: row.name for row in connection.execute(select(streams.c.id, streams.c.name)).all()
    }
    query = (
        select(spends, releases.c.stream_id, releases.c.period, releases.c.revision)
        .join(releases, releases.c.id == spends.c.release_id)
        .order_by(spends.c.release_id, spends.c.generation, spends.c.position)
    )
    found: set[Generation] = set()
    for key, group in groupby(connection.execute(query).mappings(), key=_generation):
        found.add(key[:4])
        if recorded.get(key[:4]) != spends_hash(key[4], group):
            yield f"{describe(names[key[0]], key[1], key[2])}: its spends are not those of its events"
    nothing = {spends_hash(grant_id, ()) for grant_id in connection.execute(select(grants.c.id)).scalars()}
    for generation, digest in recorded.items():
        if generation not in found and digest not in nothing:
            yield f"{describe(names[generation[0]], generation[1], generation[2])}: its spends are gone"


def _generation(row: Any) -> tuple[int, str, int, int, int]:
    return row["stream_id"], row["period"], row["revision"], row["generation"], row["grant_id"]


def _grant(connection: Connection, grant: Any) -> Iterator[str]:
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
    try:
        cost = cost_of_all(connection, grant)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        yield f"grant {grant.name!r}: some of its spends cannot be read, so its windows have no price"
        return
    if cost.epsilon > Fraction(grant.epsilon):
        yield (
            f"grant {grant.name!r}: the window from step {cost.first_step} costs {cost.epsilon}, "
            f"more than {grant.epsilon}"
        )

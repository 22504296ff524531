"""Checking a stream's chain of events, and what they say of its terms, releases, spends and vintages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson
from sqlalchemy import Connection, Select, select

from optstream.errors import OptStreamError
from optstream.ledger.accounting.amendments import GUARANTEE_COLUMNS
from optstream.ledger.database.rows import plain_batches
from optstream.ledger.database.schema import EventRow, StreamRow
from optstream.ledger.database.stream_rows import event_body, terms_of
from optstream.ledger.dated_trees import Entries, continues, trees_said
from optstream.ledger.hash_chain import GENESIS, HASHED, PlainEvent, hashes_of
from optstream.ledger.records import StreamTerms

_PLAIN_EVENTS: Select[PlainEvent] = select(*(getattr(EventRow, name) for name in (*HASHED, "hash")))
Said = dict[str, object]
"""What an event says: columns with their new values, as they were read, of whatever kind."""
Named = tuple[str, int | None]
"""Period and revision, as an event has them."""
Generation = tuple[str, int | None, object]
"""Period, revision, generation of its spends."""
ToldOfVintages = dict[tuple[str, int | None, object], Said]
"""What the events say of each vintage, by period, revision and number."""
EVENTS_AT_ONCE = 200
NOTHING_RESERVED = -(2**62)

RecordedGuarantees = dict[tuple[object, object], list[object]]
"""What events say of each privacy guarantee, by privacy budget and number."""


@dataclass
class EventRecord:
    """What a stream's events say. releases: column to value, by period and revision. spends: their hashes.

    trees: the list in force. reserved_until: the step after the last that was reserved so far.
    tree_problems: events that changed the tree of a step that was reserved, without an amendment.
    """

    releases: dict[Named, Said] = field(default_factory=dict)
    spends: dict[Generation, object] = field(default_factory=dict)
    vintages: ToldOfVintages = field(default_factory=dict)
    guarantees: RecordedGuarantees = field(default_factory=dict)
    terms: Said | None = None
    trees: Entries | None = None
    reserved_until: int = NOTHING_RESERVED
    tree_problems: list[int] = field(default_factory=list)


def chain_problems(connection: Connection, stream: StreamRow, told: EventRecord) -> Iterator[str]:
    """Recompute a stream's chain; fill in what its events say."""
    before, expected = GENESIS, 0
    of_stream = _PLAIN_EVENTS.where(EventRow.stream_id == stream.id).order_by(EventRow.number)
    for rows in plain_batches(connection, of_stream, EVENTS_AT_ONCE):
        yield from _link_problems(stream.name, rows, before, expected)
        before, expected = _after(rows[-1], expected + len(rows) - 1)
        _replay(rows, told)
    if (stream.head, stream.n_events) != (before, expected):
        yield f"stream {stream.name!r}: its last event is not the one that its row names"
    for number in told.tree_problems:
        yield (
            f"stream {stream.name!r}, event {number}: changes the hierarchy of days that were reserved "
            "before it, and is no amendment"
        )
    terms = readable_terms(connection, stream)
    if terms is None or not _says(told.terms, terms):
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
    """Return what the next event should follow, and its number. SQLite keeps text among numbers."""
    return row[-1], (row[1] if isinstance(row[1], int) else expected) + 1


def _replay(rows: Sequence[PlainEvent], told: EventRecord) -> None:
    """Add what consecutive events say to what was told before them."""
    release: Named | None = None
    said: Said = {}
    for _, event, _, kind, period, revision, text, _ in rows:
        try:
            body = orjson.loads(text)
        except ValueError:
            body = {}
        if type(body) is not dict:
            body = {}
        try:
            if period is None:
                told.terms = body
                number = body.get("amendment", 0)
                told.guarantees[body.get("grant"), number] = [body.get(name) for name in GUARANTEE_COLUMNS]
                _replay_trees(event, kind, body, told)
                continue
            if "vintage" in body:
                told.vintages.setdefault((period, revision, body["vintage"]), {}).update(body)
                continue
            # a release's events mostly follow each other
            if (period, revision) != release:
                release = period, revision
                said = told.releases.setdefault(release, body)
            said |= body
            if "n_steps" in body:
                told.reserved_until = max(told.reserved_until, body["first_step"] + body["n_steps"])
            if "spends_hash" in body:
                told.spends[period, revision, body.get("generation", 0)] = body["spends_hash"]
        except (TypeError, ValueError, KeyError):
            # something is named by a list: it names nothing, so what it stands for is missed below
            continue


def _replay_trees(event: int, kind: str, body: Said, told: EventRecord) -> None:
    """Take the list of trees that an event about the stream's terms says, and judge how it was changed."""
    trees = trees_said(body)
    # until something is reserved, terms may be any
    is_kept = kind == "amended" or told.trees is None or told.reserved_until == NOTHING_RESERVED
    if not is_kept and not continues(told.trees or (), trees, told.reserved_until):
        told.tree_problems.append(event)
    told.trees = trees


def readable_terms(connection: Connection, stream: StreamRow) -> StreamTerms | None:
    """Return a stream's terms; None where its row cannot be read as such."""
    try:
        return terms_of(connection, stream)
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OptStreamError):
        return None


def _says(body: Said | None, terms: StreamTerms) -> bool:
    """Return whether the last event about a stream's terms tells these."""
    told = event_body(terms, 0)
    # those that not every stream's terms have: a row that lacks them where the event has them was edited
    names = {*told, "hierarchy", "own_alpha", "stream_share", "delta", "rho"} - {"amendment"}
    return body is not None and all(body.get(name) == told.get(name) for name in names)

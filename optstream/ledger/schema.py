"""The tables, as typed rows, and the chain of events. Exact numbers are text; spends and events only append.

Queries go by these classes; `migrations` alone make databases, with keys and constraints. A test compares the
columns of the two.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, TypeVar, cast

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    Table,
    Text,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute, Mapped, mapped_column

from optstream.errors import LedgerError
from optstream.ledger.records import Key, StreamTerms, stamp, trees_from
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import exact_from_text
from optstream.privacy.model import Unit, Windows

SCHEMA = "0006"  # the newest of `migrations`: numbers of four digits, each one more than the one before

# SQLite gives a row number of its own only to a column of exactly this type
NUMBER = BigInteger().with_variant(Integer, "sqlite")
RowId = Annotated[int, mapped_column(NUMBER)]
Small = Annotated[int, mapped_column(Integer)]


class Row(DeclarativeBase):
    """A row of a table that has numbered rows."""

    type_annotation_map = {str: Text, int: BigInteger, Unit: Text, Windows: Text}  # noqa: RUF012  # read once

    id: Mapped[RowId] = mapped_column(primary_key=True)


metadata = Row.metadata

# Programs from before the migrations look here, and refuse a number that they do not know.
Table("schema_version", metadata, Column("version", Integer, nullable=False))


class GuaranteeColumns:
    """A privacy guarantee, in a budget or an amendment; without delta and rho it is an epsilon alone."""

    epsilon: Mapped[str]
    window_length: Mapped[int]
    alpha: Mapped[str]
    unit: Mapped[Unit]
    leaves_per_step: Mapped[int]
    windows: Mapped[Windows]
    delta: Mapped[str | None]
    rho: Mapped[str | None]


class GrantRow(GuaranteeColumns, Row):
    """A privacy budget, with the most steps of any of its spends and the number of its last amendment."""

    __tablename__ = "grants"

    name: Mapped[str]
    calendar: Mapped[str]
    longest_spend: Mapped[int]
    amendment: Mapped[Small]


class AmendmentRow(GuaranteeColumns, Row):
    """A guarantee of a privacy budget, from its first terms (number 0) on: old spends are repriced."""

    __tablename__ = "amendments"

    grant_id: Mapped[RowId]
    number: Mapped[Small]


class StreamRow(Row):
    """A stream under its terms, with its list of trees (`columns_of`) and the head of its chain."""

    __tablename__ = "streams"

    grant_id: Mapped[RowId]
    name: Mapped[str]
    model: Mapped[str]
    hierarchy_hash: Mapped[str]
    calibration: Mapped[str]
    calendar: Mapped[str]
    document: Mapped[str]
    hierarchy: Mapped[str]
    head: Mapped[str]
    n_events: Mapped[int]


class ReleaseRow(Row):
    """A release, with the generation of its spends in force; a VOID one is never drawn again."""

    __tablename__ = "releases"

    stream_id: Mapped[RowId]
    period: Mapped[str]
    revision: Mapped[Small]
    state: Mapped[str]
    owner: Mapped[str]
    lease_until: Mapped[str]
    fence: Mapped[int]
    drawing: Mapped[bool]
    redraws: Mapped[Small]
    first_step: Mapped[int]
    n_steps: Mapped[int]
    generation: Mapped[Small]
    spends_hash: Mapped[str]
    measurements_hash: Mapped[str | None]
    staged_hash: Mapped[str | None]
    published_name: Mapped[str | None]
    reason: Mapped[str | None]
    amendment: Mapped[Small]
    withdrawn: Mapped[str | None]
    compromised: Mapped[str | None]


class VintageRow(Row):
    """A new estimate of a published release, from measurements that are charged already: those of `basis`."""

    __tablename__ = "vintages"

    release_id: Mapped[RowId]
    number: Mapped[Small]
    basis: Mapped[str]
    staged_hash: Mapped[str]
    published_name: Mapped[str]
    published: Mapped[bool]


class SpendRow(Row):
    """A spend of one of a release's generations, and its place there."""

    __tablename__ = "spends"

    grant_id: Mapped[RowId]
    release_id: Mapped[RowId]
    generation: Mapped[Small]
    position: Mapped[Small]
    first_step: Mapped[int]
    n_steps: Mapped[int]
    document: Mapped[str]


class EventRow(Row):
    """What happened to a stream, or to the release that period and revision name."""

    __tablename__ = "events"

    stream_id: Mapped[RowId]
    number: Mapped[int]
    at: Mapped[str]
    kind: Mapped[str]
    period: Mapped[str | None]
    revision: Mapped[int | None] = mapped_column(Integer)
    body: Mapped[str]
    previous: Mapped[str]
    hash: Mapped[str]


# Rows, typed by their tables: read, inserted, and read as the driver gives them where there are many.

Found = TypeVar("Found", bound=Row)
Columns = TypeVar("Columns", bound=tuple[Any, ...])


def read_rows(connection: Connection, query: Select[tuple[Found]], **values: object) -> Sequence[Found]:
    """Return the rows of one table that a query finds, typed as its class; `values` bind its parameters."""
    found: Any = connection.execute(query, values).all()
    return cast(Sequence[Found], found)


def one_row(connection: Connection, query: Select[tuple[Found]], **values: object) -> Found | None:
    """Return the only row that a query finds, as `rows` does; None if it finds none."""
    found: Any = connection.execute(query, values).one_or_none()
    return cast(Found | None, found)


def insert_row(connection: Connection, table: type[Row], **columns: object) -> int:
    """Insert one row and return its key."""
    keys = connection.execute(insert(table).values(**columns)).inserted_primary_key
    assert keys is not None
    return int(keys[0])


def columns_named(table: type[Row], names: Iterable[str]) -> list[InstrumentedAttribute[Any]]:
    """Return the columns of a table that have these names."""
    return [getattr(table, name) for name in names]


def plain_rows(connection: Connection, query: Select[Columns]) -> Iterator[Columns]:
    """Yield the rows of a long query, of text and integers, as the driver gives them: plain tuples."""
    cursor: Any = connection.execute(query).cursor
    return iter(cursor)


# Rows of streams and privacy budgets: found, held to a transaction's end, read as terms and written.

LOCKED_STREAM = select(StreamRow).where(StreamRow.name == bindparam("stream")).with_for_update()
_GRANT = select(GrantRow).where(GrantRow.id == bindparam("grant"))
_LOCKED_GRANT = _GRANT.with_for_update()


def lock(connection: Connection, stream: str) -> tuple[StreamRow, GrantRow]:
    """Return the rows of an enrolled stream and of its budget, locked always in this order until commit."""
    row = one_row(connection, LOCKED_STREAM, stream=stream)
    if row is None:
        raise LedgerError(f"stream {stream!r} is not in the ledger: enrol it first")
    return row, grant_of(connection, row, _LOCKED_GRANT)


def grant_of(connection: Connection, stream: StreamRow, query: Select[tuple[GrantRow]] = _GRANT) -> GrantRow:
    """Return the row of a stream's privacy budget."""
    grant = one_row(connection, query, grant=stream.grant_id)
    assert grant is not None
    return grant


def find_stream(connection: Connection, stream: str) -> StreamRow | None:
    """Return the row of a stream, or None."""
    return one_row(connection, select(StreamRow).where(StreamRow.name == stream))


def id_of(stream: str | BindParameter[str]) -> ScalarSelect[int]:
    """Return the key of a stream, within a query; NULL, which equals nothing, for an unknown one."""
    return select(StreamRow.id).where(StreamRow.name == stream).scalar_subquery()


def find_grant(connection: Connection, grant: str) -> GrantRow:
    """Return the row of a privacy budget. Raises LedgerError if there is none."""
    row = one_row(connection, select(GrantRow).where(GrantRow.name == grant))
    if row is None:
        raise LedgerError(f"privacy budget {grant!r} is not in the ledger: enrol one of its streams first")
    return row


GUARANTEE_COLUMNS = tuple(GuaranteeColumns.__annotations__)
AMOUNTS = {"epsilon", "alpha", "resolution", "delta", "rho"}


def model_of(stated: Mapping[str, Any]) -> PrivacyModel:
    """Return the guarantee of stored columns, amounts as exact text, without delta and rho if of epsilon."""
    known = {name: value for name, value in stated.items() if value is not None}
    known |= {name: exact_from_text(known[name]) for name in AMOUNTS & known.keys()}
    return PrivacyModel(**known)


TERMS = ("hierarchy_hash", "calibration", "calendar", "document")
"""Columns of a stream's row that are as in its terms."""


def columns_of(terms: StreamTerms) -> dict[str, str]:
    """Return the columns of a stream's row that say its terms."""
    own = {"budget_alpha": terms.budget_alpha, "stream_share": terms.stream_share}
    stated = {name: str(amount) for name, amount in own.items() if amount is not None}
    model = json.dumps({**terms.model.to_document(), **stated}, sort_keys=True)
    rest = {name: getattr(terms, name) for name in TERMS}
    # empty for one tree, which `hierarchy_hash` identifies
    hierarchy = json.dumps(terms.trees[1:] and list(map(list, terms.trees)), separators=(",", ":"))
    return {"model": model, **rest, "hierarchy": hierarchy}


def event_body(terms: StreamTerms, amendment: int) -> dict[str, object]:
    """Return the terms as an event records them, under guarantee `amendment`; several trees are listed."""
    trees = {"hierarchy": [list(one) for one in terms.trees]} if terms.trees[1:] else {}
    return {**terms.guarantee(), "document": terms.document, **trees, "amendment": amendment}


def terms_of(connection: Connection, stream: StreamRow) -> StreamTerms:
    """Return a stream's row as terms."""
    grant = connection.execute(select(GrantRow.name).where(GrantRow.id == stream.grant_id)).scalar_one()
    stated = dict(json.loads(stream.model))
    names = stated.keys() & {"budget_alpha", "stream_share"}
    own: dict[str, Any] = {name: exact_from_text(stated.pop(name)) for name in names}
    own |= {name: getattr(stream, name) for name in TERMS}
    trees = trees_from(own | {"hierarchy": json.loads(stream.hierarchy)})
    return StreamTerms(stream.name, grant, model_of(stated), trees=trees, **own)


# Rows of releases.

_RELEASE = select(ReleaseRow).where(
    ReleaseRow.stream_id == id_of(bindparam("stream")),
    ReleaseRow.period == bindparam("period"),
    ReleaseRow.revision == bindparam("revision"),
)


def find_row(connection: Connection, key: Key) -> ReleaseRow | None:
    """Return a release's row, or None."""
    return one_row(connection, _RELEASE, **key._asdict())


# The events of a stream: each carries the hash of the one before, so no edit, gap or swap goes unseen.

HEADS_AT_ONCE = 1000

HASHED = ("previous", "number", "at", "kind", "period", "revision", "body")
"""The columns of an event that its hash is made of, in this order."""
PlainEvent = tuple[str, int, str, str, str | None, int | None, str, str]
"""Those, and one more: the hash that is kept."""

GENESIS = "0" * 64  # what stands for the hash before a stream's first event

# built once: making and comparing a statement costs the processor more than SQLite does to run it
_STREAM = select(StreamRow).where(StreamRow.id == bindparam("stream"))
_APPEND = insert(EventRow)
_ADVANCE = update(StreamRow).where(StreamRow.id == bindparam("stream"))
_ADVANCE = _ADVANCE.values(head=bindparam("new_head"), n_events=bindparam("new_count"))


def hash_of(stream: str, event: PlainEvent) -> str:
    """Return sha256 of the stream's name and the HASHED columns of an event, none with a line break."""
    previous, number, at, kind, period, revision, body, _ = event
    # None is written as nothing; a period is never empty text
    return sha256(
        f"{stream}\n{previous}\n{number}\n{at}\n{kind}\n{'' if period is None else period}\n"
        f"{'' if revision is None else revision}\n{body}".encode()
    ).hexdigest()


def append(
    connection: Connection,
    stream_id: int,
    kind: str,
    now: datetime,
    body: Mapping[str, object],
    key: tuple[str, int] | None = None,
) -> None:
    """Add an event to a stream whose row the transaction holds. key: period and revision of a release."""
    stream = one_row(connection, _STREAM, stream=stream_id)
    assert stream is not None
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    period, revision = key or (None, None)
    event = (stream.head, stream.n_events, stamp(now), kind, period, revision, text)
    head = hash_of(stream.name, (*event, ""))
    columns = dict(zip(HASHED, event, strict=True))
    connection.execute(_APPEND, {"stream_id": stream_id, "hash": head, **columns})
    moved = {"stream": stream_id, "new_head": head, "new_count": stream.n_events + 1}
    connection.execute(_ADVANCE, moved)


def check_contains(connection: Connection, heads: Iterable[str]) -> None:
    """Raise LedgerError unless the ledger has every one of the heads that a catalogue carries."""
    for head in missing_heads(connection, heads):
        raise LedgerError(
            f"the ledger does not contain the head {head[:12]} of the published catalogue: it was "
            "restored from an older copy, or belongs to another folder; nothing may be drawn or published "
            "from it. Bring back the ledger that the catalogue was written with"
        )


def missing_heads(connection: Connection, heads: Iterable[str]) -> list[str]:
    """Return, sorted, a catalogue's heads that no event has: with any, the ledger is an older copy."""
    wanted = sorted(set(heads))
    found: set[str] = set()
    # a catalogue of ten years has thousands of heads, more than one query may name
    for place in range(0, len(wanted), HEADS_AT_ONCE):
        some = wanted[place : place + HEADS_AT_ONCE]
        query = select(EventRow.hash).join(StreamRow, EventRow.stream_id == StreamRow.id)
        found.update(connection.execute(query.where(EventRow.hash.in_(some))).scalars())
    return [head for head in wanted if head not in found]

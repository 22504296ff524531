"""Checking the ledger against itself: the chain is recomputed and every row replayed from its events."""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, func, or_, select

from optstream.ledger.accounting.amendments import GUARANTEE_COLUMNS, guarantees_of
from optstream.ledger.accounting.history import History
from optstream.ledger.database.rows import read_rows
from optstream.ledger.database.schema import (
    AmendmentRow,
    EventRow,
    GrantRow,
    ReleaseRow,
    Row,
    SpendRow,
    StreamRow,
    VintageRow,
)
from optstream.ledger.transactions.enrol import OF_GRANT
from optstream.ledger.verification.events import EventRecord, chain_problems, readable_terms
from optstream.ledger.verification.releases import Account, release_problems, vintage_problems

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
    told = EventRecord(guarantees=account.recorded_guarantees)
    yield from chain_problems(connection, stream, told)
    yield from vintage_problems(connection, stream, told.vintages)
    yield from release_problems(connection, stream, told, account)


def stray_problems(connection: Connection, n_spends: int) -> Iterator[str]:
    """Yield what is not looked at above: rows whose owner is not there. n_spends: how many were looked at."""
    for owner in (GrantRow, StreamRow, ReleaseRow):
        # in a table that was made anew; and nothing is found to be missing in what holds a NULL
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
        # terms that cannot be read are told with their stream
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
        number: said for (name, number), said in account.recorded_guarantees.items() if name == grant.name
    }
    if sorted(row.number for row in found) != list(range(grant.amendment + 1)):
        return False
    relied_on = set(account.history.amendments)
    if recorded:
        relied_on.add(grant.amendment)
        if kept.get(grant.amendment) != [getattr(grant, name) for name in GUARANTEE_COLUMNS]:
            return False
    return relied_on <= set(recorded) and all(kept.get(number) == said for number, said in recorded.items())


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
            told = (
                f"{budget}: the window from step {cost.first_step} costs {cost.epsilon}, "
                f"more than {guarantee.budget}"
            )
            kept = f", which privacy guarantee {number} allows: days in it were released under that"
            yield told + (kept if grant.amendment else "")

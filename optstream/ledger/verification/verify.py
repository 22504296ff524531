"""Checking the ledger against itself: the chain is recomputed and every row replayed from its events."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, or_, select

from optstream.ledger.accounting.amendments import GUARANTEE_COLUMNS, guarantees_of
from optstream.ledger.accounting.history import History
from optstream.ledger.database.schema import amendments, events, grants, releases, spends, streams, vintages
from optstream.ledger.transactions.enrol import OF_GRANT
from optstream.ledger.verification.events import EventRecord, chain_problems, readable_terms
from optstream.ledger.verification.releases import Account, release_problems
from optstream.ledger.verification.vintages import vintage_problems

OWNED = (
    (releases, releases.c.stream_id, streams),
    (events, events.c.stream_id, streams),
    (vintages, vintages.c.release_id, releases),
    (amendments, amendments.c.grant_id, grants),
)
"""Tables, and whose their rows are."""


def problems(connection: Connection) -> Iterator[str]:
    """Yield everything that does not fit, in words; nothing if the ledger is whole. Memory: one stream."""
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
    """Yield what does not fit in a stream by itself; its spends are entered into its privacy budget's
    account.
    """
    told = EventRecord(guarantees=account.recorded_guarantees)
    yield from chain_problems(connection, stream, told)
    yield from vintage_problems(connection, stream, told.vintages)
    yield from release_problems(connection, stream, told, account)


def stray_problems(connection: Connection, n_spends: int) -> Iterator[str]:
    """Yield what is not looked at above: rows whose owner is not there. n_spends: how many were looked at."""
    for owner in (grants, streams, releases):
        # in a table that was made anew; and nothing is found to be missing in what holds a NULL
        if _count(connection, owner, owner.c.id.is_(None)):
            yield f"some {owner.name} have no number, so what belongs to them cannot be told"
    key = streams.c.grant_id
    query = select(streams.c.name).where(or_(key.is_(None), key.not_in(select(grants.c.id))))
    for name in connection.execute(query).scalars():
        yield f"stream {name!r}: its privacy budget is missing"
    for table, key, owner in OWNED:
        # one after the other, for together they are in no index
        strays = _count(connection, table, key.not_in(select(owner.c.id)))
        strays += _count(connection, table, key.is_(None))
        if strays:
            yield f"{strays} {table.name} belong to no row of {owner.name}"
    strays = _count(connection, spends) - n_spends
    if strays > 0:
        yield f"{strays} spends belong to no release of a stream with a privacy budget"
    elif strays:
        yield "some spends were met twice: rows of privacy budgets, streams or releases are there twice"


def _count(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one())


def grant_problems(connection: Connection, grant: Any, account: Account) -> Iterator[str]:
    """Yield what does not fit in a privacy budget whose streams were all read: its row, and the price of its
    windows.
    """
    budget = f"privacy budget {grant.name!r}"
    kept = connection.execute(select(amendments).where(amendments.c.grant_id == grant.id)).all()
    counted = grant.longest_spend, grant.amendment, *(row.number for row in kept)
    if not all(isinstance(number, int) for number in counted):
        # SQLite keeps text among numbers
        yield f"{budget}: its row or its amendments hold what is no number"
        return
    if account.longest != grant.longest_spend:
        yield f"{budget}: its longest spend, by which windows are judged, is not as its row says"
    for stream in connection.execute(select(streams).where(streams.c.grant_id == grant.id)).all():
        terms = readable_terms(connection, stream)
        guarantee = terms.guarantee() if terms else {}
        # terms that cannot be read are told with their stream
        differing = [name for name in OF_GRANT if guarantee and guarantee[name] != getattr(grant, name)]
        if differing:
            yield f"{budget}: {', '.join(differing)} differ from those of stream {stream.name!r}"
    if not _guarantees_as_recorded(grant, kept, account):
        yield f"{budget}: its privacy guarantees are not those in the events of its streams"
        return
    yield from _windows(connection, grant, account.history)


def _guarantees_as_recorded(grant: Any, rows: Sequence[Any], account: Account) -> bool:
    """Return whether the privacy guarantees that spends are priced by (rows: amendments) are those of the
    events.
    """
    kept = {row.number: [getattr(row, name) for name in GUARANTEE_COLUMNS] for row in rows}
    recorded = {
        number: said for (name, number), said in account.recorded_guarantees.items() if name == grant.name
    }
    if sorted(kept) != list(range(grant.amendment + 1)):
        return False
    relied_on = set(account.history.amendments)
    if recorded:
        relied_on.add(grant.amendment)
        if kept.get(grant.amendment) != [getattr(grant, name) for name in GUARANTEE_COLUMNS]:
            return False
    return relied_on <= set(recorded) and all(kept.get(number) == said for number, said in recorded.items())


def _windows(connection: Connection, grant: Any, history: History) -> Iterator[str]:
    """Yield whether each privacy guarantee is kept in every window with a step that was planned under it, by
    all spends.
    """
    budget = f"privacy budget {grant.name!r}"
    try:
        costs = history.costs(guarantees_of(connection, grant))
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        yield f"{budget}: some of its spends cannot be read, so its windows have no price"
        return
    for number, guarantee, cost in costs:
        if cost.epsilon > guarantee.epsilon:
            told = (
                f"{budget}: the window from step {cost.first_step} costs {cost.epsilon}, "
                f"more than {guarantee.epsilon}"
            )
            kept = f", which privacy guarantee {number} allows: days in it were released under that"
            yield told + (kept if grant.amendment else "")

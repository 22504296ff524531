"""Checking the ledger against itself: the chain is recomputed and every row replayed from its events."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from sqlite3 import OperationalError

import orjson
from sqlalchemy import ColumnElement, Connection, Engine, Select, func, or_, select

from optstream.errors import LedgerError, OptStreamError
from optstream.ledger.accounting import COLUMNS, History, guarantees_of, rows_hash
from optstream.ledger.database import reading
from optstream.ledger.records import Entries, Key, StreamTerms, continues, trees_from
from optstream.ledger.schema import (
    GENESIS,
    GUARANTEE_COLUMNS,
    HASHED,
    AmendmentRow,
    EventRow,
    GrantRow,
    ReleaseRow,
    Row,
    SpendRow,
    StreamRow,
    VintageRow,
    columns_named,
    event_body,
    hash_of,
    plain_rows,
    read_rows,
    terms_of,
)
from optstream.ledger.terms import OF_GRANT

Body = dict[str, object]  # the columns of an event with their new values, of any type, as they were read
Place = tuple[object, ...]
"""Period and revision, as an event has them; with a third, the number of a vintage, or of a generation."""


# a renewed lease leaves no event
OF_RELEASE, OF_VINTAGE = (
    [column.name for column in table.__table__.columns if column.name not in named]
    for table, named in (
        (ReleaseRow, {"id", "stream_id", "period", "revision", "lease_until"}),
        (VintageRow, {"id", "release_id", "number"}),
    )
)
NOTHING_RESERVED = -(2**62)


@dataclass
class Account:
    """A privacy budget's spends in force, and its guarantees by the events, named by budget and number."""

    history: History = field(default_factory=History)
    longest: int = 0
    n_spends: int = 0
    guarantees: dict[Place, list[object]] = field(default_factory=dict)


@dataclass
class StreamCheck:
    """A stream against its events, which are replayed first: columns of releases, hashes of spends, trees."""

    connection: Connection
    stream: StreamRow
    account: Account
    releases: dict[Place, Body] = field(default_factory=dict)
    spends: dict[Place, object] = field(default_factory=dict)
    vintages: dict[Place, Body] = field(default_factory=dict)
    terms: Body | None = None
    trees: Entries | None = None
    reserved_until: int = NOTHING_RESERVED
    tree_problems: list[int] = field(default_factory=list)

    def problems(self) -> Iterator[str]:
        """Yield what does not fit in the stream by itself, and charge its spends to the account."""
        yield from self._chain()
        place = (ReleaseRow.period, ReleaseRow.revision)
        vintages = (
            select(*place, VintageRow.number, *columns_named(VintageRow, OF_VINTAGE))
            .join(VintageRow, ReleaseRow.id == VintageRow.release_id)
            .order_by(VintageRow.release_id, VintageRow.number)
        )
        releases = select(*place, *columns_named(ReleaseRow, OF_RELEASE))
        releases = releases.order_by(ReleaseRow.first_step, ReleaseRow.id)
        yield from self._rows(vintages, OF_VINTAGE, self.vintages)
        yield from self._rows(releases, OF_RELEASE, self.releases)
        yield from self._spends()

    def _chain(self) -> Iterator[str]:
        name, before, expected, releases = self.stream.name, GENESIS, 0, self.releases
        events = select(*columns_named(EventRow, (*HASHED, "hash"))).where(
            EventRow.stream_id == self.stream.id
        )
        for event in plain_rows(self.connection, events.order_by(EventRow.number)):
            previous, number, _, kind, period, revision, text, found = event
            if number != expected:
                missing = f"event {expected} should be here; events are missing or out of order"
                yield f"stream {name!r}, event {number}: {missing}"
            if previous != before:
                yield f"stream {name!r}, event {number}: does not follow the event before it"
            if found != hash_of(name, event):
                yield f"stream {name!r}, event {number}: was changed after it was written"
            # SQLite keeps text among numbers
            before, expected = found, (number if isinstance(number, int) else expected) + 1
            try:
                body = orjson.loads(text)
            except ValueError:
                body = None
            if type(body) is not dict:
                body = {}
            # a list in the place of a name names nothing, and its row is missed below
            try:
                if period is None:
                    self._replay_terms(number, kind, body)
                elif "vintage" in body:
                    self.vintages.setdefault((period, revision, body["vintage"]), {}).update(body)
                else:
                    place = (period, revision)
                    stated = releases.get(place)
                    if stated is None:
                        # events from before there were amendments do not say it
                        body.setdefault("amendment", 0)
                        releases[place] = body
                    else:
                        stated |= body
                    if "n_steps" in body:
                        until = body["first_step"] + body["n_steps"]
                        self.reserved_until = max(self.reserved_until, until)
                    if "spends_hash" in body:
                        self.spends[period, revision, body.get("generation", 0)] = body["spends_hash"]
            except (TypeError, ValueError, KeyError):
                continue
        if (self.stream.head, self.stream.n_events) != (before, expected):
            yield f"stream {name!r}: its last event is not the one that its row names"
        for number in self.tree_problems:
            changes = "changes the hierarchy of days that were reserved before it, and is no amendment"
            yield f"stream {name!r}, event {number}: {changes}"
        terms = readable_terms(self.connection, self.stream)
        kept, stated = event_body(terms, 0) if terms else {}, self.terms or {}
        # some that not every stream's terms have: a row that lacks them where the event has them was edited
        named = {*kept, "hierarchy", "own_alpha", "stream_share", "delta", "rho"} - {"amendment"}
        if terms is None or self.terms is None or any(stated.get(one) != kept.get(one) for one in named):
            yield f"stream {name!r}: its terms differ from its events"

    def _replay_terms(self, number: int, kind: str, body: Body) -> None:
        self.terms = body
        named = body.get("grant"), body.get("amendment", 0)
        self.account.guarantees[named] = [body.get(name) for name in GUARANTEE_COLUMNS]
        trees = trees_from(body)
        # until something is reserved, terms may be any
        is_kept = kind == "amended" or self.trees is None or self.reserved_until == NOTHING_RESERVED
        if not is_kept and not continues(self.trees or (), trees, self.reserved_until):
            self.tree_problems.append(number)
        self.trees = trees

    def _rows(self, query: Select[Place], names: Sequence[str], recorded: dict[Place, Body]) -> Iterator[str]:
        """Yield what differs between rows, which begin with what names them, and their events."""
        for row in plain_rows(self.connection, query.where(ReleaseRow.stream_id == self.stream.id)):
            place, values = row[: -len(names)], row[-len(names) :]
            stated = recorded.pop(place, None)
            if stated is None:
                yield f"{self._named(place)}: no event tells of it"
                continue
            # a driver may give 0 and 1 for false and true; they are equal
            if tuple(map(stated.get, names)) != values:
                pairs = zip(names, values, strict=True)
                differing = ", ".join(name for name, value in pairs if stated.get(name) != value)
                yield f"{self._named(place)}: differs from its events in {differing}"
        for place in recorded:
            yield f"{self._named(place)}: its events are there, its row is gone"

    def _named(self, place: Sequence[object]) -> str:
        return ", vintage ".join([str(Key._make((self.stream.name, *place[:2]))), *map(str, place[2:])])

    def _spends(self) -> Iterator[str]:
        """Compare every generation of spends with its recorded hash; charge the one in force if it agrees."""
        query = (
            select(SpendRow.release_id, SpendRow.generation, SpendRow.grant_id)
            .add_columns(ReleaseRow.period, ReleaseRow.revision, ReleaseRow.generation, ReleaseRow.amendment)
            .add_columns(*columns_named(SpendRow, COLUMNS))
            .join(ReleaseRow, SpendRow.release_id == ReleaseRow.id)
            .where(ReleaseRow.stream_id == self.stream.id)
            # in the order of indexes, so that SQLite sorts nothing
            .order_by(ReleaseRow.first_step, ReleaseRow.id, SpendRow.generation, SpendRow.position)
        )
        by_plan = groupby(plain_rows(self.connection, query), key=itemgetter(*range(7)))
        for (_, generation, grant_id, *place, in_force, amendment), group in by_plan:
            plan = [row[7:] for row in group]
            self.account.n_spends += len(plan)
            digest = self.spends.pop((*place, generation), None)
            # SQLite keeps text among numbers, and a line whose spaces are in other columns has the same hash
            is_numbered = all(isinstance(number, int) for row in plan for number in row[:3])
            if digest != rows_hash(grant_id, plan) or not is_numbered:
                yield f"{self._named(place)}: its spends are not those of its events"
                continue
            self.account.longest = max(self.account.longest, *[n_steps for _, _, n_steps, _ in plan])
            if generation == in_force:
                self.account.history.add(plan, amendment)
        nothing = rows_hash(self.stream.grant_id, [])
        for place, digest in self.spends.items():
            if digest != nothing:
                yield f"{self._named(place[:2])}: its spends are gone"


def readable_terms(connection: Connection, stream: StreamRow) -> StreamTerms | None:
    """Return a stream's terms; None where its row cannot be read as such."""
    try:
        return terms_of(connection, stream)
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OptStreamError):
        return None


def grant_problems(connection: Connection, grant: GrantRow, account: Account) -> Iterator[str]:
    """Yield what does not fit in a privacy budget whose streams were read: its row, its windows' price."""
    budget = f"privacy budget {grant.name!r}"
    kept = read_rows(connection, select(AmendmentRow).where(AmendmentRow.grant_id == grant.id))
    counted = grant.longest_spend, grant.amendment, *(row.number for row in kept)
    if not all(isinstance(number, int) for number in counted):
        # SQLite keeps text among numbers
        yield f"{budget}: its row or its amendments hold a value that is no number"
        return
    if account.longest != grant.longest_spend:
        yield f"{budget}: its longest spend, which decides the windows to check, differs from its row"
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
    try:
        costs = account.history.costs(guarantees_of(connection, grant))
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        yield f"{budget}: some of its spends cannot be read, so its windows have no price"
        return
    for number, model, cost in costs:
        if cost.epsilon > model.budget:
            allows = f", which privacy guarantee {number} allows: days in it were released under that"
            yield (
                f"{budget}: the window from step {cost.first_step} costs {cost.epsilon}, "
                f"more than {model.budget}{allows if grant.amendment else ''}"
            )


def _guarantees_as_recorded(grant: GrantRow, found: Iterable[AmendmentRow], account: Account) -> bool:
    """Return whether the guarantees that price spends (found: amendments) are those of the events."""
    stated = [(row.number, [getattr(row, name) for name in GUARANTEE_COLUMNS]) for row in found]
    kept: dict[object, object] = dict(stated)
    recorded = {number: stated for (name, number), stated in account.guarantees.items() if name == grant.name}
    if sorted(row.number for row in found) != list(range(grant.amendment + 1)):
        return False
    relied_on = set(account.history.amendments)
    if recorded:
        relied_on.add(grant.amendment)
        if kept.get(grant.amendment) != [getattr(grant, name) for name in GUARANTEE_COLUMNS]:
            return False
    return relied_on <= recorded.keys() and all(kept.get(n) == stated for n, stated in recorded.items())


def stray_problems(connection: Connection, n_spends: int) -> Iterator[str]:
    """Yield rows whose owner is not there, which were not read above; `n_spends` were."""
    for owner in (GrantRow, StreamRow, ReleaseRow):
        # in a table that was replaced; and a NULL hides a missing owner
        if _count(connection, owner, owner.id.is_(None)):
            yield f"some {owner.__tablename__} have no number, so what belongs to them is unknown"
    grant_id = StreamRow.grant_id
    query = select(StreamRow.name).where(or_(grant_id.is_(None), grant_id.not_in(select(GrantRow.id))))
    for name in connection.execute(query).scalars():
        yield f"stream {name!r}: its privacy budget is missing"
    for table, key, owner in (
        (ReleaseRow, ReleaseRow.stream_id, StreamRow),
        (EventRow, EventRow.stream_id, StreamRow),
        (VintageRow, VintageRow.release_id, ReleaseRow),
        (AmendmentRow, AmendmentRow.grant_id, GrantRow),
    ):
        # one after the other, for together they are in no index
        conditions = key.not_in(select(owner.id)), key.is_(None)
        if strays := sum(_count(connection, table, one) for one in conditions):
            yield f"{strays} {table.__tablename__} belong to no row of {owner.__tablename__}"
    strays = _count(connection, SpendRow) - n_spends
    if strays > 0:
        yield f"{strays} spends belong to no release of a stream with a privacy budget"
    elif strays:
        yield "some spends were met twice: rows of privacy budgets, streams or releases are there twice"


def _count(connection: Connection, table: type[Row], *conditions: ColumnElement[bool]) -> int:
    return connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one()


def problems(connection: Connection) -> Iterator[str]:
    """Yield everything that does not fit, in words; nothing if the ledger is whole. Memory: one stream."""
    n_spends = 0
    for grant in read_rows(connection, select(GrantRow).order_by(GrantRow.name)):
        account = Account()
        members = select(StreamRow).where(StreamRow.grant_id == grant.id).order_by(StreamRow.name)
        for stream in read_rows(connection, members):
            yield from StreamCheck(connection, stream, account).problems()
        yield from grant_problems(connection, grant, account)
        n_spends += account.n_spends
    yield from stray_problems(connection, n_spends)


def verify(engine: Engine) -> list[str]:
    """Return the `problems` of one moment."""
    try:
        with reading(engine) as connection:
            return list(problems(connection))
    except (OperationalError, LedgerError) as error:
        if "Could not decode to UTF-8" not in str(error):
            raise
        # SQLite keeps any bytes as text, and shows no row that has others
        return ["some row holds bytes that are no text: it was changed from outside; bring a backup back"]

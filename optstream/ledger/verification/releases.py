"""Checking a stream's releases, spends and vintages against what its events say of them."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection, Select, select

from optstream.ledger.accounting.history import History
from optstream.ledger.accounting.spends import COLUMNS, PlainSpend, hash_of_lines, lines_of
from optstream.ledger.database.rows import plain_rows
from optstream.ledger.database.schema import ReleaseRow, SpendRow, StreamRow, VintageRow
from optstream.ledger.transactions.held import describe
from optstream.ledger.verification.events import (
    EventRecord,
    Generation,
    Named,
    RecordedGuarantees,
    Said,
    ToldOfVintages,
)

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
    """What was read of a privacy budget's spends: those in force, the most steps of any, how many rows there
    are.

    recorded_guarantees: what the events of its streams say of its privacy guarantees.
    priced: the windows were judged already, and the history dropped.
    """

    history: History = field(default_factory=History)
    longest: int = 0
    n_spends: int = 0
    recorded_guarantees: RecordedGuarantees = field(default_factory=dict)
    priced: bool = False

    def include(self, other: "Account") -> None:
        """Add what was read of other streams of the privacy budget."""
        self.history.include(other.history)
        self.recorded_guarantees |= other.recorded_guarantees
        self.longest = max(self.longest, other.longest)
        self.n_spends += other.n_spends
        self.priced |= other.priced


def release_problems(
    connection: Connection, stream: StreamRow, told: EventRecord, account: Account
) -> Iterator[str]:
    """Yield what differs between a stream's releases and spends and what its events record of them; the
    spends are entered into its privacy budget's account.
    """
    rows = yield from _releases(connection, stream, told.releases)
    yield from _spends(connection, stream, rows, told.spends, account)


def _releases(
    connection: Connection, stream: StreamRow, replayed: dict[Named, Said]
) -> Generator[str, None, list[tuple[int, str, int, int, int]]]:
    """Compare the stream's releases with their events.

    Returns their id, period, revision, generation and amendment.
    """
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
        said = replayed.pop((period, revision), None)
        if said is None:
            yield f"{describe(stream.name, period, revision)}: no event tells of it"
            continue
        # events from before there were amendments do not say it
        said.setdefault("amendment", 0)
        # a driver may give 0 and 1 for false and true; they are equal
        try:
            recorded = _replayed(said)
        except KeyError:
            recorded = tuple(map(said.get, REPLAYED))
        if recorded != values:
            differing = [
                name
                for name, value, found_value in zip(REPLAYED, recorded, values, strict=True)
                if value != found_value
            ]
            named = describe(stream.name, period, revision)
            yield f"{named}: differs from what its events record in {', '.join(differing)}"
    for key in replayed:
        yield f"{describe(stream.name, *key)}: its events are there, its row is gone"
    return found


def _spends(
    connection: Connection,
    stream: StreamRow,
    rows: list[tuple[int, str, int, int, int]],
    recorded: dict[Generation, object],
    account: Account,
) -> Iterator[str]:
    """Compare every generation of spends with the hash that its event recorded; charge the one in force.

    One that differs is told and not charged: nobody knows what it was, and its numbers may be without bounds.
    """
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
        told = recorded.pop((period, revision, generation), None)
        if told != hash_of_lines(grant_id, lines_of(plan)) or not _are_numbered(plan):
            yield f"{describe(stream.name, period, revision)}: its spends are not those of its events"
            continue
        account.longest = max(account.longest, *map(_n_steps, plan))
        if generation == in_force:
            for position, first_step, _, document in plan:
                account.history.add(position, first_step, document, amendment)
    for key, digest in recorded.items():
        if digest != nothing:
            yield f"{describe(stream.name, *key[:2])}: its spends are gone"


def _are_numbered(plan: Sequence[PlainSpend]) -> bool:
    """Return whether what comes before the documents is numbers: then a line can be read in one way only.

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


def vintage_problems(connection: Connection, stream: StreamRow, told: ToldOfVintages) -> Iterator[str]:
    """Yield what differs between a stream's vintages and what its events record of them."""
    left = dict(told)
    query = (
        select(ReleaseRow.period, ReleaseRow.revision, VintageRow.number, *_OF_VINTAGE)
        .join(ReleaseRow, ReleaseRow.id == VintageRow.release_id)
        .where(ReleaseRow.stream_id == stream.id)
        .order_by(VintageRow.release_id, VintageRow.number)
    )
    for period, revision, number, *values in plain_rows(connection, query):
        named = f"{describe(stream.name, period, revision)}, vintage {number}"
        said = left.pop((period, revision, number), None)
        if said is None:
            yield f"{named}: no event tells of it"
            continue
        differing = [name for name, value in zip(OF_VINTAGE, values, strict=True) if said.get(name) != value]
        if differing:
            yield f"{named}: differs from what its events record in {', '.join(differing)}"
    for key in left:
        yield f"{describe(stream.name, *key[:2])}, vintage {key[2]}: its events are there, its row is gone"

"""Vintages: new estimates of a PUBLISHED release from measurements that were charged already. They cost
nothing, so nothing here touches a spend; what is recorded is which bytes may be shown, before they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, select, update

from optstream.errors import LedgerError, ParameterError
from optstream.ledger.database.rows import insert_row
from optstream.ledger.database.schema import ReleaseRow, VintageRow
from optstream.ledger.database.stream_rows import id_of
from optstream.ledger.hash_chain import append
from optstream.ledger.records import LONGEST_LEASE, ReleaseState, Reservation, check_name, stamp
from optstream.ledger.transactions.held import Key, describe, held_row, key_of
from optstream.ledger.transactions.leases import take_lease


@dataclass(frozen=True)
class Vintage:
    """A new estimate of a PUBLISHED release; the first estimate, number 0, is the release's own.

    Attributes:
        number: From 1 on, rising.
        basis: Identifies the measurements that it was computed from.
        staged_hash: Hash of the bytes that readers get.
        published_name: Name under which they are published.
        published: Whether the catalogue is known to list it.
    """

    number: int
    basis: str
    staged_hash: str
    published_name: str
    published: bool


_COLUMNS = [getattr(VintageRow, name) for name in Vintage.__dataclass_fields__]


def revise(
    connection: Connection,
    stream: str,
    period: str,
    revision: int,
    owner: str,
    now: datetime,
    lease: timedelta,
) -> Reservation:
    """Hold a PUBLISHED release until now + lease, to give it a new estimate. Charges nothing.

    Earlier reservations become stale. A lease that ends later than any lease that is taken now can is of a
    clock that ran ahead, when the release was drawn perhaps, and holds nobody off: no noise is drawn under
    what is given here, and of two owners the later one alone can write.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        owner: Unique to the run.
        now: The caller's time.
        lease: Greater than 0, a day at most.

    Returns:
        The right to record a vintage.

    Raises:
        HeldError: Another run holds the release.
        LedgerError: It is not PUBLISHED, or it is withdrawn, compromised or restated.
    """
    key = (stream, period, revision)
    release, _ = held_row(connection, key, None)
    _require_shown(connection, key, release)
    return take_lease(connection, "revising", key, release, owner, now, lease, longest=LONGEST_LEASE)


def record_vintage(connection: Connection, reservation: Reservation, vintage: Vintage, now: datetime) -> None:
    """Record the bytes of a new estimate, before the catalogue shows them. Repeating changes nothing.

    Spends and measurements stay as they are.

    Args:
        reservation: From `revise`, the newest one of the release.
        vintage: Not yet published; its number is above all others of the release.
        now: The caller's time.

    Raises:
        LedgerError: The number is taken or passed; the reservation is stale; or the release is no longer one
            that `revise` would hold.
        ParameterError: The number is less than 1, or the vintage says that it is published.
    """
    for name in ("basis", "staged_hash", "published_name"):
        check_name(getattr(vintage, name), f"{name} of a vintage")
    number = vintage.number
    if isinstance(number, bool) or not isinstance(number, int) or number < 1 or vintage.published:
        raise ParameterError(
            "a vintage that is recorded has a number of at least 1 and is not yet published; "
            f"got number {number!r}"
        )
    key = key_of(reservation)
    release, _ = held_row(connection, key, reservation)
    _require_shown(connection, key, release)
    known = list(of_release(connection, release.id))
    if vintage in known:
        return
    if known and known[-1].number >= number:
        raise LedgerError(
            f"{describe(*key)} has vintage {known[-1].number} already: a new estimate takes the next number"
        )
    insert_row(connection, VintageRow, release_id=release.id, **vars(vintage))
    body = {"vintage": number} | {name: value for name, value in vars(vintage).items() if name != "number"}
    append(connection, release.stream_id, "vintage staged", now, body, (release.period, release.revision))


def record_vintage_published(
    connection: Connection, reservation: Reservation, number: int, now: datetime
) -> None:
    """Record that the catalogue lists a staged vintage, and end the lease. Repeating changes nothing.

    Args:
        reservation: From `revise`, the newest one of the release.
        number: Of the vintage.
        now: The caller's time.

    Raises:
        LedgerError: No such vintage was staged, or the reservation is stale.
    """
    key = key_of(reservation)
    release, _ = held_row(connection, key, reservation)
    known = {vintage.number: vintage for vintage in of_release(connection, release.id)}
    if number not in known:
        raise LedgerError(f"{describe(*key)} has no vintage {number} that was staged: nothing is published")
    if known[number].published:
        return
    this = (VintageRow.release_id == release.id, VintageRow.number == number)
    connection.execute(update(VintageRow).where(*this).values(published=True))
    connection.execute(update(ReleaseRow).where(ReleaseRow.id == release.id).values(lease_until=stamp(now)))
    body = {"vintage": number, "published": True}
    append(connection, release.stream_id, "vintage published", now, body, (release.period, release.revision))


def _require_shown(connection: Connection, key: Key, release: ReleaseRow) -> None:
    """Raise LedgerError unless readers have this release and nothing of its day is newer or in doubt."""
    what = None
    if release.state != ReleaseState.PUBLISHED:
        what = release.state
    elif release.withdrawn is not None or release.compromised is not None:
        what = "withdrawn" if release.withdrawn is not None else "compromised"
    else:
        same = (ReleaseRow.stream_id == release.stream_id, ReleaseRow.period == release.period)
        # one that was given up has taken nothing's place
        later = (ReleaseRow.revision > release.revision, ReleaseRow.state != ReleaseState.VOID.value)
        newer = select(ReleaseRow.id).where(*same, *later)
        if connection.execute(newer.limit(1)).one_or_none() is not None:
            what = "restated"
    if what is not None:
        raise LedgerError(f"{describe(*key)} gets no new estimate: it is {what}")


def of_release(connection: Connection, release_id: int) -> Iterator[Vintage]:
    """Yield a release's vintages, rising."""
    query = select(*_COLUMNS).where(VintageRow.release_id == release_id).order_by(VintageRow.number)
    for facts in connection.execute(query):
        yield Vintage(*facts)


def vintages(
    connection: Connection, stream: str, *, unpublished: bool = False, steps: range | None = None
) -> dict[tuple[str, int], tuple[Vintage, ...]]:
    """Return the new estimates of a stream's releases.

    Args:
        stream: Name of the stream.
        unpublished: Whether only those that the catalogue is not known to list.
        steps: Only of releases that begin at one of these steps; None for all.

    Returns:
        Vintages by number, rising, for each period and revision that has any.
    """
    only: list[ColumnElement[bool]] = [VintageRow.published.is_(False)] if unpublished else []
    if steps is not None:
        only += [ReleaseRow.first_step >= steps.start, ReleaseRow.first_step < steps.stop]
    query = (
        select(ReleaseRow.period, ReleaseRow.revision, *_COLUMNS)
        .join(ReleaseRow, ReleaseRow.id == VintageRow.release_id)
        .where(ReleaseRow.stream_id == id_of(stream), *only)
        .order_by(VintageRow.release_id, VintageRow.number)
    )
    found: dict[tuple[str, int], tuple[Vintage, ...]] = {}
    for period, revision, *facts in connection.execute(query):
        found[period, revision] = (*found.get((period, revision), ()), Vintage(*facts))
    return found

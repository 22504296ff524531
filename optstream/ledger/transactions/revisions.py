"""Vintages: new estimates of a PUBLISHED release from measurements that were charged already. They cost
nothing, so nothing here touches a spend; what is recorded is which bytes may be shown, before they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select, update

from optstream.errors import LedgerError, ParameterError
from optstream.ledger.database.engine import insert_row
from optstream.ledger.database.schema import releases, vintages
from optstream.ledger.hash_chain import append, move
from optstream.ledger.records import ReleaseState, Reservation, check_name, lease_end, stamp
from optstream.ledger.transactions.transitions import Key, describe, held, held_row, key_of


@dataclass(frozen=True)
class Vintage:
    """A new estimate of a release; the first estimate, number 0, is the release's own.

    number: from 1 on, rising. basis: identifies the measurements that it was computed from. staged_hash,
    published_name: of the bytes that readers get. published: whether the catalogue is known to list it.
    """

    number: int
    basis: str
    staged_hash: str
    published_name: str
    published: bool


def revise(connection: Connection, key: Key, owner: str, now: datetime, lease: timedelta) -> Reservation:
    """Hold a PUBLISHED release to give it a new estimate; whoever held it is fenced off. Charges nothing."""
    check_name(owner, "owner of a release")
    release, _ = held_row(connection, key, None)
    _require_shown(connection, key, release)
    if release.lease_until > stamp(now) and release.owner != owner:
        raise held(release, describe(*key))
    until = lease_end(now, lease)
    move(connection, release, "revising", now, owner=owner, lease_until=until, fence=release.fence + 1)
    return Reservation(*key, release.fence + 1, release.redraws)


def record_vintage(connection: Connection, reservation: Reservation, vintage: Vintage, now: datetime) -> None:
    """Record the bytes of a new estimate. Once more changes nothing; others of its number are refused."""
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
    insert_row(connection, vintages, release_id=release.id, **vars(vintage))
    body = {"vintage": number} | {name: value for name, value in vars(vintage).items() if name != "number"}
    append(connection, release.stream_id, "vintage staged", now, body, (release.period, release.revision))


def vintage_published(connection: Connection, reservation: Reservation, number: int, now: datetime) -> None:
    """Record that the catalogue lists a vintage, and release its lease. Once more changes nothing."""
    key = key_of(reservation)
    release, _ = held_row(connection, key, reservation)
    known = {vintage.number: vintage for vintage in of_release(connection, release.id)}
    if number not in known:
        raise LedgerError(f"{describe(*key)} has no vintage {number} that was staged: nothing is published")
    if known[number].published:
        return
    this = (vintages.c.release_id == release.id, vintages.c.number == number)
    connection.execute(update(vintages).where(*this).values(published=True))
    connection.execute(update(releases).where(releases.c.id == release.id).values(lease_until=stamp(now)))
    body = {"vintage": number, "published": True}
    append(connection, release.stream_id, "vintage published", now, body, (release.period, release.revision))


def _require_shown(connection: Connection, key: Key, release: Any) -> None:
    """Raise LedgerError unless readers have this release and nothing of its day is newer or in doubt."""
    what = None
    if release.state != ReleaseState.PUBLISHED:
        what = release.state
    elif release.withdrawn is not None or release.compromised is not None:
        what = "withdrawn" if release.withdrawn is not None else "compromised"
    else:
        same = (releases.c.stream_id == release.stream_id, releases.c.period == release.period)
        newer = select(releases.c.id).where(*same, releases.c.revision > release.revision)
        if connection.execute(newer.limit(1)).one_or_none() is not None:
            what = "restated"
    if what is not None:
        raise LedgerError(f"{describe(*key)} gets no new estimate: it is {what}")


def of_release(connection: Connection, release_id: int) -> Iterator[Vintage]:
    """Yield a release's vintages, rising."""
    query = select(vintages).where(vintages.c.release_id == release_id).order_by(vintages.c.number)
    for row in connection.execute(query):
        yield _vintage(row)


def of_stream(
    connection: Connection, stream_id: int, *only: Any
) -> dict[tuple[str, int], tuple[Vintage, ...]]:
    """Return the vintages of a stream's releases, rising, by period and revision; those without are left out.

    only: conditions on the vintages to look at.
    """
    query = (
        select(releases.c.period, releases.c.revision, vintages)
        .join(releases, releases.c.id == vintages.c.release_id)
        .where(releases.c.stream_id == stream_id, *only)
        .order_by(vintages.c.release_id, vintages.c.number)
    )
    found: dict[tuple[str, int], tuple[Vintage, ...]] = {}
    for row in connection.execute(query):
        key = (row.period, row.revision)
        found[key] = (*found.get(key, ()), _vintage(row))
    return found


def _vintage(row: Any) -> Vintage:
    return Vintage(row.number, row.basis, row.staged_hash, row.published_name, bool(row.published))

"""Leases: who holds a release and until when, by the clock of `lease_time`. None of it charges anything."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, update

from optstream.errors import LedgerError
from optstream.ledger.database.engine import lease_time
from optstream.ledger.database.schema import ReleaseRow
from optstream.ledger.hash_chain import move
from optstream.ledger.records import ReleaseState, Reservation, check_name, lease_end, stamp
from optstream.ledger.transactions.held import Key, describe, held, held_row, key_of, require


def renew(connection: Connection, reservation: Reservation, now: datetime, lease: timedelta) -> None:
    """Hold a release until now + lease; never shortens the lease. No event is written: nothing was released.

    Args:
        reservation: The newest one of the release.
        now: The caller's time.
        lease: Greater than 0, a day at most.

    Raises:
        LedgerError: Another run has taken the release over, or it is neither RESERVED nor DRAWN.
    """
    now = lease_time(connection, now)
    key = key_of(reservation)
    release, _ = held_row(connection, key, reservation)
    if release.state not in (ReleaseState.RESERVED, ReleaseState.DRAWN):
        raise LedgerError(f"{describe(*key)} is {release.state}: there is no lease to renew")
    until = max(release.lease_until, lease_end(now, lease))
    connection.execute(update(ReleaseRow).where(ReleaseRow.id == release.id).values(lease_until=until))


def end_lease(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """End the owner's lease, so that the next run need not wait.

    Does nothing while a draw is open, and for a VOID release. No event is written. A lease that ended already
    stays as it is: of an owner whose clock has run ahead since, `now` would hold the day until then.

    Args:
        reservation: The newest one of the release.
        now: The caller's time, at which the lease ends, if it lasts until then.

    Raises:
        LedgerError: Another run has taken the release over.
    """
    now = lease_time(connection, now)
    release, _ = held_row(connection, key_of(reservation), reservation)
    if release.state != ReleaseState.VOID and not release.drawing:
        until = min(release.lease_until, stamp(now))
        connection.execute(update(ReleaseRow).where(ReleaseRow.id == release.id).values(lease_until=until))


def release_lease(
    connection: Connection, stream: str, period: str, revision: int, reason: str, now: datetime
) -> None:
    """End the lease of a run that will not come back, and refuse its later writes; a person's decision.

    What that run drew and did not record counts as a death, as if the lease had ended by itself.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        reason: Why: short printable text without any value.
        now: The caller's time.

    Raises:
        LedgerError: The release is VOID, or not in the ledger.
    """
    key, now = (stream, period, revision), lease_time(connection, now)
    check_name(reason, "reason why a lease is ended")
    release, _ = held_row(connection, key, None)
    if release.state == ReleaseState.VOID:
        raise LedgerError(f"{describe(*key)} is VOID: there is no lease to end")
    until = min(release.lease_until, stamp(now))
    fence = release.fence + 1
    move(connection, release, "lease released", now, {"why": reason}, lease_until=until, fence=fence)


def adopt(
    connection: Connection,
    stream: str,
    period: str,
    revision: int,
    owner: str,
    now: datetime,
    lease: timedelta,
) -> Reservation:
    """Take up a DRAWN release, to publish it; earlier reservations become stale. Charges nothing.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        owner: Unique to the run.
        now: The caller's time.
        lease: Greater than 0, a day at most.

    Returns:
        The right to publish it.

    Raises:
        HeldError: The lease of another owner lasts.
        LedgerError: The release is not DRAWN, or not in the ledger.
    """
    key = (stream, period, revision)
    release, _ = held_row(connection, key, None)
    require(key, release, ReleaseState.DRAWN, "adopted")
    return take_lease(connection, "adopted", key, release, owner, now, lease)


def take_lease(
    connection: Connection,
    kind: str,
    key: Key,
    release: ReleaseRow,
    owner: str,
    now: datetime,
    lease: timedelta,
    *,
    longest: timedelta = timedelta.max,
) -> Reservation:
    """Give a release to `owner` until now + lease, with an event of this kind; earlier reservations are
    stale. Raises HeldError while the lease of another owner lasts, unless it ends later than now + longest.
    """
    check_name(owner, "owner of a release")
    now = lease_time(connection, now)
    lasts = datetime.fromisoformat(release.lease_until) - now
    if timedelta(0) < lasts <= longest and release.owner != owner:
        raise held(release, describe(*key))
    until, fence = lease_end(now, lease), release.fence + 1
    move(connection, release, kind, now, owner=owner, lease_until=until, fence=fence)
    return Reservation(*key, fence, release.redraws)

"""How a release ends but by publication: void, withdrawn, or its noise compromised; all stay charged."""

from datetime import datetime

from sqlalchemy import Connection

from optstream.errors import LedgerError
from optstream.ledger.database.schema import ReleaseRow
from optstream.ledger.hash_chain import move
from optstream.ledger.records import ReleaseState, Reservation, check_name
from optstream.ledger.transactions.held import describe, held_row


def void(
    connection: Connection,
    stream: str,
    period: str,
    revision: int,
    reason: str,
    now: datetime,
    reservation: Reservation | None = None,
) -> None:
    """Give up a release that is RESERVED or DRAWN: it stays charged and is never drawn again.

    Repeating it changes nothing.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        reason: Why: short printable text without any value.
        now: The caller's time.
        reservation: The newest one of the release; None leaves unchecked who asks.

    Raises:
        LedgerError: The release is PUBLISHED, or not in the ledger, or the reservation is stale.
    """
    key = (stream, period, revision)
    check_name(reason, "reason of a VOID release")
    release, _ = held_row(connection, key, reservation)
    if release.state == ReleaseState.VOID:
        return
    if release.state == ReleaseState.PUBLISHED:
        raise LedgerError(f"{describe(*key)} is PUBLISHED and cannot be made VOID: readers have it")
    give_up(connection, release, reason, now)


def give_up(
    connection: Connection, release: ReleaseRow, reason: str, now: datetime, **columns: object
) -> None:
    """Make a release VOID. columns: what else changes with it."""
    void = {"state": ReleaseState.VOID.value, "drawing": False, "reason": reason}
    move(connection, release, "void", now, **void, **columns)


def withdraw(
    connection: Connection, stream: str, period: str, revision: int, reason: str, now: datetime
) -> None:
    """Record that a PUBLISHED release leaves the catalogue; it stays charged.

    A release that is not published is made VOID instead. Repeating it changes nothing.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        reason: Why: short printable text without any value.
        now: The caller's time.

    Raises:
        LedgerError: The release is not in the ledger.
    """
    check_name(reason, "reason of a withdrawal")
    release, _ = held_row(connection, (stream, period, revision), None)
    if release.withdrawn is not None or release.state == ReleaseState.VOID:
        return
    if release.state == ReleaseState.PUBLISHED:
        move(connection, release, "withdrawn", now, withdrawn=reason)
    else:
        give_up(connection, release, reason, now)


def compromise(
    connection: Connection, stream: str, period: str, revision: int, reason: str, now: datetime
) -> None:
    """Record that the noise of a release is known to others: its windows have lost everything.

    The accountant answers infinity for every window that the release charges, and nothing more is reserved or
    drawn in them. A release that is drawn, or being drawn, and not published becomes VOID: it would show the
    raw values to whoever knows the noise. Nothing is refunded, and this is never taken back. Repeating it
    changes nothing.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        reason: Why: short printable text without any value.
        now: The caller's time.

    Raises:
        LedgerError: The release is not in the ledger.
    """
    check_name(reason, "reason why noise is compromised")
    release, _ = held_row(connection, (stream, period, revision), None)
    if release.compromised is None:
        move(connection, release, "compromised", now, compromised=reason)
    if release.state == ReleaseState.DRAWN or release.drawing:
        give_up(connection, release, "its noise became known before it was published", now)

"""Finding the row of a release under lock, and whether whoever asks still holds it."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from optstream.errors import HeldError, LedgerError
from optstream.ledger.records import ReleaseState, Reservation, check_key
from optstream.ledger.schema import GrantRow, ReleaseRow, StreamRow, lock, one_row

Key = tuple[str, str, int]
"""Stream, period and revision."""

_RELEASE = select(ReleaseRow).where(
    ReleaseRow.stream_id
    == select(StreamRow.id).where(StreamRow.name == bindparam("stream")).scalar_subquery(),
    ReleaseRow.period == bindparam("period"),
    ReleaseRow.revision == bindparam("revision"),
)


def describe(stream: str, period: str, revision: int | None) -> str:
    """Return how messages name a release."""
    return f"stream {stream!r}, period {period!r}, revision {revision}"


def giving_up(period: str) -> str:
    """Return the command that gives a release up, as messages name it."""
    return f"give it up with `optstream withdraw --date {period} --reason WHY`"


def find_row(connection: Connection, stream: str, period: str, revision: int) -> ReleaseRow | None:
    """Return a release's row, or None."""
    return one_row(connection, _RELEASE, stream=stream, period=period, revision=revision)


def lease_error(release: ReleaseRow, named: str) -> HeldError:
    """Return the error for a release whose owner is another run, and alive as far as its lease tells."""
    return HeldError(
        f"another run ({release.owner}) holds {named} until {release.lease_until}: wait for it, "
        "or run again after that; if that run is gone and the time is far ahead, free it with `optstream "
        "ledger release-lease`",
        datetime.fromisoformat(release.lease_until),
    )


def key_of(reservation: Reservation) -> Key:
    """Return the release that a reservation is for."""
    return reservation.stream, reservation.period, reservation.revision


def locked_release(
    connection: Connection, key: Key, reservation: Reservation | None
) -> tuple[ReleaseRow, GrantRow]:
    """Return a release's row and its budget's, locked; refuse a reservation that is not the newest."""
    check_key(*key)
    _, grant = lock(connection, key[0])
    release = find_row(connection, *key)
    if release is None:
        raise LedgerError(f"{describe(*key)} is not in the ledger: reserve it first")
    if reservation is not None and key_of(reservation) != key:
        raise LedgerError(f"{describe(*key)}: the reservation is for {describe(*key_of(reservation))}")
    if reservation is not None and reservation.fencing_token != release.fence:
        raise LedgerError(
            f"{describe(*key)} was taken over by another run ({release.owner}) while this one was away: "
            "stop here; what this run drew must be destroyed"
        )
    return release, grant


def require(key: Key, release: ReleaseRow, state: ReleaseState, action: str) -> None:
    """Raise LedgerError unless the release is in this state."""
    if release.state != state:
        raise LedgerError(f"{describe(*key)} cannot be {action}: it is {release.state}, not {state}")

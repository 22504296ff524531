"""From RESERVED onwards: each step checks the state that it leaves and the owner that takes it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, select, update

from optstream.errors import BudgetError, HeldError, LedgerError
from optstream.ledger.accounting.charges import cost_touching
from optstream.ledger.accounting.kept_guarantees import outcome_is_covered
from optstream.ledger.accounting.spends import charged_to_release, spends_hash, store
from optstream.ledger.database.engine import one_row
from optstream.ledger.database.schema import GrantRow, ReleaseRow
from optstream.ledger.hash_chain import move
from optstream.ledger.records import (
    ReleaseState,
    Reservation,
    check_key,
    check_name,
    lease_end,
    stamp,
)
from optstream.ledger.transactions.enrol import lock
from optstream.privacy import Spend

Key = tuple[str, str, int]
"""Stream, period and revision."""

_RELEASE = select(ReleaseRow).where(
    ReleaseRow.stream_id == bindparam("stream"),
    ReleaseRow.period == bindparam("period"),
    ReleaseRow.revision == bindparam("revision"),
)


def describe(stream: str, period: str, revision: int | None) -> str:
    """Return how messages name a release."""
    return f"stream {stream!r}, period {period!r}, revision {revision}"


def find_row(connection: Connection, stream_id: int, period: str, revision: int) -> ReleaseRow | None:
    """Return a release's row, or None."""
    return one_row(connection, _RELEASE, stream=stream_id, period=period, revision=revision)


def held(release: ReleaseRow, named: str) -> HeldError:
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


def held_row(
    connection: Connection, key: Key, reservation: Reservation | None
) -> tuple[ReleaseRow, GrantRow]:
    """Return the release's row and its privacy budget's, under lock.

    Raises LedgerError if there is no such release, or if the reservation is not the newest for it.
    """
    check_key(*key)
    stream, grant = lock(connection, key[0])
    release = find_row(connection, stream.id, key[1], key[2])
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


def _require(key: Key, release: ReleaseRow, state: ReleaseState, action: str) -> None:
    if release.state != state:
        raise LedgerError(f"{describe(*key)} cannot be {action}: it is {release.state}, not {state}")


def begin_draw(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """Record that noise is about to be sampled."""
    key = key_of(reservation)
    release, grant = held_row(connection, key, reservation)
    _require(key, release, ReleaseState.RESERVED, "drawn")
    if release.drawing:
        raise LedgerError(
            f"{describe(*key)}: this run began its draw already; a second one would not be free"
        )
    if release.lease_until <= stamp(now):
        raise LedgerError(
            f"{describe(*key)}: the lease ended at {release.lease_until}; renew it before the draw"
        )
    if release.amendment != grant.amendment:
        raise LedgerError(
            f"{describe(*key)} was planned under a privacy guarantee that was amended since: "
            "run it again to plan anew"
        )
    _require_unknown_noise(connection, key, release, grant)
    move(connection, release, "draw begun", now, drawing=True)


def call_off_draw(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """Record that the owner sampled no noise after it had said that it would: that draw never was."""
    key = key_of(reservation)
    release, _ = held_row(connection, key, reservation)
    _require(key, release, ReleaseState.RESERVED, "called off")
    if release.drawing:
        move(connection, release, "draw called off", now, drawing=False)


def _require_unknown_noise(connection: Connection, key: Key, release: ReleaseRow, grant: GrantRow) -> None:
    """Raise BudgetError if noise in a window of the release became known, maybe after it was reserved."""
    steps = range(release.first_step, release.first_step + release.n_steps)
    if cost_touching(connection, grant, steps, (), ReleaseRow.compromised.is_not(None)).epsilon > 0:
        raise BudgetError(
            f"{describe(*key)}: noise in its windows was compromised after it was reserved, and they lost "
            "everything: it is not drawn; give it up with `optstream withdraw`"
        )


def record_drawn(
    connection: Connection,
    reservation: Reservation,
    measurements_hash: str,
    outcome: Sequence[Spend],
    now: datetime,
) -> LedgerError | None:
    """Record RESERVED -> DRAWN. An error that is returned, not raised, comes with a VOID to keep."""
    check_name(measurements_hash, "measurements_hash of a release")
    key = key_of(reservation)
    release, grant = held_row(connection, key, reservation)
    if release.state == ReleaseState.DRAWN and release.measurements_hash == measurements_hash:
        return None
    _require(key, release, ReleaseState.RESERVED, "recorded as drawn")
    if not release.drawing:
        raise LedgerError(
            f"{describe(*key)}: its draw was never begun in the ledger; call begin_draw before it"
        )
    reserved = charged_to_release(connection, release.id)
    if not outcome_is_covered(connection, grant, reserved, outcome):
        reason = "its draw would charge some window more than its plan did"
        _void(connection, release, reason, now)
        return LedgerError(
            f"{describe(*key)} is VOID and stays charged for its plan: {reason}; mend the mechanism"
        )
    columns: dict[str, object] = {
        "state": ReleaseState.DRAWN.value,
        "drawing": False,
        "measurements_hash": measurements_hash,
    }
    settled_hash = spends_hash(grant.id, outcome)
    if settled_hash != release.spends_hash:
        store(connection, grant, release.id, release.generation + 1, outcome)
        columns |= {"generation": release.generation + 1, "spends_hash": settled_hash}
    move(connection, release, "drawn", now, **columns)
    return None


def record_staged(
    connection: Connection,
    key: Key,
    staged_hash: str,
    published_name: str,
    now: datetime,
    reservation: Reservation | None,
) -> None:
    """Record what will be published. The same again changes nothing; something else is refused."""
    check_name(staged_hash, "staged_hash of a release")
    check_name(published_name, "published_name of a release")
    release, _ = held_row(connection, key, reservation)
    staged = (staged_hash, published_name)
    if release.state in (ReleaseState.DRAWN, ReleaseState.PUBLISHED) and release.staged_hash is not None:
        if (release.staged_hash, release.published_name) == staged:
            return
        raise LedgerError(
            f"{describe(*key)} was staged as {release.published_name!r} already: the same measurements must "
            "give the same bytes; run the version and configuration that staged it"
        )
    _require(key, release, ReleaseState.DRAWN, "staged")
    move(connection, release, "staged", now, staged_hash=staged_hash, published_name=published_name)


def record_published(
    connection: Connection, key: Key, now: datetime, reservation: Reservation | None
) -> None:
    """Record DRAWN -> PUBLISHED. Once more changes nothing."""
    release, _ = held_row(connection, key, reservation)
    if release.state == ReleaseState.PUBLISHED:
        return
    _require(key, release, ReleaseState.DRAWN, "published")
    if release.staged_hash is None:
        raise LedgerError(f"{describe(*key)} cannot be published: nothing was recorded as staged")
    # nobody holds it any more: who gives it a new estimate takes it anew
    columns: dict[str, object] = {"state": ReleaseState.PUBLISHED.value, "lease_until": stamp(now)}
    move(connection, release, "published", now, **columns)


def void(
    connection: Connection, key: Key, reason: str, now: datetime, reservation: Reservation | None
) -> None:
    """Give a release up, charged. Once more changes nothing."""
    check_name(reason, "reason of a VOID release")
    release, _ = held_row(connection, key, reservation)
    if release.state == ReleaseState.VOID:
        return
    if release.state == ReleaseState.PUBLISHED:
        raise LedgerError(f"{describe(*key)} is PUBLISHED and cannot be made VOID: readers have it")
    _void(connection, release, reason, now)


def _void(connection: Connection, release: ReleaseRow, reason: str, now: datetime) -> None:
    move(connection, release, "void", now, state=ReleaseState.VOID.value, drawing=False, reason=reason)


def withdraw(connection: Connection, key: Key, reason: str, now: datetime) -> None:
    """Say that a release leaves the catalogue, or make it VOID if it never came there."""
    check_name(reason, "reason of a withdrawal")
    release, _ = held_row(connection, key, None)
    if release.withdrawn is not None or release.state == ReleaseState.VOID:
        return
    if release.state == ReleaseState.PUBLISHED:
        move(connection, release, "withdrawn", now, withdrawn=reason)
    else:
        _void(connection, release, reason, now)


def compromise(connection: Connection, key: Key, reason: str, now: datetime) -> None:
    """Say that a release's noise protects nobody. What is drawn, or being drawn, and not published is VOID:
    it would show the raw values to whoever knows the noise.
    """
    check_name(reason, "reason why noise is compromised")
    release, _ = held_row(connection, key, None)
    if release.compromised is None:
        move(connection, release, "compromised", now, compromised=reason)
    if release.state == ReleaseState.DRAWN or release.drawing:
        _void(connection, release, "its noise became known before it was published", now)


def renew(connection: Connection, reservation: Reservation, now: datetime, lease: timedelta) -> None:
    """Put off the end of the owner's lease; no event, for it says nothing about what was released."""
    key = key_of(reservation)
    release, _ = held_row(connection, key, reservation)
    if release.state not in (ReleaseState.RESERVED, ReleaseState.DRAWN):
        raise LedgerError(f"{describe(*key)} is {release.state}: there is no lease to renew")
    until = max(release.lease_until, lease_end(now, lease))
    connection.execute(update(ReleaseRow).where(ReleaseRow.id == release.id).values(lease_until=until))


def end_lease(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """End the owner's lease now, unless its draw was begun and not recorded: that is not for others yet."""
    release, _ = held_row(connection, key_of(reservation), reservation)
    if release.state != ReleaseState.VOID and not release.drawing:
        connection.execute(
            update(ReleaseRow).where(ReleaseRow.id == release.id).values(lease_until=stamp(now))
        )


def release_lease(connection: Connection, key: Key, reason: str, now: datetime) -> None:
    """End another run's lease for a person, and fence that run off; a draw that it began stays begun."""
    check_name(reason, "reason why a lease is ended")
    release, _ = held_row(connection, key, None)
    if release.state == ReleaseState.VOID:
        raise LedgerError(f"{describe(*key)} is VOID: there is no lease to end")
    until = min(release.lease_until, stamp(now))
    fence = release.fence + 1
    move(connection, release, "lease released", now, {"why": reason}, lease_until=until, fence=fence)


def adopt(connection: Connection, key: Key, owner: str, now: datetime, lease: timedelta) -> Reservation:
    """Take up a DRAWN release whose owner is gone; whoever held it is fenced off."""
    check_name(owner, "owner of a release")
    release, _ = held_row(connection, key, None)
    _require(key, release, ReleaseState.DRAWN, "adopted")
    if release.lease_until > stamp(now) and release.owner != owner:
        raise held(release, describe(*key))
    until = lease_end(now, lease)
    move(connection, release, "adopted", now, owner=owner, lease_until=until, fence=release.fence + 1)
    return Reservation(*key, release.fence + 1, release.redraws)

"""From RESERVED onwards: each step checks the state that it leaves and the owner that takes it."""

from collections.abc import Sequence
from datetime import datetime
from math import inf

from sqlalchemy import Connection

from optstream.errors import BudgetError, LedgerError
from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.accounting.kept_guarantees import (
    losses_with,
    outcome_is_covered,
    planned_in_reach,
)
from optstream.ledger.accounting.spends import charged_to_release, hull, spends_hash, store
from optstream.ledger.database.engine import lease_time
from optstream.ledger.database.schema import GrantRow, ReleaseRow
from optstream.ledger.hash_chain import move
from optstream.ledger.records import ReleaseState, Reservation, check_name, stamp
from optstream.ledger.transactions.held import Key, describe, giving_up, held_row, key_of, require
from optstream.ledger.transactions.withdrawals import give_up
from optstream.privacy import Spend


def begin_draw(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """Record that the first noise sample is about to be drawn; only once this has returned may it be.

    Args:
        reservation: The newest one of the release.
        now: The caller's time.

    Raises:
        BudgetError: Noise in the release's windows was compromised since it was reserved.
        LedgerError: The draw was begun before; the lease has ended; the reservation is stale; the privacy
            guarantee was amended since; or the release is not RESERVED.
    """
    now = lease_time(connection, now)
    key = key_of(reservation)
    release, grant = held_row(connection, key, reservation)
    require(key, release, ReleaseState.RESERVED, "drawn")
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
    """Take `begin_draw` back: the owner knows that no sample was drawn since, and that none will be.

    Does nothing where no draw is open.

    Args:
        reservation: The newest one of the release.
        now: The caller's time.

    Raises:
        LedgerError: The reservation is stale, so that the draw counts as a death, or the release is not
            RESERVED.
    """
    now = lease_time(connection, now)
    key = key_of(reservation)
    release, _ = held_row(connection, key, reservation)
    require(key, release, ReleaseState.RESERVED, "called off")
    if release.drawing:
        move(connection, release, "draw called off", now, drawing=False)


def _require_unknown_noise(connection: Connection, key: Key, release: ReleaseRow, grant: GrantRow) -> None:
    """Raise BudgetError if noise in a window of the release became known, maybe after it was reserved.

    By the same guarantees as a plan is judged before it is reserved: the one in force, and those that days in
    the release's windows were released under.
    """
    plan = charged_to_release(connection, release.id)
    known = ReleaseRow.compromised.is_not(None)
    if not planned_in_reach(connection, grant, guarantees_of(connection, grant), hull(plan), known):
        return  # what all but the rarest days find, without adding anything up
    # its own spends are among those near, and count twice: what is asked is whether anything lost everything
    if any(kept.loss.epsilon == inf for kept in losses_with(connection, grant, plan)):
        raise BudgetError(
            f"{describe(*key)}: noise in its windows was compromised after it was reserved, and they lost "
            f"everything: it is not drawn; {giving_up(key[1])}"
        )


def record_drawn(
    connection: Connection,
    reservation: Reservation,
    measurements_hash: str,
    outcome: Sequence[Spend],
    now: datetime,
) -> LedgerError | None:
    """Record RESERVED -> DRAWN; from now on the outcome's spends are charged instead of the plan's.

    Repeating it changes nothing. If the outcome charges any window more than the plan did, by any privacy
    guarantee of the budget, the release becomes VOID and stays charged for its plan.

    Args:
        reservation: The newest one of the release.
        measurements_hash: Of the measurements, which must be durable before this is called.
        outcome: What the draw cost; steps are running indices.
        now: The caller's time.

    Returns:
        None; a LedgerError, which the method of `Ledger` raises once the change is durable, where the release
        became VOID.

    Raises:
        LedgerError: The draw was not begun, the release is neither RESERVED nor DRAWN with this hash, or the
            reservation is stale.
    """
    check_name(measurements_hash, "measurements_hash of a release")
    key = key_of(reservation)
    release, grant = held_row(connection, key, reservation)
    if release.state == ReleaseState.DRAWN and release.measurements_hash == measurements_hash:
        return None
    require(key, release, ReleaseState.RESERVED, "recorded as drawn")
    if not release.drawing:
        raise LedgerError(
            f"{describe(*key)}: its draw was never begun in the ledger; call begin_draw before it"
        )
    reserved = charged_to_release(connection, release.id)
    if not outcome_is_covered(connection, grant, reserved, outcome):
        reason = "its draw would charge some window more than its plan did"
        give_up(connection, release, reason, now)
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
    stream: str,
    period: str,
    revision: int,
    staged_hash: str,
    published_name: str,
    now: datetime,
    reservation: Reservation | None = None,
) -> None:
    """Record the bytes that a DRAWN release will be published as.

    They never change; repeating changes nothing.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        staged_hash: Hash of the bytes.
        published_name: Name under which they will be published.
        now: The caller's time.
        reservation: The newest one of the release; None leaves unchecked who asks.

    Raises:
        LedgerError: Other bytes were staged; the release is not DRAWN, or not in the ledger; or the
            reservation is stale.
    """
    key = (stream, period, revision)
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
    require(key, release, ReleaseState.DRAWN, "staged")
    move(connection, release, "staged", now, staged_hash=staged_hash, published_name=published_name)


def record_published(
    connection: Connection,
    stream: str,
    period: str,
    revision: int,
    now: datetime,
    reservation: Reservation | None = None,
) -> None:
    """Record DRAWN -> PUBLISHED, once the catalogue lists the release, and end its lease.

    Repeating it changes nothing.

    Args:
        stream: Name of the stream.
        period: Key of the period.
        revision: Of the release.
        now: The caller's time.
        reservation: The newest one of the release; None leaves unchecked who asks.

    Raises:
        LedgerError: The release is not DRAWN, nothing was staged, it is not in the ledger, or the reservation
            is stale.
    """
    key = (stream, period, revision)
    release, _ = held_row(connection, key, reservation)
    if release.state == ReleaseState.PUBLISHED:
        return
    require(key, release, ReleaseState.DRAWN, "published")
    if release.staged_hash is None:
        raise LedgerError(f"{describe(*key)} cannot be published: nothing was recorded as staged")
    # nobody holds it any more: who gives it a new estimate takes it anew
    columns: dict[str, object] = {"state": ReleaseState.PUBLISHED.value, "lease_until": stamp(now)}
    move(connection, release, "published", now, **columns)

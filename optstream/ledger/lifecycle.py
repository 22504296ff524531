"""A release from its reservation on: each step checks the state that it leaves and who takes it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from math import inf
from types import MappingProxyType

from sqlalchemy import Connection, select, update

from optstream.errors import BudgetError, HeldError, LedgerError, ParameterError
from optstream.ledger.accounting import (
    charged_to_release,
    hull,
    losses_with,
    outcome_is_covered,
    rows_hash,
    spend_rows,
    store,
)
from optstream.ledger.database import lease_time
from optstream.ledger.records import (
    LONGEST_LEASE,
    GuaranteeLoss,
    Key,
    ReleaseState,
    Reservation,
    StreamTerms,
    check_key,
    check_name,
    lease_end,
    stamp,
)
from optstream.ledger.schema import (
    GrantRow,
    ReleaseRow,
    VintageRow,
    append,
    check_contains,
    find_row,
    id_of,
    insert_row,
    lock,
    terms_of,
)
from optstream.privacy import JointSpend, OrderSpend, PeriodSpend, Spend
from optstream.privacy.spends import check_currency

# Rows of releases: locked, checked against a reservation and a state, and changed with an event.


def giving_up(period: str) -> str:
    """Return the command that gives a release up, as messages name it."""
    return f"give it up with `optstream withdraw --date {period} --reason WHY`"


def lease_error(release: ReleaseRow, key: Key) -> HeldError:
    """Return the error for a release that another run holds until its lease ends."""
    return HeldError(
        f"another run ({release.owner}) holds {key} until {release.lease_until}: wait for it, "
        "or run again after that; if that run is gone and the time is far ahead, free it with `optstream "
        "ledger release-lease`",
        datetime.fromisoformat(release.lease_until),
    )


def locked_release(
    connection: Connection, key: Key, reservation: Reservation | None
) -> tuple[ReleaseRow, GrantRow]:
    """Return a release's row and its budget's, locked; refuse a reservation that is not the newest."""
    check_key(key)
    _, grant = lock(connection, key.stream)
    release = find_row(connection, key)
    if release is None:
        raise LedgerError(f"{key} is not in the ledger: reserve it first")
    if reservation is not None and reservation.key != key:
        raise LedgerError(f"{key}: the reservation is for {reservation.key}")
    if reservation is not None and reservation.fencing_token != release.fence:
        raise LedgerError(
            f"{key} was taken over by another run ({release.owner}) while this one was away: "
            "stop here; what this run drew must be destroyed"
        )
    return release, grant


def require(key: Key, release: ReleaseRow, state: ReleaseState, action: str) -> None:
    """Raise LedgerError unless the release is in this state."""
    if release.state != state:
        raise LedgerError(f"{key} cannot be {action}: it is {release.state}, not {state}")


def move(
    connection: Connection,
    release: ReleaseRow,
    kind: str,
    now: datetime,
    more: Mapping[str, object] = MappingProxyType({}),
    /,
    **columns: object,
) -> None:
    """Change columns of a release's row and append the event that records them, with `more` in its body."""
    connection.execute(update(ReleaseRow).where(ReleaseRow.id == release.id).values(**columns))
    append(connection, release.stream_id, kind, now, {**more, **columns}, (release.period, release.revision))


# Reserving: the only place where a release is charged, and where a dead run's release changes hands.

REDRAWS_THAT_VOID = 3  # a process that dies in its draw once too often is not a process that dies by chance


def reserve(
    connection: Connection,
    key: Key,
    spends: Sequence[Spend],
    owner: str,
    now: datetime,
    lease: timedelta,
    catalogue_heads: Collection[str] = (),
    terms: StreamTerms | None = None,
    restatements_epsilon: Fraction | None = None,
    is_drawn: bool = False,
) -> Reservation | LedgerError:
    """Charge a release's plan to its privacy budget, and hold the release for `owner` until now + lease.

    A RESERVED release is taken over when its lease is over, or by its own owner; if no owner died while
    drawing, it may be under another plan, which is then charged instead. If its owner died while drawing,
    this counts as a redraw, under the same plan only, and the third makes the release VOID; with `is_drawn`,
    where the caller has the whole, durable measurements of that draw, it does not count, and that draw is the
    one to be recorded. Later revisions need the earlier one PUBLISHED or VOID.

    A ledger that lacks one of the catalogue's heads was restored from an older copy; the newest stands for
    all of them (`head`). Terms of None leave the plan's unchecked. `restatements_epsilon` bounds what all
    restatements of the stream cost any window.

    Raises BudgetError, with nothing inserted, where some window would lose more than a privacy guarantee
    gives it, the one in force or one that days in the window were released under, or its noise was
    compromised; HeldError where another run holds the release. A LedgerError that is returned is raised once
    the change is durable.
    """
    now, plan = lease_time(connection, now), tuple(spends)
    check_key(key)
    check_name(owner, "owner of a release")
    if not plan:
        raise ParameterError(
            "a plan must have at least one spend: a measurement that costs nothing is a mistake"
        )
    stream, grant = lock(connection, key.stream)
    check_contains(connection, catalogue_heads)
    check_currency(plan, "epsilon" if grant.delta is None else "rho")
    if terms is not None:
        _check_guarantee(terms_of(connection, stream), key, plan, terms)
    owned = {"owner": owner, "lease_until": lease_end(now, lease), "drawing": False}
    digest, steps = rows_hash(grant.id, spend_rows(plan)), hull(plan)
    charged = {"first_step": steps.start, "n_steps": len(steps), "spends_hash": digest}
    release = find_row(connection, key)
    if release is None:
        if key.revision:
            earlier = find_row(connection, key._replace(revision=key.revision - 1))
            if earlier is None or earlier.state not in (ReleaseState.PUBLISHED, ReleaseState.VOID):
                raise LedgerError(f"{key} needs revision {key.revision - 1} to be PUBLISHED or VOID first")
        _check_windows(connection, grant, stream.id, key, plan, restatements_epsilon)
        unknown = ("measurements_hash", "staged_hash", "published_name", "reason", "withdrawn", "compromised")
        columns = {
            "state": ReleaseState.RESERVED.value,
            **owned,
            **charged,
            **{"fence": 1, "redraws": 0, "generation": 1, "amendment": grant.amendment},
            **dict.fromkeys(unknown),
        }
        place = {"stream_id": stream.id, "period": key.period, "revision": key.revision}
        store(connection, grant, insert_row(connection, ReleaseRow, **place, **columns), 1, plan)
        append(connection, stream.id, "reserved", now, columns, (key.period, key.revision))
        return Reservation(key, 1)
    if release.state != ReleaseState.RESERVED:
        advice = {
            "DRAWN": "run it again, which finishes it from its stored measurements; it is never drawn again",
            "VOID": f"it stays charged ({release.reason}); an operator may request the next revision",
            "PUBLISHED": "there is nothing to do; a restatement is a new revision",
        }
        raise LedgerError(f"{key} is {release.state} already: {advice[release.state]}")
    alive = release.lease_until > stamp(now)
    if alive and release.owner != owner:
        raise lease_error(release, key)
    if alive and release.drawing:
        # a live owner that reserves again did not die: it raised, and a redraw could depend on the draw
        raise LedgerError(f"{key}: this run began its draw and recorded no outcome; {giving_up(key.period)}")
    if release.compromised is not None:
        raise BudgetError(
            f"{key}: its noise was declared compromised ({release.compromised}), and it is never drawn "
            f"again; {giving_up(key.period)}"
        )
    is_same = (release.spends_hash, release.amendment) == (digest, grant.amendment)
    if (release.drawing or release.redraws) and not is_same:
        raise LedgerError(
            f"{key} was being drawn under another plan when its owner died: run it again under the same "
            f"configuration and history, or {giving_up(key.period)}"
        )
    columns = {**owned, "fence": release.fence + 1}
    if release.drawing and is_drawn:
        # its owner died between durable measurements and their record: the draw stays begun, and is the one
        move(connection, release, "taken over", now, **columns | {"drawing": True})
        return Reservation(key, release.fence + 1, release.redraws, True)
    redraws = release.redraws + bool(release.drawing)
    if redraws >= REDRAWS_THAT_VOID:
        reason = f"its owner died {redraws} times while drawing"
        give_up(connection, release, reason, now, redraws=redraws)
        return LedgerError(f"{key} is VOID and stays charged: {reason}; find out what kills it")
    columns["redraws"] = redraws
    if not is_same:
        # nothing was drawn under the old plan, and its owner is fenced off from drawing
        _check_windows(connection, grant, stream.id, key, plan, restatements_epsilon, release.id)
        generation = release.generation + 1
        store(connection, grant, release.id, generation, plan)
        columns |= {**charged, "generation": generation, "amendment": grant.amendment}
    move(connection, release, "taken over", now, **columns)
    return Reservation(key, release.fence + 1, redraws)


def _check_guarantee(known: StreamTerms, key: Key, plan: Sequence[Spend], terms: StreamTerms) -> None:
    """Refuse a plan of another privacy guarantee than the stream's, which may have changed meanwhile."""
    changed, model = known.differing(terms), terms.model
    if changed:
        raise LedgerError(
            f"the {', '.join(changed)} of stream {key.stream!r} changed while this run was under way; "
            "nothing was reserved: run it again"
        )
    for spend in plan:
        if isinstance(spend, PeriodSpend):
            continue
        if (spend.alpha_units, spend.leaves_changed) != (model.alpha_units, model.leaves_per_step):
            raise LedgerError(f"the plan of {key} is priced for another alpha or unit than its stream")
        if isinstance(spend, JointSpend | OrderSpend) and spend.n_nodes > 1 and model.unit == "roaming":
            raise LedgerError(
                f"the plan of {key} has joint noise for {spend.n_nodes} nodes, which is priced for customers "
                "who stay in one leaf of a period, and those of its stream may change it"
            )


def _check_windows(
    connection: Connection,
    grant: GrantRow,
    stream_id: int,
    key: Key,
    plan: Sequence[Spend],
    restatements_epsilon: Fraction | None,
    without: int | None = None,
) -> None:
    """Raise BudgetError if a plan takes a window above a guarantee, or above the restatements' share."""
    if grant.windows == "aligned":
        raise LedgerError(
            f"{key}: privacy budget {grant.name!r} was declared for windows inside one period "
            '(windows = "aligned"), under which nothing is released any more: declare one for every window '
            "with `optstream ledger amend`"
        )
    others = () if without is None else (ReleaseRow.id != without,)
    if key.revision and restatements_epsilon is not None:
        restated = (ReleaseRow.stream_id == stream_id, ReleaseRow.revision > 0)
        cost = losses_with(connection, grant, plan, *restated, *others)[0].loss
        if cost.epsilon > restatements_epsilon:
            raise BudgetError(
                f"{key}: restatements would cost the window from step {cost.first_step} "
                f"{_exactly(cost.epsilon)}, and {_exactly(restatements_epsilon)} is kept back for them. "
                "Nothing was reserved: no further restatement fits these windows"
            )
    for kept in losses_with(connection, grant, plan, *others):
        if kept.is_broken:
            raise BudgetError(f"{key}: {_broken(grant, kept)}")


def _broken(grant: GrantRow, kept: GuaranteeLoss) -> str:
    cost, model = kept.loss, kept.guarantee
    window = (
        f"the window of {model.window_length} steps from step {cost.first_step} would cost "
        f"{_exactly(cost.epsilon)}"
    )
    if kept.free_from is None:
        in_rho = f" in rho (epsilon {model.epsilon} at delta {float(model.delta):g})" if model.delta else ""
        return (
            f"{window}, and privacy budget {grant.name!r} is {_exactly(model.budget)}{in_rho}. "
            "Nothing was reserved: release it with less, or a later period whose windows have headroom"
        )
    return (
        f"{window} by privacy guarantee {kept.number} of privacy budget {grant.name!r} "
        f"({model.currency} {_exactly(model.budget)}, window {model.window_length}, "
        f"alpha {_exactly(model.alpha)}), which days in that window were "
        "released under and keep. Nothing was reserved: release it with less, or wait for a period that "
        f"begins at step {kept.free_from} or later"
    )


def _exactly(amount: Fraction | float) -> str:
    if isinstance(amount, float):
        return "everything (noise in it was compromised)"
    return str(amount) if amount.denominator == 1 else f"{amount} (about {float(amount):.6g})"


# How a release ends but by publication: void, withdrawn, or its noise compromised; all stay charged.


def void(
    connection: Connection, key: Key, reason: str, now: datetime, reservation: Reservation | None = None
) -> None:
    """Give up a release that is RESERVED or DRAWN: it stays charged and is never drawn again."""
    check_name(reason, "reason of a VOID release")
    release, _ = locked_release(connection, key, reservation)
    if release.state == ReleaseState.VOID:
        return
    if release.state == ReleaseState.PUBLISHED:
        raise LedgerError(f"{key} is PUBLISHED and cannot be made VOID: readers have it")
    give_up(connection, release, reason, now)


def give_up(
    connection: Connection, release: ReleaseRow, reason: str, now: datetime, **columns: object
) -> None:
    """Make a release VOID. columns: what else changes with it."""
    void = {"state": ReleaseState.VOID.value, "drawing": False, "reason": reason}
    move(connection, release, "void", now, **void, **columns)


def withdraw(connection: Connection, key: Key, reason: str, now: datetime) -> None:
    """Record that a PUBLISHED release leaves the catalogue, or make another one VOID; it stays charged."""
    check_name(reason, "reason of a withdrawal")
    release, _ = locked_release(connection, key, None)
    if release.withdrawn is not None or release.state == ReleaseState.VOID:
        return
    if release.state == ReleaseState.PUBLISHED:
        move(connection, release, "withdrawn", now, withdrawn=reason)
    else:
        give_up(connection, release, reason, now)


def compromise(connection: Connection, key: Key, reason: str, now: datetime) -> None:
    """Record that others know the noise of a release: the windows that it charges lost everything.

    Nothing more is reserved or drawn in them, and there is no way back. A release that is drawn, or being
    drawn, and not published becomes VOID: it would show the raw values. Repeating it changes nothing.
    """
    check_name(reason, "reason why noise is compromised")
    release, _ = locked_release(connection, key, None)
    if release.compromised is None:
        move(connection, release, "compromised", now, compromised=reason)
    if release.state == ReleaseState.DRAWN or release.drawing:
        give_up(connection, release, "its noise became known before it was published", now)


def begin_draw(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """Record that the first noise sample is about to be drawn; only once this has returned may it be."""
    now, key = lease_time(connection, now), reservation.key
    release, grant = locked_release(connection, key, reservation)
    require(key, release, ReleaseState.RESERVED, "drawn")
    if release.drawing:
        raise LedgerError(f"{key}: this run began its draw already; a second one would not be free")
    if release.lease_until <= stamp(now):
        raise LedgerError(f"{key}: the lease ended at {release.lease_until}; renew it before the draw")
    if release.amendment != grant.amendment:
        raise LedgerError(
            f"{key} was planned under a privacy guarantee that was amended since: "
            "run it again to make another plan"
        )
    # its own spends count twice, which does not matter: the test is whether anything lost everything
    plan = charged_to_release(connection, release.id)
    if any(kept.loss.epsilon == inf for kept in losses_with(connection, grant, plan)):
        raise BudgetError(
            f"{key}: noise in its windows was compromised after it was reserved, and they lost "
            f"everything: it is not drawn; {giving_up(key.period)}"
        )
    move(connection, release, "draw begun", now, drawing=True)


def call_off_draw(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """Take `begin_draw` back: the owner knows that no sample was drawn since, and that none will be."""
    now, key = lease_time(connection, now), reservation.key
    release, _ = locked_release(connection, key, reservation)
    require(key, release, ReleaseState.RESERVED, "called off")
    if release.drawing:
        move(connection, release, "draw called off", now, drawing=False)


def record_drawn(
    connection: Connection,
    reservation: Reservation,
    measurements_hash: str,
    outcome: Sequence[Spend],
    now: datetime,
) -> LedgerError | None:
    """Record RESERVED -> DRAWN; from now on the outcome's spends are charged instead of the plan's.

    The measurements must be durable before; repeating it changes nothing. If the outcome charges any window
    more than the plan did, by any guarantee of the budget, the release becomes VOID and stays charged for its
    plan.
    """
    check_name(measurements_hash, "measurements_hash of a release")
    key = reservation.key
    release, grant = locked_release(connection, key, reservation)
    if release.state == ReleaseState.DRAWN and release.measurements_hash == measurements_hash:
        return None
    require(key, release, ReleaseState.RESERVED, "recorded as drawn")
    if not release.drawing:
        raise LedgerError(f"{key}: its draw was never begun in the ledger; call begin_draw before it")
    reserved = charged_to_release(connection, release.id)
    if not outcome_is_covered(connection, grant, reserved, outcome):
        reason = "its draw would charge some window more than its plan did"
        give_up(connection, release, reason, now)
        return LedgerError(f"{key} is VOID and stays charged for its plan: {reason}; fix the mechanism")
    changed: dict[str, object] = {}
    settled_hash = rows_hash(grant.id, spend_rows(outcome))
    if settled_hash != release.spends_hash:
        changed = {"generation": release.generation + 1, "spends_hash": settled_hash}
        store(connection, grant, release.id, release.generation + 1, outcome)
    state = {"state": ReleaseState.DRAWN.value, "drawing": False, "measurements_hash": measurements_hash}
    move(connection, release, "drawn", now, **state, **changed)
    return None


def record_staged(
    connection: Connection,
    key: Key,
    staged_hash: str,
    published_name: str,
    now: datetime,
    reservation: Reservation | None = None,
) -> None:
    """Record the bytes that a DRAWN release will be published as, which never change."""
    check_name(staged_hash, "staged_hash of a release")
    check_name(published_name, "published_name of a release")
    release, _ = locked_release(connection, key, reservation)
    staged = (staged_hash, published_name)
    if release.state in (ReleaseState.DRAWN, ReleaseState.PUBLISHED) and release.staged_hash is not None:
        if (release.staged_hash, release.published_name) == staged:
            return
        raise LedgerError(
            f"{key} was staged as {release.published_name!r} already: the same measurements must "
            "give the same bytes; run the version and configuration that staged it"
        )
    require(key, release, ReleaseState.DRAWN, "staged")
    move(connection, release, "staged", now, staged_hash=staged_hash, published_name=published_name)


def record_published(
    connection: Connection, key: Key, now: datetime, reservation: Reservation | None = None
) -> None:
    """Record DRAWN -> PUBLISHED, once the catalogue lists the release, and end its lease."""
    release, _ = locked_release(connection, key, reservation)
    if release.state == ReleaseState.PUBLISHED:
        return
    require(key, release, ReleaseState.DRAWN, "published")
    if release.staged_hash is None:
        raise LedgerError(f"{key} cannot be published: nothing was recorded as staged")
    # nobody holds it any more: a new estimate takes a lease of its own
    move(connection, release, "published", now, state=ReleaseState.PUBLISHED.value, lease_until=stamp(now))


# Leases: who holds a release and until when, by the clock of `lease_time`. None of it charges anything.


def renew(connection: Connection, reservation: Reservation, now: datetime, lease: timedelta) -> None:
    """Hold a RESERVED or DRAWN release until now + lease; never shortens the lease. No event is written."""
    now, key = lease_time(connection, now), reservation.key
    release, _ = locked_release(connection, key, reservation)
    if not ReleaseState(release.state).is_under_way:
        raise LedgerError(f"{key} is {release.state}: there is no lease to renew")
    _set_lease(connection, release, max(release.lease_until, lease_end(now, lease)))


def end_lease(connection: Connection, reservation: Reservation, now: datetime) -> None:
    """End the owner's lease at `now`, but while a draw is open, or of a VOID release. No event is written."""
    now = lease_time(connection, now)
    release, _ = locked_release(connection, reservation.key, reservation)
    if release.state != ReleaseState.VOID and not release.drawing:
        _set_lease(connection, release, min(release.lease_until, stamp(now)))


def _set_lease(connection: Connection, release: ReleaseRow, until: str) -> None:
    connection.execute(update(ReleaseRow).where(ReleaseRow.id == release.id).values(lease_until=until))


def release_lease(connection: Connection, key: Key, reason: str, now: datetime) -> None:
    """End the lease of a run that will not come back, and refuse its writes; a begun draw is a death."""
    now = lease_time(connection, now)
    check_name(reason, "reason why a lease is ended")
    release, _ = locked_release(connection, key, None)
    if release.state == ReleaseState.VOID:
        raise LedgerError(f"{key} is VOID: there is no lease to end")
    until, fence = min(release.lease_until, stamp(now)), release.fence + 1
    move(connection, release, "lease released", now, {"why": reason}, lease_until=until, fence=fence)


def adopt(connection: Connection, key: Key, owner: str, now: datetime, lease: timedelta) -> Reservation:
    """Take up a DRAWN release, to publish it; earlier reservations become stale. Charges nothing."""
    release, _ = locked_release(connection, key, None)
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
    """Give a release to `owner`, with an event, unless another owner's lease lasts, by `longest` at most."""
    check_name(owner, "owner of a release")
    now = lease_time(connection, now)
    lasts = datetime.fromisoformat(release.lease_until) - now
    if timedelta(0) < lasts <= longest and release.owner != owner:
        raise lease_error(release, key)
    until, fence = lease_end(now, lease), release.fence + 1
    move(connection, release, kind, now, owner=owner, lease_until=until, fence=fence)
    return Reservation(key, fence, release.redraws)


# Vintages: new estimates of a PUBLISHED release from measurements that were charged already. They cost
# nothing, so nothing here touches a spend; the bytes that may be shown are recorded before they are.


@dataclass(frozen=True)
class Vintage:
    """A new estimate of a PUBLISHED release, from 1 on, made of the measurements that `basis` identifies."""

    number: int
    basis: str
    staged_hash: str
    published_name: str
    published: bool


_COLUMNS = [getattr(VintageRow, name) for name in Vintage.__dataclass_fields__]


def revise(connection: Connection, key: Key, owner: str, now: datetime, lease: timedelta) -> Reservation:
    """Hold a PUBLISHED release until now + lease, to give it a new estimate. Charges nothing.

    Earlier reservations become stale. A lease that ends later than any taken now comes from a clock that ran
    ahead, and holds nobody off: no noise is drawn here, and of two owners the later one alone can write.
    """
    release, _ = locked_release(connection, key, None)
    _require_shown(connection, key, release)
    return take_lease(connection, "revising", key, release, owner, now, lease, longest=LONGEST_LEASE)


def record_vintage(connection: Connection, reservation: Reservation, vintage: Vintage, now: datetime) -> None:
    """Record the bytes of a new estimate, numbered above all others, before the catalogue shows them."""
    for name in ("basis", "staged_hash", "published_name"):
        check_name(getattr(vintage, name), f"{name} of a vintage")
    number = vintage.number
    if isinstance(number, bool) or not isinstance(number, int) or number < 1 or vintage.published:
        raise ParameterError(
            "a vintage that is recorded has a number of at least 1 and is not yet published; "
            f"got number {number!r}"
        )
    key = reservation.key
    release, _ = locked_release(connection, key, reservation)
    _require_shown(connection, key, release)
    known = list_vintages(connection, release.id)
    if vintage in known:
        return
    if known and known[-1].number >= number:
        raise LedgerError(
            f"{key} has vintage {known[-1].number} already: a new estimate takes the next number"
        )
    facts = dict(vars(vintage))
    insert_row(connection, VintageRow, release_id=release.id, **facts)
    body = {"vintage": facts.pop("number"), **facts}
    append(connection, release.stream_id, "vintage staged", now, body, (release.period, release.revision))


def record_vintage_published(
    connection: Connection, reservation: Reservation, number: int, now: datetime
) -> None:
    """Record that the catalogue lists a staged vintage, and end the lease."""
    key = reservation.key
    release, _ = locked_release(connection, key, reservation)
    known = {vintage.number: vintage for vintage in list_vintages(connection, release.id)}
    if number not in known:
        raise LedgerError(f"{key} has no vintage {number} that was staged: nothing is published")
    if known[number].published:
        return
    this = update(VintageRow).where(VintageRow.release_id == release.id, VintageRow.number == number)
    connection.execute(this.values(published=True))
    _set_lease(connection, release, stamp(now))
    body = {"vintage": number, "published": True}
    append(connection, release.stream_id, "vintage published", now, body, (release.period, release.revision))


def _require_shown(connection: Connection, key: Key, release: ReleaseRow) -> None:
    """Raise LedgerError unless readers have this release and nothing of its day is newer or in doubt."""
    # a later one that was given up has taken nothing's place
    newer = select(ReleaseRow.id).where(
        ReleaseRow.stream_id == release.stream_id,
        ReleaseRow.period == release.period,
        ReleaseRow.revision > release.revision,
        ReleaseRow.state != ReleaseState.VOID.value,
    )
    for what, is_so in (
        (release.state, release.state != ReleaseState.PUBLISHED),
        ("withdrawn", release.withdrawn is not None),
        ("compromised", release.compromised is not None),
        ("restated", connection.execute(newer.limit(1)).one_or_none() is not None),
    ):
        if is_so:
            raise LedgerError(f"{key} gets no new estimate: it is {what}")


def list_vintages(connection: Connection, release_id: int) -> tuple[Vintage, ...]:
    """Return a release's vintages, rising."""
    query = select(*_COLUMNS).where(VintageRow.release_id == release_id).order_by(VintageRow.number)
    return tuple(Vintage(*facts) for facts in connection.execute(query))


def vintages(
    connection: Connection, stream: str, *, unpublished: bool = False, steps: range | None = None
) -> dict[tuple[str, int], tuple[Vintage, ...]]:
    """Return the new estimates of a stream's releases by number, for each period and revision."""
    query = select(ReleaseRow.period, ReleaseRow.revision, *_COLUMNS)
    query = query.join(ReleaseRow, ReleaseRow.id == VintageRow.release_id)
    query = query.where(ReleaseRow.stream_id == id_of(stream))
    if unpublished:
        query = query.where(VintageRow.published.is_(False))
    if steps is not None:
        query = query.where(ReleaseRow.first_step >= steps.start, ReleaseRow.first_step < steps.stop)
    found: dict[tuple[str, int], tuple[Vintage, ...]] = {}
    query = query.order_by(VintageRow.release_id, VintageRow.number)
    for period, revision, *facts in connection.execute(query):
        found[period, revision] = (*found.get((period, revision), ()), Vintage(*facts))
    return found

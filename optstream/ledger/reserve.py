"""Reserving: the only place where a release is charged, and where a dead run's release changes hands."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from sqlalchemy import Connection

from optstream.errors import BudgetError, LedgerError, ParameterError
from optstream.ledger.accounting import cost_touching, hull, losses_with, rows_hash, spend_rows, store
from optstream.ledger.database import lease_time
from optstream.ledger.hash_chain import append, check_contains, move
from optstream.ledger.records import (
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
    find_row,
    giving_up,
    insert_row,
    lease_error,
    lock,
    terms_of,
)
from optstream.ledger.transitions import give_up
from optstream.privacy import JointSpend, PeriodSpend, Spend
from optstream.privacy.spends import check_currency

UNKNOWN_AT_FIRST = (
    "measurements_hash", "staged_hash", "published_name", "reason", "withdrawn", "compromised"
)  # fmt: skip
REDRAWS_THAT_VOID = 3
"""A process that dies in its draw once too often is not a process that dies by chance."""


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
        columns = {
            "state": ReleaseState.RESERVED.value,
            **owned,
            **charged,
            **{"fence": 1, "redraws": 0, "generation": 1, "amendment": grant.amendment},
            **dict.fromkeys(UNKNOWN_AT_FIRST),
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
        if isinstance(spend, JointSpend) and spend.n_nodes > 1 and model.unit == "roaming":
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
        cost = cost_touching(connection, grant, hull(plan), plan, *restated, *others)
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
    """Return which privacy guarantee the plan would break, and the remedy."""
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

"""Streams join a privacy budget; under releases a privacy guarantee changes only by amendment."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, and_, func, or_, select, update

from optstream.errors import LedgerError
from optstream.ledger.accounting import first_guarantee, next_guarantee
from optstream.ledger.records import StreamTerms, check_name, continues
from optstream.ledger.schema import (
    GENESIS,
    GUARANTEE_COLUMNS,
    LOCKED_STREAM,
    GrantRow,
    ReleaseRow,
    StreamRow,
    append,
    columns_of,
    event_body,
    find_stream,
    insert_row,
    lock,
    one_row,
    read_rows,
    terms_of,
)

OF_GRANT = (*GUARANTEE_COLUMNS, "calendar")
"""What all streams of a privacy budget agree on: their spends are added up, step by step."""
HASH = "hierarchy_hash"
DECLARE = "declare the change with `optstream ledger amend`"
FIXED = ("grant", "calendar")  # what no amendment changes: the budget owner, and which time a step is
CALLED = {
    "grant": "population",
    "calendar": "calendar (stream.step, time_zone, day or period)",
    HASH: "hierarchy",
}


def difference(changed: Sequence[str], known: StreamTerms, terms: StreamTerms) -> str:
    """Return the parts of the known terms that differ from these, and the remedy."""
    named = ", ".join(CALLED.get(name, name) for name in changed)
    fixed = [CALLED[name].partition(" (")[0] for name in FIXED if name in changed]
    fixed += ["currency"] if known.model.currency != terms.model.currency else []
    remedy = f", or {DECLARE}"
    if fixed:
        remedy = f", for no command changes the {' and '.join(fixed)} later"
    elif known.alpha_ratio != terms.alpha_ratio:
        remedy = ", or change alpha and budget_alpha by the same factor"
    return f"{named}: restore the configuration{remedy}"


def enrol(connection: Connection, terms: StreamTerms, now: datetime) -> None:
    """Enrol a stream, or check that it is enrolled under these terms. Charges nothing.

    Until a stream has releases, terms that differ replace the known ones, unless another stream relies on
    them; `document` may change at any time, and the list of trees after everything that was ever reserved.
    """
    stream = one_row(connection, LOCKED_STREAM, stream=terms.stream)
    kind = "enrolled" if stream is None else "terms"
    if stream is not None:
        known = terms_of(connection, stream)
        if known == terms:
            return
        changed = known.differing(terms)
        last = select(ReleaseRow.period).where(ReleaseRow.stream_id == stream.id)
        period = connection.execute(last.order_by(ReleaseRow.first_step.desc()).limit(1)).scalar()
        if changed and period is not None:
            if changed != [HASH]:
                raise LedgerError(f"stream {terms.stream!r} has releases{_kept(changed, known, terms)}")
            end = select(func.max(ReleaseRow.first_step + ReleaseRow.n_steps))
            reserved_until = connection.execute(end.where(ReleaseRow.stream_id == stream.id)).scalar_one()
            # every period that was ever reserved keeps its tree (Lemma 18)
            if not continues(known.trees, terms.trees, reserved_until):
                raise LedgerError(
                    f"stream {terms.stream!r} has releases, made under another hierarchy: a change of the "
                    f"hierarchy must begin after {period}, the last period that was reserved, and leave what "
                    f"held before as it was; else restore the configuration, or {DECLARE}"
                )
            kind = "hierarchy"
    grant_id, amendment = _agreed_grant(connection, terms, None if stream is None else stream.id)
    refuse_more_than_all(connection, terms, grant_id)
    if stream is None:
        start = {"name": terms.stream, "head": GENESIS, "n_events": 0}
        stream_id = insert_row(connection, StreamRow, grant_id=grant_id, **start, **columns_of(terms))
    else:
        stream_id = stream.id
        change = update(StreamRow).where(StreamRow.id == stream_id)
        connection.execute(change.values(grant_id=grant_id, **columns_of(terms)))
    append(connection, stream_id, kind, now, event_body(terms, amendment))


def _kept(changed: Sequence[str], known: StreamTerms, terms: StreamTerms) -> str:
    """Return the fixed values of a stream with releases, and the values to write."""
    share = known.stream_share
    if "stream_share" not in changed or not {"stream_share", HASH}.issuperset(changed):
        return f", made under another {difference(changed, known, terms)}"
    if share is None:
        return (
            f" that plan with a number of its own, and public facts would choose {terms.stream_share} of "
            f"epsilon: keep it, or {DECLARE}"
        )
    return (
        f" that plan with {share} of epsilon, and public facts would now choose {terms.stream_share}: it "
        f'does not move any more; write [budget] stream_share = "{share}"'
    )


def refuse_more_than_all(connection: Connection, terms: StreamTerms, grant_id: int) -> None:
    """Raise LedgerError, before any release, where the shares chosen of one epsilon add up to more than 1."""
    if terms.stream_share is None:
        return
    members = select(StreamRow).where(StreamRow.grant_id == grant_id, StreamRow.name != terms.stream)
    others = [terms_of(connection, member) for member in read_rows(connection, members)]
    known = {one.stream: one.stream_share for one in others if one.stream_share is not None}
    total = sum(known.values(), terms.stream_share)
    if total > 1:
        listed = ", ".join(f"{name} {share}" for name, share in sorted(known.items()))
        raise LedgerError(
            f"stream {terms.stream!r} would plan with {terms.stream_share} of the epsilon of "
            f"{terms.grant!r}, of which others have {listed}: together {total}, more than all; have every "
            "configuration name the same streams in [budget] shared_with, or write shares that add up to 1. "
            "A stream that has ended, or has another name now, gives its share back when a day that it "
            "released is run again with a number as its [budget] stream_share"
        )


def _agreed_grant(connection: Connection, terms: StreamTerms, stream_id: int | None) -> tuple[int, int]:
    """Return key and amendment of the budget, which must agree unless nobody else relies on it."""
    grant = one_row(connection, select(GrantRow).where(GrantRow.name == terms.grant).with_for_update())
    if grant is None:
        return first_guarantee(connection, terms), 0
    wanted = terms.guarantee()
    differing = [name for name in OF_GRANT if getattr(grant, name) != wanted.get(name)]
    if not differing:
        return grant.id, grant.amendment
    members = connection.execute(select(StreamRow.id).where(StreamRow.grant_id == grant.id)).scalars()
    if any(member != stream_id for member in members.all()):
        raise LedgerError(
            f"privacy budget {terms.grant!r} is shared, and has another "
            f"{', '.join(CALLED.get(name, name) for name in differing)} than stream {terms.stream!r}: "
            "streams of one privacy budget must agree; take the values of the others in this configuration"
        )
    return grant.id, next_guarantee(connection, grant, terms)


def amend(connection: Connection, terms: StreamTerms, reason: str, now: datetime) -> None:
    """Change the privacy guarantee of a stream that has releases, and of all streams of its privacy budget.

    Earlier spends stay and are priced by the new guarantee (Lemma 12, docs/privacy.md). Releases that were
    reserved and not drawn are planned again; one that is drawn, or being drawn, and not published refuses the
    change. Nothing changes the privacy budget, its calendar or its currency.
    """
    check_name(reason, "reason of an amendment")
    # the streams before their budget, as everybody does: else one that waits for it would be waited for
    budget = select(StreamRow.grant_id).where(StreamRow.name == terms.stream).scalar_subquery()
    members = select(StreamRow).where(StreamRow.grant_id == budget).order_by(StreamRow.id).with_for_update()
    read_rows(connection, members)
    stream, grant = lock(connection, terms.stream)
    refuse_amendment(connection, terms)
    # also where only the hierarchy changed: more leaves may then be reached than a spend was priced for
    number = next_guarantee(connection, grant, terms)
    for member in read_rows(connection, members):
        agreed = terms
        if member.id != stream.id:
            # an alpha of the stream's own keeps its ratio to the budget's
            own, model = terms_of(connection, member), terms.budget_model
            alpha, budget_alpha = own.alpha_ratio * model.alpha, own.budget_alpha and model.alpha
            model = replace(model, alpha=alpha, resolution=own.model.resolution)
            agreed = replace(own, model=model, budget_alpha=budget_alpha)
        change = update(StreamRow).where(StreamRow.id == member.id)
        connection.execute(change.values(**columns_of(agreed)))
        append(connection, member.id, "amended", now, {**event_body(agreed, number), "reason": reason})


def refuse_amendment(connection: Connection, terms: StreamTerms) -> None:
    """Raise the LedgerError with which `amend` would refuse these terms now. Changes nothing."""
    stream = find_stream(connection, terms.stream)
    if stream is None:
        raise LedgerError(f"stream {terms.stream!r} is not in the ledger: there is nothing to amend")
    known = terms_of(connection, stream)
    changed = known.differing(terms)
    if not changed:
        raise LedgerError(
            f"stream {terms.stream!r} has exactly this privacy guarantee already: there is nothing to amend"
        )
    if known.alpha_ratio != terms.alpha_ratio:
        raise LedgerError(
            f"the alpha of stream {terms.stream!r} is {known.alpha_ratio} for one of its privacy budget, and "
            "cannot be amended alone, for what was drawn is priced by that: change alpha and budget_alpha by "
            "the same factor"
        )
    check_currency_kept(known, terms)
    fixed = [CALLED[name] for name in FIXED if name in changed]
    if fixed:
        raise LedgerError(
            f"the {' and '.join(fixed)} of stream {terms.stream!r} cannot be amended: what was spent belongs "
            "to its population, step by step; restore the configuration"
        )
    refuse_more_than_all(connection, terms, stream.grant_id)
    # an open draw is published under the guarantee of its draw
    is_open = or_(ReleaseRow.state == "DRAWN", and_(ReleaseRow.state == "RESERVED", ReleaseRow.drawing))
    query = select(ReleaseRow.period, StreamRow.name).join(StreamRow, StreamRow.id == ReleaseRow.stream_id)
    query = query.where(StreamRow.grant_id == stream.grant_id, is_open).order_by(ReleaseRow.first_step)
    if found := connection.execute(query.limit(1)).first():
        raise LedgerError(
            f"{found.period} of stream {found.name!r} is drawn and not published: run it under the present "
            "privacy guarantee, or give it up with `optstream withdraw`, with the configuration of that "
            "stream; then amend"
        )


def check_currency_kept(known: StreamTerms, terms: StreamTerms) -> None:
    """Refuse, with the remedy, terms in rho where those in force are in epsilon alone, or the reverse."""
    if known.model.currency != terms.model.currency:
        raise LedgerError(
            f"the currency of stream {terms.stream!r} cannot be amended: what it was charged is counted in "
            f"{known.model.currency}, and would be in {terms.model.currency} ([privacy] delta). End it, and "
            "begin a stream of another name and population with a day that begins a whole window or more "
            "after its last step: no window then holds steps of both"
        )

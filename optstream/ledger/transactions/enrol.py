"""Streams and privacy budgets: a privacy guarantee changes under releases that were made under it only by
amendment.
"""

import json
from dataclasses import replace
from datetime import datetime
from fractions import Fraction

from sqlalchemy import Connection, ScalarSelect, Select, and_, bindparam, func, or_, select, update

from optstream.errors import LedgerError
from optstream.ledger.accounting.amendments import GUARANTEE_COLUMNS, first_guarantee, next_guarantee
from optstream.ledger.database.rows import insert_row, one_row, rows
from optstream.ledger.database.schema import GrantRow, ReleaseRow, StreamRow
from optstream.ledger.dated_trees import continues, from_list, to_text
from optstream.ledger.hash_chain import GENESIS, append
from optstream.ledger.records import StreamTerms, check_name
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import exact_from_text

OF_GRANT = (*GUARANTEE_COLUMNS, "calendar")
"""What all streams of a privacy budget agree on: their spends are added up, step by step."""
FIXED = ("grant", "calendar")
"""What no amendment changes: the budget owner, and which time a step is."""

HASH = "hierarchy_hash"
HIERARCHY = "hierarchy"
"""The event by which trees of steps to come are changed."""
DECLARE = "declare the change with `optstream ledger amend`"
REMEDY = f"restore the configuration, or {DECLARE}"

_LOCKED_STREAM = select(StreamRow).where(StreamRow.name == bindparam("stream")).with_for_update()
_GRANT = select(GrantRow).where(GrantRow.id == bindparam("grant"))
_LOCKED_GRANT = _GRANT.with_for_update()


def lock(connection: Connection, stream: str) -> tuple[StreamRow, GrantRow]:
    """Return the rows of a stream and of its privacy budget, held to the end of the transaction, always in
    this order.

    Raises LedgerError for a stream that is not enrolled.
    """
    row = one_row(connection, _LOCKED_STREAM, stream=stream)
    if row is None:
        raise LedgerError(f"stream {stream!r} is not in the ledger: enrol it first")
    return row, grant_of(connection, row, _LOCKED_GRANT)


def grant_of(connection: Connection, stream: StreamRow, query: Select[tuple[GrantRow]] = _GRANT) -> GrantRow:
    """Return the row of a stream's privacy budget."""
    grant = one_row(connection, query, grant=stream.grant_id)
    assert grant is not None
    return grant


def find_stream(connection: Connection, stream: str) -> StreamRow | None:
    """Return the row of a stream, or None."""
    return one_row(connection, select(StreamRow).where(StreamRow.name == stream))


def id_of(stream: str) -> ScalarSelect[int]:
    """Return the key of a stream, within a query; NULL, which equals nothing, for an unknown one."""
    return select(StreamRow.id).where(StreamRow.name == stream).scalar_subquery()


def find_grant(connection: Connection, grant: str) -> GrantRow:
    """Return the row of a privacy budget. Raises LedgerError if there is none."""
    row = one_row(connection, select(GrantRow).where(GrantRow.name == grant))
    if row is None:
        raise LedgerError(f"privacy budget {grant!r} is not in the ledger: enrol one of its streams first")
    return row


def enrol(connection: Connection, terms: StreamTerms, now: datetime) -> None:
    """Make a stream known, or check that it is known under these terms. Charges nothing.

    Until a stream has releases, terms that differ replace the known ones, unless another stream relies on
    what they would change of the privacy budget; `document` may change at any time. So may the list of trees
    from a step on that lies after everything that was ever reserved: that is an event of its own.

    Args:
        terms: Name, privacy guarantee and calendar.
        now: The caller's time.

    Raises:
        LedgerError: The stream has releases that were made under another privacy guarantee, or it does not
            agree with the other streams of its privacy budget; names what differs.
    """
    stream = one_row(connection, _LOCKED_STREAM, stream=terms.stream)
    if stream is not None:
        known = terms_of(connection, stream)
        if known == terms:
            return
        changed = known.differing(terms)
        if changed and _has_releases(connection, stream.id):
            if changed == [HASH]:
                _change_trees(connection, stream, known, terms, now)
                return
            if "stream_share" in changed and {"stream_share", HASH}.issuperset(changed):
                raise LedgerError(_share_would_move(terms, known.stream_share))
            raise LedgerError(
                f"stream {terms.stream!r} has releases, and its {', '.join(changed)} differ from what they "
                f"were made under: {REMEDY}"
            )
    grant_id, amendment = _agreed_grant(connection, terms, None if stream is None else stream.id)
    _refuse_more_than_all(connection, terms, grant_id)
    if stream is None:
        start = {"name": terms.stream, "head": GENESIS, "n_events": 0}
        stream_id = insert_row(connection, StreamRow, grant_id=grant_id, **start, **_columns(terms))
    else:
        stream_id = stream.id
        change = update(StreamRow).where(StreamRow.id == stream_id)
        connection.execute(change.values(grant_id=grant_id, **_columns(terms)))
    body = event_body(terms, amendment)
    append(connection, stream_id, "enrolled" if stream is None else "terms", now, body)


def _share_would_move(terms: StreamTerms, known: Fraction | None) -> str:
    """Say that a stream with releases keeps its share, and what to write."""
    if known is None:
        return (
            f"stream {terms.stream!r} has releases that plan with a number of its own, and public facts "
            f"would choose {terms.stream_share} of epsilon: keep it, or {DECLARE}"
        )
    return (
        f"stream {terms.stream!r} has releases that plan with {known} of epsilon, and public facts would now "
        f'choose {terms.stream_share}: it does not move any more; write [budget] stream_share = "{known}"'
    )


def _refuse_more_than_all(connection: Connection, terms: StreamTerms, grant_id: int) -> None:
    """Raise LedgerError where the shares that were chosen of one epsilon add up to more than 1.

    Reservations are judged window by window all the same: this says it before a stream has its first release.
    """
    if terms.stream_share is None:
        return
    members = select(StreamRow).where(StreamRow.grant_id == grant_id, StreamRow.name != terms.stream)
    others = [terms_of(connection, member) for member in rows(connection, members)]
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


def _change_trees(
    connection: Connection, stream: StreamRow, known: StreamTerms, terms: StreamTerms, now: datetime
) -> None:
    """Take another list of trees under which every period that was ever reserved keeps its own (Lemma 18).

    Raises LedgerError for any other list.
    """
    end = func.max(ReleaseRow.first_step + ReleaseRow.n_steps)
    query = select(ReleaseRow.period).where(ReleaseRow.stream_id == stream.id)
    last = connection.execute(query.order_by(ReleaseRow.first_step.desc()).limit(1)).scalar_one()
    reserved_until = connection.execute(select(end).where(ReleaseRow.stream_id == stream.id)).scalar_one()
    if not continues(known.trees, terms.trees, reserved_until):
        raise LedgerError(
            f"stream {terms.stream!r} has releases, and its hierarchy_hash differs from what they were made "
            f"under: a change of the hierarchy must begin after {last}, the last period that was reserved, "
            f"and leave what held before as it was; else {REMEDY}"
        )
    change = update(StreamRow).where(StreamRow.id == stream.id)
    connection.execute(change.values(**_columns(terms)))
    number = grant_of(connection, stream).amendment
    append(connection, stream.id, HIERARCHY, now, event_body(terms, number))


def amend(connection: Connection, terms: StreamTerms, reason: str, now: datetime) -> None:
    """Change the privacy guarantee of a stream that has releases, and of all streams of its privacy budget.

    Earlier spends stay as they are and are priced anew (Lemma 12, docs/privacy.md), so that windows are
    judged across the change. What was reserved and not drawn is planned again.

    Args:
        terms: The terms from now on; privacy budget and calendar as before.
        reason: Why, short printable text.
        now: The caller's time.

    Raises:
        LedgerError: The stream is not enrolled; nothing differs; the privacy budget, the calendar or the
            currency differs, which nothing can change; chosen shares would add up to more than 1; or a
            release is drawn, or being drawn, and not published.
    """
    check_name(reason, "reason of an amendment")
    stream, grant = lock(connection, terms.stream)
    changed = terms_of(connection, stream).differing(terms)
    if not changed:
        raise LedgerError(
            f"stream {terms.stream!r} has exactly this privacy guarantee already: there is nothing to amend"
        )
    known = terms_of(connection, stream)
    if known.alpha_ratio != terms.alpha_ratio:
        raise LedgerError(
            f"the alpha of stream {terms.stream!r} is {known.alpha_ratio} for one of its privacy budget, and "
            "cannot be amended alone, for what was drawn is priced by that: change alpha and budget_alpha by "
            "the same factor"
        )
    check_currency_kept(known, terms)
    fixed = [name for name in FIXED if name in changed]
    if fixed:
        raise LedgerError(
            f"the {' and '.join(fixed)} of stream {terms.stream!r} cannot be amended: what was spent belongs "
            "to its population, step by step; restore the configuration"
        )
    _refuse_more_than_all(connection, terms, grant.id)
    _refuse_open_draws(connection, grant)
    # also where only the hierarchy changed: more leaves may then be reached than a spend was priced for
    number = next_guarantee(connection, grant, terms.calendar, terms.guarantee())
    members = select(StreamRow).where(StreamRow.grant_id == grant.id).order_by(StreamRow.id).with_for_update()
    for member in rows(connection, members):
        agreed = (
            terms if member.id == stream.id else _following(terms_of(connection, member), terms.budget_model)
        )
        change = update(StreamRow).where(StreamRow.id == member.id)
        connection.execute(change.values(**_columns(agreed)))
        append(connection, member.id, "amended", now, {**event_body(agreed, number), "reason": reason})


def check_currency_kept(known: StreamTerms, terms: StreamTerms) -> None:
    """Refuse terms in another currency than those under which something was charged.

    Args:
        known: In force.
        terms: That would be.

    Raises:
        LedgerError: One is in epsilon alone and the other in rho; it says what to do instead.
    """
    if known.model.currency == terms.model.currency:
        return
    raise LedgerError(
        f"the currency of stream {terms.stream!r} cannot be amended: what it was charged is counted in "
        f"{known.model.currency}, and would be in {terms.model.currency} ([privacy] delta). End it, and "
        "begin a stream of another name and population with a day that begins a whole window or more "
        "after its last step: no window then holds steps of both"
    )


def _refuse_open_draws(connection: Connection, grant: GrantRow) -> None:
    """Raise LedgerError for an open draw: what is drawn is published under the privacy guarantee that it was
    drawn under, so it comes first.
    """
    members = select(StreamRow.id).where(StreamRow.grant_id == grant.id)
    is_open = or_(ReleaseRow.state == "DRAWN", and_(ReleaseRow.state == "RESERVED", ReleaseRow.drawing))
    query = select(ReleaseRow.period).where(ReleaseRow.stream_id.in_(members), is_open)
    period = connection.execute(query.order_by(ReleaseRow.first_step).limit(1)).scalar()
    if period is not None:
        raise LedgerError(
            f"{period} is drawn and not published: run it under the present privacy guarantee, or give it up "
            "with `optstream withdraw`; then amend"
        )


def _following(terms: StreamTerms, model: PrivacyModel) -> StreamTerms:
    """Return a stream's terms after another stream of its privacy budget has changed the privacy guarantee.

    model: with the budget's new alpha; one of the stream's own stays as much for one of it.
    """
    own = replace(model, alpha=terms.alpha_ratio * model.alpha, resolution=terms.model.resolution)
    return replace(terms, model=own, budget_alpha=None if terms.budget_alpha is None else model.alpha)


def _columns(terms: StreamTerms) -> dict[str, str]:
    budget = {} if terms.budget_alpha is None else {"budget_alpha": str(terms.budget_alpha)}
    if terms.stream_share is not None:
        budget["stream_share"] = str(terms.stream_share)
    return {
        "model": json.dumps({**terms.model.to_document(), **budget}, sort_keys=True),
        "hierarchy_hash": terms.hierarchy_hash,
        "calibration": terms.calibration,
        "calendar": terms.calendar,
        "document": terms.document,
        "hierarchy": to_text(terms.trees),
    }


def event_body(terms: StreamTerms, amendment: int) -> dict[str, object]:
    """Return the terms as an event records them; amendment: the number of the budget's privacy guarantee.

    The list of trees is there where it has more than one: events of others are as they always were.
    """
    trees = {"hierarchy": [list(one) for one in terms.trees]} if terms.trees[1:] else {}
    return {**terms.guarantee(), "document": terms.document, **trees, "amendment": amendment}


def terms_of(connection: Connection, stream: StreamRow) -> StreamTerms:
    """Return a stream's row as terms."""
    grant = connection.execute(select(GrantRow.name).where(GrantRow.id == stream.grant_id)).scalar_one()
    model = dict(json.loads(stream.model))
    budget_alpha, share = model.pop("budget_alpha", None), model.pop("stream_share", None)
    names = ("epsilon", "alpha", "resolution", "delta", "rho")
    amounts = {name: exact_from_text(model[name]) for name in names if name in model}
    return StreamTerms(
        stream=stream.name,
        grant=grant,
        model=PrivacyModel(**{**model, **amounts}),
        hierarchy_hash=stream.hierarchy_hash,
        calibration=stream.calibration,
        calendar=stream.calendar,
        document=stream.document,
        trees=from_list(json.loads(stream.hierarchy), stream.hierarchy_hash),
        budget_alpha=None if budget_alpha is None else exact_from_text(budget_alpha),
        stream_share=None if share is None else exact_from_text(share),
    )


def _has_releases(connection: Connection, *stream_ids: int) -> bool:
    query = select(ReleaseRow.id).where(ReleaseRow.stream_id.in_(stream_ids)).limit(1)
    return connection.execute(query).first() is not None


def _agreed_grant(connection: Connection, terms: StreamTerms, stream_id: int | None) -> tuple[int, int]:
    """Return key and amendment of the privacy budget, made or changed if nobody else relies on it; else it
    must agree.
    """
    wanted = terms.guarantee()
    query = select(GrantRow).where(GrantRow.name == terms.grant).with_for_update()
    grant = one_row(connection, query)
    if grant is None:
        return first_guarantee(connection, terms.grant, terms.calendar, wanted), 0
    differing = [name for name in OF_GRANT if getattr(grant, name) != wanted.get(name)]
    if not differing:
        return grant.id, grant.amendment
    members = connection.execute(select(StreamRow.id).where(StreamRow.grant_id == grant.id)).scalars().all()
    if any(member != stream_id for member in members):
        raise LedgerError(
            f"privacy budget {terms.grant!r} is shared, and the {', '.join(differing)} of stream "
            f"{terms.stream!r} differ from it: streams of one privacy budget must agree; {REMEDY}"
        )
    return grant.id, next_guarantee(connection, grant, terms.calendar, wanted)

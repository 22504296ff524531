"""The privacy guarantee of a stream that has releases changes, and with it that of its whole budget."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, and_, or_, select, update

from optstream.errors import LedgerError
from optstream.ledger.accounting.amendments import next_guarantee
from optstream.ledger.database.rows import read_rows
from optstream.ledger.database.schema import ReleaseRow, StreamRow
from optstream.ledger.database.stream_rows import columns_of, event_body, find_stream, lock, terms_of
from optstream.ledger.hash_chain import append
from optstream.ledger.records import StreamTerms, check_name
from optstream.ledger.transactions.enrol import refuse_more_than_all
from optstream.privacy import PrivacyModel

FIXED = ("grant", "calendar")
"""What no amendment changes: the budget owner, and which time a step is."""


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
    # the streams before their budget, as everybody does: else one that waits for it would be waited for
    budget = select(StreamRow.grant_id).where(StreamRow.name == terms.stream).scalar_subquery()
    members = select(StreamRow).where(StreamRow.grant_id == budget).order_by(StreamRow.id).with_for_update()
    read_rows(connection, members)
    stream, grant = lock(connection, terms.stream)
    refuse_amendment(connection, terms)
    # also where only the hierarchy changed: more leaves may then be reached than a spend was priced for
    number = next_guarantee(connection, grant, terms.calendar, terms.guarantee())
    for member in read_rows(connection, members):
        agreed = (
            terms if member.id == stream.id else _following(terms_of(connection, member), terms.budget_model)
        )
        change = update(StreamRow).where(StreamRow.id == member.id)
        connection.execute(change.values(**columns_of(agreed)))
        append(connection, member.id, "amended", now, {**event_body(agreed, number), "reason": reason})


def refuse_amendment(connection: Connection, terms: StreamTerms) -> None:
    """Refuse terms to which `amend` would not change, or not now. Changes nothing.

    Args:
        terms: As for `amend`.

    Raises:
        LedgerError: As of `amend`.
    """
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
    fixed = [name for name in FIXED if name in changed]
    if fixed:
        raise LedgerError(
            f"the {' and '.join(fixed)} of stream {terms.stream!r} cannot be amended: what was spent belongs "
            "to its population, step by step; restore the configuration"
        )
    refuse_more_than_all(connection, terms, stream.grant_id)
    _refuse_open_draws(connection, stream.grant_id)


def check_currency_kept(known: StreamTerms, terms: StreamTerms) -> None:
    """Refuse terms in another currency than those in force, under which something was charged.

    Raises LedgerError, which says what to do instead, where one is in epsilon alone and the other in rho.
    """
    if known.model.currency == terms.model.currency:
        return
    raise LedgerError(
        f"the currency of stream {terms.stream!r} cannot be amended: what it was charged is counted in "
        f"{known.model.currency}, and would be in {terms.model.currency} ([privacy] delta). End it, and "
        "begin a stream of another name and population with a day that begins a whole window or more "
        "after its last step: no window then holds steps of both"
    )


def _refuse_open_draws(connection: Connection, grant_id: int) -> None:
    """Raise LedgerError for an open draw: it is published under the guarantee of its draw."""
    is_open = or_(ReleaseRow.state == "DRAWN", and_(ReleaseRow.state == "RESERVED", ReleaseRow.drawing))
    query = select(ReleaseRow.period, StreamRow.name).join(StreamRow, StreamRow.id == ReleaseRow.stream_id)
    query = query.where(StreamRow.grant_id == grant_id, is_open).order_by(ReleaseRow.first_step)
    if found := connection.execute(query.limit(1)).first():
        period, stream = found
        raise LedgerError(
            f"{period} of stream {stream!r} is drawn and not published: run it under the present privacy "
            "guarantee, or give it up with `optstream withdraw`, with the configuration of that stream; then "
            "amend"
        )


def _following(terms: StreamTerms, model: PrivacyModel) -> StreamTerms:
    """Return a stream's terms after another stream of its privacy budget has changed the privacy guarantee.

    model: with the budget's new alpha; one of the stream's own stays as much for one of it.
    """
    own = replace(model, alpha=terms.alpha_ratio * model.alpha, resolution=terms.model.resolution)
    return replace(terms, model=own, budget_alpha=None if terms.budget_alpha is None else model.alpha)

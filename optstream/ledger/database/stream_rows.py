"""Rows of streams and privacy budgets: found, held to a transaction's end, read as terms and written."""

import json

from sqlalchemy import Connection, ScalarSelect, Select, bindparam, select

from optstream.errors import LedgerError
from optstream.ledger.database.rows import one_row
from optstream.ledger.database.schema import GrantRow, StreamRow
from optstream.ledger.dated_trees import from_list, to_text
from optstream.ledger.records import StreamTerms
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import exact_from_text

LOCKED_STREAM = select(StreamRow).where(StreamRow.name == bindparam("stream")).with_for_update()
_GRANT = select(GrantRow).where(GrantRow.id == bindparam("grant"))
_LOCKED_GRANT = _GRANT.with_for_update()


def lock(connection: Connection, stream: str) -> tuple[StreamRow, GrantRow]:
    """Return the rows of a stream and of its privacy budget, held to the end of the transaction, always in
    this order.

    Raises LedgerError for a stream that is not enrolled.
    """
    row = one_row(connection, LOCKED_STREAM, stream=stream)
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


def columns_of(terms: StreamTerms) -> dict[str, str]:
    """Return the columns of a stream's row that say its terms."""
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

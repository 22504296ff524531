"""The ledger's tables as batches of columns, for an export: whole, from one moment, in bounded memory."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Select, case, select

from optstream.ledger.accounting.spends import COLUMNS
from optstream.ledger.database.schema import EventRow, GrantRow, ReleaseRow, SpendRow, StreamRow

Batch = tuple[str, dict[str, list[Any]]]
"""A table's name, and some of its rows as columns."""


def batches(connection: Connection, n_rows: int) -> Iterator[Batch]:
    """Yield streams, releases, spends and events for an export, from one moment, in bounded memory.

    A table without rows comes once, with empty columns. A stream has its privacy budget's columns beside its
    own; a spend says whether it is in force, which is what its release is charged.

    Args:
        n_rows: The most rows of a batch, at least 1.

    Yields:
        A table's name, and some of its rows as columns, in the order of their keys.
    """
    for table, query in (
        ("streams", _streams()),
        ("releases", _releases()),
        ("spends", _spends()),
        ("events", _events()),
    ):
        names = list(query.selected_columns.keys())
        result = connection.execute(query.execution_options(yield_per=n_rows))
        empty = True
        for rows in result.partitions():
            empty = False
            columns = zip(*rows, strict=True)
            yield table, {name: list(values) for name, values in zip(names, columns, strict=True)}
        if empty:
            yield table, {name: [] for name in names}


def _streams() -> Select[Any]:
    of_grant = ("epsilon", "delta", "rho", "window_length", "windows", "alpha", "unit", "leaves_per_step")
    of_stream = ("model", "hierarchy_hash", "calibration", "calendar", "document", "n_events", "head")
    return (
        select(
            StreamRow.name.label("stream"),
            GrantRow.name.label("grant"),
            *(getattr(GrantRow, name) for name in of_grant),
            *(getattr(StreamRow, name) for name in of_stream),
        )
        .join(GrantRow, GrantRow.id == StreamRow.grant_id)
        .order_by(StreamRow.id)
    )


def _releases() -> Select[Any]:
    own = [
        column for column in ReleaseRow.__table__.columns if column.name not in ("id", "stream_id", "fence")
    ]
    return (
        select(StreamRow.name.label("stream"), *own, ReleaseRow.fence.label("fencing_token"))
        .join(StreamRow, StreamRow.id == ReleaseRow.stream_id)
        .order_by(ReleaseRow.id)
    )


def _spends() -> Select[Any]:
    in_force = SpendRow.generation == ReleaseRow.generation
    return (
        select(
            StreamRow.name.label("stream"),
            GrantRow.name.label("grant"),
            ReleaseRow.period,
            ReleaseRow.revision,
            SpendRow.generation,
            case((in_force, 1), else_=0).label("in_force"),
            *(getattr(SpendRow, name) for name in COLUMNS),
            GrantRow.window_length,
            GrantRow.windows,
        )
        .join(ReleaseRow, ReleaseRow.id == SpendRow.release_id)
        .join(StreamRow, StreamRow.id == ReleaseRow.stream_id)
        .join(GrantRow, GrantRow.id == SpendRow.grant_id)
        .order_by(SpendRow.id)
    )


def _events() -> Select[Any]:
    own = ("number", "at", "kind", "period", "revision", "body", "previous", "hash")
    return (
        select(StreamRow.name.label("stream"), *(getattr(EventRow, name) for name in own))
        .join(StreamRow, StreamRow.id == EventRow.stream_id)
        .order_by(EventRow.id)
    )

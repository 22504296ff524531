"""The ledger's tables as batches of columns, for an export: whole, from one moment, in bounded memory."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Select, case, select

from optstream.ledger.database.schema import events, grants, releases, spends, streams

Batch = tuple[str, dict[str, list[Any]]]
"""A table's name, and some of its rows as columns."""


def batches(connection: Connection, n_rows: int) -> Iterator[Batch]:
    """Yield streams, releases, spends and events, at most `n_rows` rows at a time, in the order of their
    keys.

    A table without rows comes once, with empty columns. A stream has its privacy budget's columns beside its
    own; a spend says whether it is in force, which is what its release is charged.
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
    of_grant = ("epsilon", "window_length", "windows", "alpha", "unit", "leaves_per_step")
    return (
        select(
            streams.c.name.label("stream"),
            grants.c.name.label("grant"),
            *(grants.c[name] for name in of_grant),
            *(streams.c[name] for name in ("model", "hierarchy_hash", "calibration", "calendar", "document")),
            *(streams.c[name] for name in ("n_events", "head")),
        )
        .join(grants, grants.c.id == streams.c.grant_id)
        .order_by(streams.c.id)
    )


def _releases() -> Select[Any]:
    own = [column for column in releases.columns if column.name not in ("id", "stream_id", "fence")]
    return (
        select(streams.c.name.label("stream"), *own, releases.c.fence.label("fencing_token"))
        .join(streams, streams.c.id == releases.c.stream_id)
        .order_by(releases.c.id)
    )


def _spends() -> Select[Any]:
    in_force = spends.c.generation == releases.c.generation
    return (
        select(
            streams.c.name.label("stream"),
            grants.c.name.label("grant"),
            releases.c.period,
            releases.c.revision,
            spends.c.generation,
            case((in_force, 1), else_=0).label("in_force"),
            *(spends.c[name] for name in ("position", "first_step", "n_steps", "document")),
            grants.c.window_length,
            grants.c.windows,
        )
        .join(releases, releases.c.id == spends.c.release_id)
        .join(streams, streams.c.id == releases.c.stream_id)
        .join(grants, grants.c.id == spends.c.grant_id)
        .order_by(spends.c.id)
    )


def _events() -> Select[Any]:
    own = ("number", "at", "kind", "period", "revision", "body", "previous", "hash")
    return (
        select(streams.c.name.label("stream"), *(events.c[name] for name in own))
        .join(streams, streams.c.id == events.c.stream_id)
        .order_by(events.c.id)
    )

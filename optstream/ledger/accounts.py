"""Spends as rows, and what they cost the windows of a grant. Exact: text to fractions, nothing rounds."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, insert, select, update

from optstream.ledger.schema import grants, releases, spends
from optstream.privacy import Spend, WindowCost, charged_to_windows, worst_window
from optstream.privacy.accounting import NO_COST
from optstream.privacy.spends import spend_from_document, spend_to_document


def spend_rows(plan: Sequence[Spend]) -> list[dict[str, Any]]:
    """The spends' own columns, in order."""
    return [
        {
            "position": position,
            "first_step": spend.first_step,
            "n_steps": spend.n_steps,
            "document": json.dumps(spend_to_document(spend), sort_keys=True, separators=(",", ":")),
        }
        for position, spend in enumerate(plan)
    ]


def spends_hash(grant_id: int, rows: Iterable[Any]) -> str:
    """sha256 of what is charged, the columns that searches go by included. rows: of `spend_rows`."""
    digest = hashlib.sha256(f"grant {grant_id}\n".encode())
    for row in rows:
        digest.update(f"{row['position']} {row['first_step']} {row['n_steps']} {row['document']}\n".encode())
    return digest.hexdigest()


def store(
    connection: Connection, grant: Any, release_id: int, generation: int, plan: Sequence[Spend]
) -> None:
    """Append a generation of a release's spends; it is charged once the release's row names it."""
    common = {"grant_id": grant.id, "release_id": release_id, "generation": generation}
    rows = spend_rows(plan)
    if not rows:
        return
    connection.execute(insert(spends), [{**common, **row} for row in rows])
    longest = max(row["n_steps"] for row in rows)
    if longest > grant.longest_spend:
        connection.execute(update(grants).where(grants.c.id == grant.id).values(longest_spend=longest))


def _charged() -> Select[Any]:
    in_force = and_(spends.c.release_id == releases.c.id, spends.c.generation == releases.c.generation)
    return select(spends.c.document).join(releases, in_force)


def charged_to_release(connection: Connection, release_id: int) -> tuple[Spend, ...]:
    """What a release is charged."""
    query = _charged().where(spends.c.release_id == release_id).order_by(spends.c.position)
    return _read(connection, query)


def charged_to_grant(
    connection: Connection,
    grant: Any,
    steps: range | None = None,
    without: int | None = None,
    stream_id: int | None = None,
) -> tuple[Spend, ...]:
    """What a grant's releases are charged, of all streams: those spends that have one of `steps`, or all.

    without: a release to leave out. stream_id: the only stream to look at. Reads a range of the index as
    long as `steps` and the longest spend.
    """
    query = _charged().where(spends.c.grant_id == grant.id)
    if steps is not None:
        query = query.where(
            spends.c.first_step < steps.stop,
            spends.c.first_step > steps.start - grant.longest_spend,
            spends.c.first_step + spends.c.n_steps > steps.start,
        )
    if without is not None:
        query = query.where(spends.c.release_id != without)
    if stream_id is not None:
        query = query.where(releases.c.stream_id == stream_id)
    return _read(connection, query.order_by(spends.c.first_step, spends.c.id))


def _read(connection: Connection, query: Select[Any]) -> tuple[Spend, ...]:
    return tuple(spend_from_document(json.loads(text)) for text in connection.execute(query).scalars())


def hull(plan: Sequence[Spend]) -> range:
    """The steps from the first to the last that the spends touch."""
    return range(
        min(spend.first_step for spend in plan), max(spend.first_step + spend.n_steps for spend in plan)
    )


def cost_touching(
    connection: Connection, grant: Any, steps: range, plan: Sequence[Spend] = (), without: int | None = None
) -> WindowCost:
    """The worst window that has one of `steps`, `plan` included; reads only the history that it may see."""
    lead = grant.window_length - 1
    reach = range(steps.start - lead, steps.stop + lead)
    history = charged_to_grant(connection, grant, reach, without)
    return worst_window([*history, *plan], grant.window_length, grant.windows, touching=steps)


def cost_of_all(connection: Connection, grant: Any) -> WindowCost:
    """The worst window of the grant's whole history, cut where no window can see both sides."""
    worst, part, seen = NO_COST, list[Spend](), 0
    for spend in (*charged_to_grant(connection, grant), None):
        if part and (spend is None or spend.first_step - seen >= grant.window_length):
            cost = worst_window(part, grant.window_length, grant.windows)
            worst = max(worst, cost, key=lambda one: one.epsilon)
            part = []
        if spend is not None:
            end = spend.first_step + spend.n_steps
            seen = max(seen, end) if part else end
            part.append(spend)
    return worst


def covers(reserved: Sequence[Spend], settled: Sequence[Spend], window_length: int, windows: str) -> bool:
    """Whether the settled spends charge no window more than the reserved ones do, window by window."""
    if windows == "aligned":
        for first_step, n_steps in {(spend.first_step, spend.n_steps) for spend in settled}:
            # a window longer than its period is the whole period
            starts = range(first_step, max(first_step, first_step + n_steps - window_length) + 1)
            before, after = (_of_period(plan, first_step, n_steps) for plan in (reserved, settled))
            if not _covers(before, after, window_length, starts):
                return False
        return True
    if not settled:
        return True
    steps = hull(settled)
    return _covers(reserved, settled, window_length, range(steps.start - window_length + 1, steps.stop))


def _of_period(plan: Sequence[Spend], first_step: int, n_steps: int) -> list[Spend]:
    return [spend for spend in plan if (spend.first_step, spend.n_steps) == (first_step, n_steps)]


def _covers(reserved: Sequence[Spend], settled: Sequence[Spend], window_length: int, starts: range) -> bool:
    before = charged_to_windows(reserved, window_length, starts)
    after = charged_to_windows(settled, window_length, starts)
    return all(plan >= outcome for plan, outcome in zip(before, after, strict=True))

"""Spends as rows: how they are stored, hashed and settled. Exact: text to fractions, nothing rounds."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, insert, select, update

from optstream.ledger.database.schema import grants, releases, spends
from optstream.privacy import Spend, charged_to_windows
from optstream.privacy.spends import spend_from_document, spend_to_document

PlainSpend = tuple[int, int, int, str]
"""Position in the plan, first step, steps, document."""


def spend_rows(plan: Sequence[Spend]) -> list[dict[str, Any]]:
    """Return the spends' own columns, in order."""
    return [
        {
            "position": position,
            "first_step": spend.first_step,
            "n_steps": spend.n_steps,
            "document": json.dumps(spend_to_document(spend), sort_keys=True, separators=(",", ":")),
        }
        for position, spend in enumerate(plan)
    ]


def spends_hash(grant_id: int, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return sha256 of what is charged, the columns that searches go by included. rows: of `spend_rows`."""
    plan = ((row["position"], row["first_step"], row["n_steps"], row["document"]) for row in rows)
    return hash_of_lines(grant_id, lines_of(plan))


def lines_of(plan: Iterable[PlainSpend]) -> str:
    """Return what is hashed of spends, a line each: no document holds a line break."""
    return "".join([f"{position} {first} {steps} {document}\n" for position, first, steps, document in plan])


def hash_of_lines(grant_id: int, lines: str) -> str:
    """Return `spends_hash` of the spends, given their `lines_of`."""
    return hashlib.sha256(f"grant {grant_id}\n{lines}".encode()).hexdigest()


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


def charged_rows() -> Select[Any]:
    """Return what is in force of a release's spends: text, privacy guarantee it was planned under, why it is
    compromised.
    """
    in_force = and_(spends.c.release_id == releases.c.id, spends.c.generation == releases.c.generation)
    return select(spends.c.document, releases.c.amendment, releases.c.compromised).join(releases, in_force)


def charged_to_release(connection: Connection, release_id: int) -> tuple[Spend, ...]:
    """Return what a release was charged when it was planned, by the privacy guarantee of then."""
    query = charged_rows().where(spends.c.release_id == release_id).order_by(spends.c.position)
    documents = connection.execute(query).scalars()
    return tuple(spend_from_document(json.loads(document)) for document in documents)


def hull(plan: Sequence[Spend]) -> range:
    """Return the steps from the first to the last that the spends touch."""
    return range(
        min(spend.first_step for spend in plan), max(spend.first_step + spend.n_steps for spend in plan)
    )


def covers(reserved: Sequence[Spend], settled: Sequence[Spend], window_length: int, windows: str) -> bool:
    """Return whether the settled spends charge no window more than the reserved ones do, window by window."""
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

"""Spends as rows, and what they cost the windows of a grant. Exact: text to fractions, nothing rounds."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Select, and_, insert, select, update

from optstream.ledger.engine import plain_rows
from optstream.ledger.schema import grants, releases, spends
from optstream.privacy import Spend, WindowCost, charged_to_windows, worst_of_repeated, worst_window
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


def spends_hash(grant_id: int, rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 of what is charged, the columns that searches go by included. rows: of `spend_rows`."""
    ordered = ((row["position"], row["first_step"], row["n_steps"], row["document"]) for row in rows)
    return hash_of_spends(grant_id, ordered)


def hash_of_spends(grant_id: int, rows: Iterable[tuple[int, int, int, str]]) -> str:
    """As `spends_hash`, of plain rows: position, first step, steps, document."""
    lines = [f"{position} {first} {steps} {document}\n" for position, first, steps, document in rows]
    return hashlib.sha256(f"grant {grant_id}\n{''.join(lines)}".encode()).hexdigest()


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


class History:
    """The spends of a grant, whole: those that differ only in when they were are read and priced once."""

    def __init__(self) -> None:
        self._first_steps: defaultdict[str, list[int]] = defaultdict(list)
        self._movable: dict[str, bool] = {}

    def add(self, first_step: int, document: str) -> None:
        """Charge one more. first_step: as the document says."""
        shape = document.replace(f'"first_step":{first_step},', '"first_step":0,', 1)
        movable = self._movable.get(shape)
        if movable is None:
            # a capped one names steps of other periods; another may be written as no spend is
            movable = '"first_step":0,' in shape and '"kind":"capped"' not in shape
            self._movable[shape] = movable
        if movable and (shape != document or first_step == 0):
            self._first_steps[shape].append(first_step)
        else:
            self._first_steps[document].append(0)

    def include(self, other: "History") -> None:
        """Charge everything that another history does."""
        for shape, first_steps in other._first_steps.items():
            self._first_steps[shape].extend(first_steps)

    def cost(self, window_length: int, windows: str) -> WindowCost:
        """The worst window."""
        repeated = [
            (spend_from_document(json.loads(shape)), first_steps)
            for shape, first_steps in self._first_steps.items()
        ]
        if windows == "sliding":
            return worst_of_repeated(repeated, window_length)
        written_out = (
            replace(spend, first_step=spend.first_step + shift)
            for spend, shifts in repeated
            for shift in shifts
        )
        return worst_window(written_out, window_length, "aligned")


def cost_of_all(connection: Connection, grant: Any) -> WindowCost:
    """The worst window of the grant's whole history."""
    history = History()
    query = _charged().add_columns(spends.c.first_step).where(spends.c.grant_id == grant.id)
    for document, first_step in plain_rows(connection, query):
        history.add(first_step, document)
    return history.cost(grant.window_length, grant.windows)


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

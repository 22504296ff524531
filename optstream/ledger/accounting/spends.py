"""Spends as rows: how they are stored, hashed and settled. Exact: text to fractions, nothing rounds."""

import hashlib
import json
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, Select, and_, insert, select, update

from optstream.ledger.database.schema import GrantRow, ReleaseRow, SpendRow
from optstream.privacy import Spend, charged_to_windows
from optstream.privacy.spends import check_currency, spend_from_document, spend_to_document

PlainSpend = tuple[int, int, int, str]
"""The columns COLUMNS of a spend's row, which its hash is made of."""
COLUMNS = ("position", "first_step", "n_steps", "document")


def spend_rows(plan: Sequence[Spend]) -> list[PlainSpend]:
    """Return the spends' own columns, in order."""
    texts = [json.dumps(spend_to_document(spend), sort_keys=True, separators=(",", ":")) for spend in plan]
    return [
        (position, spend.first_step, spend.n_steps, text)
        for position, (spend, text) in enumerate(zip(plan, texts, strict=True))
    ]


def spends_hash(grant_id: int, plan: Sequence[Spend]) -> str:
    """Return sha256 of what is charged, the columns that searches go by included."""
    return hash_of_lines(grant_id, lines_of(spend_rows(plan)))


def lines_of(plan: Iterable[PlainSpend]) -> str:
    """Return what is hashed of spends, a line each: no document holds a line break."""
    return "".join([f"{position} {first} {steps} {document}\n" for position, first, steps, document in plan])


def hash_of_lines(grant_id: int, lines: str) -> str:
    """Return `spends_hash` of the spends, given their `lines_of`."""
    return hashlib.sha256(f"grant {grant_id}\n{lines}".encode()).hexdigest()


def store(
    connection: Connection, grant: GrantRow, release_id: int, generation: int, plan: Sequence[Spend]
) -> None:
    """Append a generation of a release's spends; it is charged once the release's row names it.

    Raises ParameterError for spends in another currency than the privacy budget's.
    """
    check_currency(plan, "epsilon" if grant.delta is None else "rho")
    common = {"grant_id": grant.id, "release_id": release_id, "generation": generation}
    if not plan:
        return
    columns = [{**common, **dict(zip(COLUMNS, row, strict=True))} for row in spend_rows(plan)]
    connection.execute(insert(SpendRow), columns)
    longest = max(spend.n_steps for spend in plan)
    if longest > grant.longest_spend:
        connection.execute(update(GrantRow).where(GrantRow.id == grant.id).values(longest_spend=longest))


def charged_rows() -> Select[tuple[str, int, str | None]]:
    """Return the text of a release's spends in force, their privacy guarantee, and why it is compromised."""
    in_force = and_(SpendRow.release_id == ReleaseRow.id, SpendRow.generation == ReleaseRow.generation)
    return select(SpendRow.document, ReleaseRow.amendment, ReleaseRow.compromised).join(ReleaseRow, in_force)


def charged_to_release(connection: Connection, release_id: int) -> tuple[Spend, ...]:
    """Return what a release was charged when it was planned, by the privacy guarantee of then."""
    query = charged_rows().where(SpendRow.release_id == release_id).order_by(SpendRow.position)
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

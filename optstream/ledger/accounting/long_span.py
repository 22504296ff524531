"""What a privacy budget's releases were charged over a span that is longer than a window."""

import json
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import Connection, select

from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.accounting.charges import charged_to_grant, having_one_of, window_reach
from optstream.ledger.database.schema import SpendRow
from optstream.ledger.database.stream_rows import find_grant
from optstream.privacy import Spend


@dataclass(frozen=True)
class Spent:
    """The spends of a span. compromised: whether the noise of some of them protects nobody.

    adaptive: whether what was measured there was chosen by what was released before: any plan within a window
    of it, also one that was settled since, left something to be decided. window: how many steps a window has
    and what the privacy budget gives each, in its currency; None where windows do not slide, or an amendment
    changed them.
    """

    spends: tuple[Spend, ...]
    compromised: bool
    adaptive: bool
    window: tuple[int, Fraction] | None


def spent_over(connection: Connection, grant: str, steps: range) -> Spent:
    """Return what all releases with one of these steps are charged, of all streams; reads their history.

    Args:
        grant: Name of the privacy budget.
        steps: Running indices.

    Returns:
        The spends by the privacy guarantee in force, and what is needed to compose them over a long span.

    Raises:
        LedgerError: There is no such privacy budget.
    """
    row = find_grant(connection, grant)
    charged = charged_to_grant(connection, row, steps)
    # what a neighbouring day chose to spend may decide what a day of the span measures
    touching = having_one_of(row, window_reach(row, steps))
    near = select(SpendRow.document).where(*touching, SpendRow.document.contains("capped"))
    window = None
    if row.windows == "sliding" and row.amendment == 0:
        window = (row.window_length, guarantees_of(connection, row).in_force.budget)
    plans = connection.execute(near).scalars()
    # of a capped spend the steps, or what each of them pays, were still to be chosen
    adaptive = any(json.loads(document)["kind"] == "capped" for document in plans)
    return Spent(charged.spends, bool(charged.compromised), adaptive, window)

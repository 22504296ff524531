"""What each stream of a privacy budget is charged in one window: they add up to what the window lost."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import Connection, select

from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.accounting.charges import charged_to_grant, cost_touching
from optstream.ledger.database.rows import read_rows
from optstream.ledger.database.schema import ReleaseRow, StreamRow
from optstream.ledger.database.stream_rows import find_grant


@dataclass(frozen=True)
class SharedWindow:
    """One window, and what each stream of the privacy budget is charged in it.

    Attributes:
        first_step: Where it begins.
        total: What it lost; infinite where noise was compromised.
        by_stream: The part of each stream, in the order of enrolment; those that are charged nothing in it
            as well. They add up to the total.
    """

    first_step: int
    total: Fraction | float
    by_stream: tuple[tuple[str, Fraction | float], ...]


def shared_window(connection: Connection, grant: str, steps: range) -> SharedWindow:
    """Return the worst window that has one of some steps, and what each stream is charged in it.

    Args:
        grant: Name of the privacy budget.
        steps: Running indices, at least one.

    Returns:
        The window, by the privacy guarantee in force; the parts of the streams add up to what it lost.

    Raises:
        LedgerError: There is no such privacy budget.
    """
    row = find_grant(connection, grant)
    worst = cost_touching(connection, row, steps)
    guarantees = guarantees_of(connection, row)
    window = range(worst.first_step, worst.first_step + row.window_length)
    members = read_rows(
        connection, select(StreamRow).where(StreamRow.grant_id == row.id).order_by(StreamRow.id)
    )
    found = []
    for member in members:
        only = ReleaseRow.stream_id == member.id
        charges = charged_to_grant(connection, row, window, only, guarantees=guarantees)
        if row.windows == "aligned":
            # a window has no step of another period
            charges = charges.only(lambda one: one.first_step <= window.start < one.first_step + one.n_steps)
        (lost,) = charges.of_windows(row.window_length, range(window.start, window.start + 1))
        found.append((member.name, lost))
    total = sum((lost for _, lost in found), Fraction(0))
    return SharedWindow(window.start, math.inf if worst.epsilon == math.inf else total, tuple(found))

"""What every window of a privacy budget is charged, window by window: exact, and read from a range of the
history.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from sqlalchemy import Connection, func, select

from optstream.ledger.accounting.charges import Charges, charged_to_grant, window_reach
from optstream.ledger.database.schema import SpendRow
from optstream.ledger.database.stream_rows import find_grant


@dataclass(frozen=True)
class Stretch:
    """Neighbouring windows that are charged the same.

    Attributes:
        first_start: First step of the first of these windows.
        last_start: First step of the last of them.
        charged: What each of them is charged, exact; `math.inf` where noise was compromised.
    """

    first_start: int
    last_start: int
    charged: Fraction | float


def charged_windows(connection: Connection, grant: str, steps: range) -> tuple[Stretch, ...]:
    """Return what each window with one of these steps is charged, equal neighbours together.

    All streams of the privacy budget count. With aligned windows only those inside charged periods are
    listed: any other has the whole privacy budget. Reads the history that these windows see; time O(spends *
    (period + window)).

    Args:
        grant: Name of the privacy budget.
        steps: Running indices.

    Returns:
        Stretches of windows by first step.

    Raises:
        LedgerError: There is no such privacy budget.
    """
    row = find_grant(connection, grant)
    length = row.window_length
    if row.windows == "sliding":
        reach = window_reach(row, steps)
        seen = charged_to_grant(connection, row, reach)
        return tuple(_alike(seen, length, range(reach.start, steps.stop)))
    found: list[Stretch] = []
    for (first, n_steps), own in charged_to_grant(connection, row, steps).by_period():
        # a window longer than its period is the whole period
        last = first + max(n_steps - length, 0)
        starts = range(max(first, min(steps.start - length + 1, last)), min(last, steps.stop - 1) + 1)
        found += _alike(own, length, starts)
    return tuple(found)


def last_charged(connection: Connection, grant: str) -> Stretch | None:
    """Return the last windows of a privacy budget that are charged anything: later ones have all of it.

    Reads the end of the history only.

    Args:
        grant: Name of the privacy budget.

    Returns:
        The windows; None where nothing was charged.

    Raises:
        LedgerError: There is no such privacy budget.
    """
    row = find_grant(connection, grant)
    latest = connection.execute(
        select(func.max(SpendRow.first_step)).where(SpendRow.grant_id == row.id)
    ).scalar_one()
    if latest is None:
        return None
    reach = row.longest_spend + row.window_length
    tail = charged_windows(connection, grant, range(latest - reach, latest + reach))
    return next((stretch for stretch in reversed(tail) if stretch.charged), None)


def _alike(seen: Charges, window_length: int, starts: range) -> list[Stretch]:
    charged = zip(starts, seen.of_windows(window_length, starts), strict=True)
    found = []
    for amount, group in groupby(charged, key=lambda window: window[1]):
        own = [start for start, _ in group]
        found.append(Stretch(own[0], own[-1], amount))
    return found

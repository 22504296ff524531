"""What every window of a privacy budget is charged, window by window: exact, and read from a range of the
history.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from sqlalchemy import Connection, func, select

from optstream.ledger.accounting.charges import Charges, charged_to_grant, window_reach
from optstream.ledger.database.schema import GrantRow, SpendRow


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


def stretches(connection: Connection, grant: GrantRow, steps: range) -> tuple[Stretch, ...]:
    """Return what the windows with at least one of `steps` are charged, by first step.

    All streams of the privacy budget count. With aligned windows only those inside a charged period are
    listed: any other has the whole privacy budget. Reads the history that these windows see; time O(spends *
    (period + window)).
    """
    length = grant.window_length
    if grant.windows == "sliding":
        reach = window_reach(grant, steps)
        seen = charged_to_grant(connection, grant, reach)
        return tuple(_alike(seen, length, range(reach.start, steps.stop)))
    found: list[Stretch] = []
    for (first, n_steps), own in charged_to_grant(connection, grant, steps).by_period():
        # a window longer than its period is the whole period
        last = first + max(n_steps - length, 0)
        starts = range(max(first, min(steps.start - length + 1, last)), min(last, steps.stop - 1) + 1)
        found += _alike(own, length, starts)
    return tuple(found)


def last_charged(connection: Connection, grant: GrantRow) -> Stretch | None:
    """Return the last windows that are charged anything; None if the privacy budget is untouched.

    Every window that begins later has the whole privacy budget. Reads the end of the history only.
    """
    of_grant = SpendRow.grant_id == grant.id
    latest = connection.execute(select(func.max(SpendRow.first_step)).where(of_grant)).scalar_one()
    if latest is None:
        return None
    reach = grant.longest_spend + grant.window_length
    tail = stretches(connection, grant, range(latest - reach, latest + reach))
    return next((stretch for stretch in reversed(tail) if stretch.charged), None)


def _alike(seen: Charges, window_length: int, starts: range) -> list[Stretch]:
    charged = zip(starts, seen.of_windows(window_length, starts), strict=True)
    found = []
    for amount, group in groupby(charged, key=lambda window: window[1]):
        own = [start for start, _ in group]
        found.append(Stretch(own[0], own[-1], amount))
    return found

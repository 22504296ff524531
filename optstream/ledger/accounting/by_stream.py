"""What each stream of a privacy budget is charged in one window: they add up to what the window lost."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import Connection, select

from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.accounting.charges import Charges, charged_to_grant, cost_touching
from optstream.ledger.database.rows import rows
from optstream.ledger.database.schema import GrantRow, ReleaseRow, StreamRow


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


def shared_window(connection: Connection, grant: GrantRow, steps: range) -> SharedWindow:
    """Return the worst window that has one of `steps`, by stream, by the privacy guarantee in force."""
    worst = cost_touching(connection, grant, steps)
    guarantees = guarantees_of(connection, grant)
    window = range(worst.first_step, worst.first_step + grant.window_length)
    members = rows(connection, select(StreamRow).where(StreamRow.grant_id == grant.id).order_by(StreamRow.id))
    found = []
    for member in members:
        only = ReleaseRow.stream_id == member.id
        charges = charged_to_grant(connection, grant, window, only, guarantees=guarantees)
        if grant.windows == "aligned":
            charges = _of_one_period(charges, window.start)
        (lost,) = charges.of_windows(grant.window_length, range(window.start, window.start + 1))
        found.append((member.name, lost))
    total = sum((lost for _, lost in found), Fraction(0))
    return SharedWindow(window.start, math.inf if worst.epsilon == math.inf else total, tuple(found))


def _of_one_period(charges: Charges, step: int) -> Charges:
    """Return the charges of the period that has a step: an aligned window has no step of another."""
    own, lost = (
        tuple(spend for spend in some if spend.first_step <= step < spend.first_step + spend.n_steps)
        for some in (charges.spends, charges.compromised)
    )
    return Charges(own, lost)

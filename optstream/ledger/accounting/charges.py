"""What a privacy budget's windows are charged, read from the range of the history that they see."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from sqlalchemy import ColumnElement, Connection

from optstream.ledger.accounting.amendments import Guarantees, guarantees_of
from optstream.ledger.accounting.spends import charged_rows
from optstream.ledger.database.schema import GrantRow, SpendRow
from optstream.ledger.records import WindowLoss
from optstream.privacy import PrivacyModel, Spend, charged_to_windows, worst_window
from optstream.privacy.model import Windows
from optstream.privacy.spends import spend_from_document

Condition = ColumnElement[bool]
"""What restricts the releases that are looked at."""


@dataclass(frozen=True)
class Charges:
    """What the releases of a privacy budget are charged, by its present privacy guarantee.

    compromised: those of them whose noise protects nobody: a window that they charge at all loses everything.
    """

    spends: tuple[Spend, ...] = ()
    compromised: tuple[Spend, ...] = ()

    def of_windows(self, window_length: int, starts: range) -> list[Fraction | float]:
        """Return what the window that begins at each of `starts` has lost."""
        lost = charged_to_windows(self.compromised, window_length, starts)
        charged = charged_to_windows(self.spends, window_length, starts)
        return [math.inf if gone else amount for gone, amount in zip(lost, charged, strict=True)]

    def by_period(self) -> list[tuple[tuple[int, int], "Charges"]]:
        """Return the charges of each period by itself, by its first step and number of steps."""
        periods = sorted({(spend.first_step, spend.n_steps) for spend in self.spends})
        return [(period, self.only(partial(_is_of, period))) for period in periods]

    def only(self, chosen: Callable[[Spend], bool]) -> "Charges":
        """Return what the chosen ones of these spends are charged."""
        return Charges(tuple(filter(chosen, self.spends)), tuple(filter(chosen, self.compromised)))

    def worst(
        self, window_length: int, windows: Windows, plan: Sequence[Spend], touching: range
    ) -> WindowLoss:
        """Return the worst window with `plan` included, of those that have one of the steps `touching`."""
        lost = worst_window(self.compromised, window_length, windows, touching)
        if lost.epsilon > 0:
            return WindowLoss(math.inf, lost.first_step)
        cost = worst_window([*self.spends, *plan], window_length, windows, touching)
        return WindowLoss(cost.epsilon, cost.first_step)


def _is_of(period: tuple[int, int], spend: Spend) -> bool:
    return (spend.first_step, spend.n_steps) == period


@dataclass(frozen=True)
class Planned:
    """A spend in force as it was planned: under which privacy guarantee, and whether its noise is known."""

    spend: Spend
    guarantee: int
    is_known: bool


def having_one_of(grant: GrantRow, steps: range) -> tuple[Condition, ...]:
    """Return what restricts spends to those of a privacy budget that have one of `steps`."""
    return (
        SpendRow.grant_id == grant.id,
        SpendRow.first_step < steps.stop,
        SpendRow.first_step > steps.start - grant.longest_spend,
        SpendRow.first_step + SpendRow.n_steps > steps.start,
    )


def planned_near(connection: Connection, grant: GrantRow, steps: range, *only: Condition) -> list[Planned]:
    """Return the spends of a privacy budget's releases, of all streams, that have one of `steps`.

    only: conditions on the releases to look at. Reads a range of the index as long as `steps` and the
    longest spend.
    """
    query = charged_rows().where(*having_one_of(grant, steps), *only)
    found = connection.execute(query.order_by(SpendRow.first_step, SpendRow.id)).tuples()
    return [
        Planned(spend_from_document(json.loads(document)), number, reason is not None)
        for document, number, reason in found
    ]


def charges_of(near: Sequence[Planned], guarantees: Guarantees) -> Charges:
    """Return what these are charged by the privacy guarantee in force."""
    priced = [(guarantees.price(one.spend, one.guarantee), one.is_known) for one in near]
    return Charges(
        tuple(spend for spend, _ in priced), tuple(spend for spend, is_known in priced if is_known)
    )


def charged_to_grant(
    connection: Connection,
    grant: GrantRow,
    steps: range,
    *only: Condition,
    guarantees: Guarantees | None = None,
) -> Charges:
    """Return what the spends that have one of `steps` are charged, by the privacy budget's present privacy
    guarantee or by another.

    only: conditions on the releases to look at.
    """
    near = planned_near(connection, grant, steps, *only)
    return charges_of(near, guarantees or guarantees_of(connection, grant))


def cost_touching(
    connection: Connection, grant: GrantRow, steps: range, plan: Sequence[Spend] = (), *only: Condition
) -> WindowLoss:
    """Return the worst window that has one of `steps`, `plan` included; reads only the history that it may
    see.

    only: conditions on the releases to look at.
    """
    charges = charged_to_grant(connection, grant, window_reach(grant, steps), *only)
    return charges.worst(grant.window_length, grant.windows, plan, steps)


def window_reach(guarantee: GrantRow | PrivacyModel, steps: range) -> range:
    """Return the steps that share a window with one of these. guarantee: a budget's row, or a model."""
    lead = guarantee.window_length - 1
    return range(steps.start - lead, steps.stop + lead)

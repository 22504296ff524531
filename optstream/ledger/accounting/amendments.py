"""The privacy guarantees of a budget, amendment by amendment, and what a spend costs under each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from optstream.ledger.database.rows import insert_row, read_rows
from optstream.ledger.database.schema import AmendmentRow, GrantRow, GuaranteeColumns
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.amendment import repriced
from optstream.privacy.exact import exact_from_text
from optstream.privacy.spends import check_currency, spend_from_document

GUARANTEE_COLUMNS = (
    "epsilon", "window_length", "alpha", "unit", "leaves_per_step", "windows", "delta", "rho",
)  # fmt: skip
"""The columns that a privacy budget and each of its amendments have in common. A guarantee of epsilon alone
has neither of the last two, and no event about it names them.
"""


@dataclass(frozen=True)
class Guarantees:
    """A budget's privacy guarantees by their number; `now` is the one in force."""

    by_number: Mapping[int, PrivacyModel]
    now: int

    @property
    def in_force(self) -> PrivacyModel:
        return self.by_number[self.now]

    def price(self, spend: Spend, number: int) -> Spend:
        """Return a spend that was planned under privacy guarantee `number`, by the privacy guarantee in force
        (Lemma 12).

        Raises ParameterError for one in another currency than its own privacy guarantee.
        """
        check_currency((spend,), self.by_number[number].currency)
        if number == self.now:
            return spend
        return repriced(spend, self.by_number[number], self.in_force)

    def read(self, document: str, number: int) -> Spend:
        """Return a spend read from the ledger's text, priced as by `price`."""
        return self.price(spend_from_document(json.loads(document)), number)

    def by(self, number: int) -> "Guarantees":
        """Return the same privacy guarantees, with this one to price by."""
        return Guarantees(self.by_number, number)

    def amended(self, model: PrivacyModel) -> "Guarantees":
        """Return the privacy guarantees as they would be after an amendment."""
        number = max(self.by_number) + 1
        return Guarantees({**self.by_number, number: model}, number)


def guarantees_of(connection: Connection, grant: GrantRow) -> Guarantees:
    """Return the privacy guarantees of a privacy budget's row."""
    if grant.amendment == 0:
        return Guarantees({0: _model(grant)}, 0)
    kept = read_rows(connection, select(AmendmentRow).where(AmendmentRow.grant_id == grant.id))
    return Guarantees({row.number: _model(row) for row in kept}, grant.amendment)


def _model(row: GuaranteeColumns) -> PrivacyModel:
    return PrivacyModel(
        exact_from_text(row.epsilon),
        row.window_length,
        exact_from_text(row.alpha),
        unit=row.unit,
        leaves_per_step=row.leaves_per_step,
        windows=row.windows,
        delta=0 if row.delta is None else exact_from_text(row.delta),
        rho=None if row.rho is None else exact_from_text(row.rho),
    )


def first_guarantee(
    connection: Connection, name: str, calendar: str, guarantee: Mapping[str, str | int]
) -> int:
    """Insert a privacy budget; return its key."""
    wanted = {column: guarantee.get(column) for column in GUARANTEE_COLUMNS}
    grant_id = insert_row(
        connection, GrantRow, name=name, calendar=calendar, longest_spend=0, amendment=0, **wanted
    )
    connection.execute(insert(AmendmentRow).values(grant_id=grant_id, number=0, **wanted))
    return grant_id


def next_guarantee(
    connection: Connection, grant: GrantRow, calendar: str, guarantee: Mapping[str, str | int]
) -> int:
    """Put another privacy guarantee in force; return its number. Earlier ones stay, for their own plans."""
    wanted = {column: guarantee.get(column) for column in GUARANTEE_COLUMNS}
    number = grant.amendment + 1
    connection.execute(insert(AmendmentRow).values(grant_id=grant.id, number=number, **wanted))
    change = update(GrantRow).where(GrantRow.id == grant.id)
    connection.execute(change.values(calendar=calendar, amendment=number, **wanted))
    return number

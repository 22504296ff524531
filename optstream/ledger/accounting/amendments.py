"""What a grant has promised, amendment by amendment, and what a spend costs under each promise."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from optstream.ledger.database.engine import insert_row
from optstream.ledger.database.schema import amendments, grants
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.amendment import repriced
from optstream.privacy.exact import exact_from_text
from optstream.privacy.spends import spend_from_document

PROMISED = ("epsilon", "window_length", "alpha", "unit", "leaves_per_step", "windows")
"""The columns that a grant and each of its amendments have in common."""


@dataclass(frozen=True)
class Promises:
    """A grant's promises by their number; `now` is the one in force."""

    by_number: Mapping[int, PrivacyModel]
    now: int

    @property
    def in_force(self) -> PrivacyModel:
        return self.by_number[self.now]

    def price(self, spend: Spend, number: int) -> Spend:
        """Return a spend that was planned under promise `number`, by the promise in force (Lemma 12)."""
        if number == self.now:
            return spend
        return repriced(spend, self.by_number[number], self.in_force)

    def read(self, document: str, number: int) -> Spend:
        """As `price`, of a spend's text in the ledger."""
        return self.price(spend_from_document(json.loads(document)), number)

    def by(self, number: int) -> "Promises":
        """Return the same promises, with this one to price by."""
        return Promises(self.by_number, number)

    def amended(self, model: PrivacyModel) -> "Promises":
        """Return the promises as they would be after an amendment."""
        number = max(self.by_number) + 1
        return Promises({**self.by_number, number: model}, number)


def promises_of(connection: Connection, grant: Any) -> Promises:
    """Return the promises of a grant's row."""
    if grant.amendment == 0:
        return Promises({0: _model(grant)}, 0)
    rows = connection.execute(select(amendments).where(amendments.c.grant_id == grant.id)).all()
    return Promises({row.number: _model(row) for row in rows}, grant.amendment)


def _model(row: Any) -> PrivacyModel:
    return PrivacyModel(
        exact_from_text(row.epsilon),
        row.window_length,
        exact_from_text(row.alpha),
        unit=row.unit,
        leaves_per_step=row.leaves_per_step,
        windows=row.windows,
    )


def first_promise(connection: Connection, name: str, calendar: str, promise: Mapping[str, Any]) -> int:
    """Insert a grant; return its key."""
    wanted = {column: promise[column] for column in PROMISED}
    grant_id = insert_row(
        connection, grants, name=name, calendar=calendar, longest_spend=0, amendment=0, **wanted
    )
    connection.execute(insert(amendments).values(grant_id=grant_id, number=0, **wanted))
    return grant_id


def next_promise(connection: Connection, grant: Any, calendar: str, promise: Mapping[str, Any]) -> int:
    """Put another promise in force; return its number. Earlier ones stay, for what was planned under them."""
    wanted = {column: promise[column] for column in PROMISED}
    number = int(grant.amendment) + 1
    connection.execute(insert(amendments).values(grant_id=grant.id, number=number, **wanted))
    change = update(grants).where(grants.c.id == grant.id)
    connection.execute(change.values(calendar=calendar, amendment=number, **wanted))
    return number

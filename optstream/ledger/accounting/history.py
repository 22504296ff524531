"""A privacy budget's whole history: what repeats itself is read and priced once."""

import json
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection

from optstream.ledger.accounting.amendments import Guarantees, guarantees_of
from optstream.ledger.accounting.kept_guarantees import joined
from optstream.ledger.accounting.spends import charged_rows
from optstream.ledger.database.rows import plain_rows
from optstream.ledger.database.schema import SpendRow
from optstream.ledger.database.stream_rows import find_grant
from optstream.ledger.records import WindowLoss
from optstream.privacy import PrivacyModel, WindowCost, worst_of_repeated, worst_window
from optstream.privacy.accounting import NO_COST
from optstream.privacy.spends import spend_from_document


class _Shape(NamedTuple):
    """What a spend's document is before and after its first step, and the first steps that it had."""

    before: str
    after: str
    first_steps: list[int]


class History:
    """A privacy budget's spends, whole: those that differ only in when they were are priced once."""

    def __init__(self) -> None:
        self._first_steps: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._latest: dict[tuple[int, int], _Shape] = {}

    def add(self, position: int, first_step: int, document: str, amendment: int = 0) -> None:
        """Charge one more. first_step: as the document says. amendment: the privacy guarantee it was planned
        under.

        position: in its plan. Plans recur, so the spend there in the plan before mostly has the same shape;
        to compare its text takes a tenth of the time of reading it.
        """
        latest = self._latest.get((position, amendment))
        if latest is not None and document == f"{latest.before}{first_step}{latest.after}":
            latest.first_steps.append(first_step)
            return
        before, named, after = document.partition(f'"first_step":{first_step},')
        # a capped one names steps of other periods; another may be written as no spend is
        if not named or '"kind":"capped"' in document:
            self._first_steps[document, amendment].append(0)
            return
        first_steps = self._first_steps[f'{before}"first_step":0,{after}', amendment]
        first_steps.append(first_step)
        self._latest[position, amendment] = _Shape(f'{before}"first_step":', f",{after}", first_steps)

    @property
    def amendments(self) -> set[int]:
        """The privacy guarantees under which something was planned."""
        return {amendment for _, amendment in self._first_steps}

    def include(self, other: "History") -> None:
        """Charge everything that another history does."""
        for key, first_steps in other._first_steps.items():
            self._first_steps[key].extend(first_steps)

    def cost(self, guarantees: Guarantees) -> WindowCost:
        """Return the worst window of all, by the privacy guarantee in force."""
        model = guarantees.in_force
        repeated = [
            (guarantees.read(shape, amendment), first_steps)
            for (shape, amendment), first_steps in self._first_steps.items()
        ]
        if model.windows == "sliding":
            return worst_of_repeated(repeated, model.window_length)
        written_out = (
            replace(spend, first_step=spend.first_step + shift)
            for spend, shifts in repeated
            for shift in shifts
        )
        return worst_window(written_out, model.window_length, "aligned")

    def costs(self, guarantees: Guarantees) -> list[tuple[int, PrivacyModel, WindowCost]]:
        """Return for each privacy guarantee under which something was planned: its number, itself, the worst
        window that it answers for.

        Those are the windows that have a step of what was planned under it, charged by all that was planned,
        before it and after. What an earlier privacy guarantee allowed is not held against a later one.
        """
        used = [guarantees.by(number) for number in sorted(self.amendments)] or [guarantees]
        return [(under.now, under.in_force, self._cost_answered_for(under, len(used) == 1)) for under in used]

    def _cost_answered_for(self, guarantees: Guarantees, only: bool) -> WindowCost:
        """Return the cost as `costs` does, for the privacy guarantee in force; the worst window of all
        instead where that is within it, for it is found quicker. only: no other privacy guarantee was ever
        used.
        """
        cost = self.cost(guarantees)
        if only or cost.epsilon <= guarantees.in_force.budget:
            return cost
        return self._cost_of_planned(guarantees)

    def _cost_of_planned(self, guarantees: Guarantees) -> WindowCost:
        """Return the worst window with a step of what was planned under the privacy guarantee in force."""
        number, model = guarantees.now, guarantees.in_force
        written_out = [
            (replace(spend, first_step=spend.first_step + shift), amendment)
            for (shape, amendment), shifts in self._first_steps.items()
            for spend in (guarantees.read(shape, amendment),)
            for shift in shifts
        ]
        written_out.sort(key=lambda one: one[0].first_step)
        first_steps = [spend.first_step for spend, _ in written_out]
        longest = max(spend.n_steps for spend, _ in written_out)
        worst = NO_COST
        for steps in joined(spend for spend, amendment in written_out if amendment == number):
            begin = bisect_right(first_steps, steps.start - model.window_length - longest)
            near = written_out[begin : bisect_left(first_steps, steps.stop + model.window_length)]
            charged = [spend for spend, _ in near]
            cost = worst_window(charged, model.window_length, model.windows, touching=steps)
            worst = max(worst, cost, key=lambda one: one.epsilon)
        return worst


def _charges_anything(document: str) -> bool:
    return worst_window([spend_from_document(json.loads(document))], 1).epsilon > 0


def worst(connection: Connection, grant: str) -> WindowLoss:
    """Return what the worst window of the whole history loses. Reads all of the history.

    Args:
        grant: Name of the privacy budget.

    Returns:
        The worst window, by the privacy guarantee in force.

    Raises:
        LedgerError: There is no such privacy budget.
    """
    history, row = History(), find_grant(connection, grant)
    query = charged_rows().add_columns(SpendRow.first_step, SpendRow.position)
    query = query.where(SpendRow.grant_id == row.id)
    for document, amendment, compromised, first_step, position in plain_rows(connection, query):
        if compromised is not None and _charges_anything(document):
            return WindowLoss(math.inf, first_step)
        history.add(position, first_step, document, amendment)
    cost = history.cost(guarantees_of(connection, row))
    return WindowLoss(cost.epsilon, cost.first_step)

"""Spends as rows, and what they cost the windows of a grant. Exact: text to fractions, nothing rounds."""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Select, and_, insert, select, update

from optstream.ledger.engine import plain_rows
from optstream.ledger.promises import Promises, promises_of
from optstream.ledger.records import WindowLoss
from optstream.ledger.schema import grants, releases, spends
from optstream.privacy import (
    PrivacyModel,
    Spend,
    WindowCost,
    charged_to_windows,
    worst_of_repeated,
    worst_window,
)
from optstream.privacy.accounting import NO_COST
from optstream.privacy.spends import spend_from_document, spend_to_document


def spend_rows(plan: Sequence[Spend]) -> list[dict[str, Any]]:
    """The spends' own columns, in order."""
    return [
        {
            "position": position,
            "first_step": spend.first_step,
            "n_steps": spend.n_steps,
            "document": json.dumps(spend_to_document(spend), sort_keys=True, separators=(",", ":")),
        }
        for position, spend in enumerate(plan)
    ]


def spends_hash(grant_id: int, rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 of what is charged, the columns that searches go by included. rows: of `spend_rows`."""
    ordered = ((row["position"], row["first_step"], row["n_steps"], row["document"]) for row in rows)
    return hash_of_spends(grant_id, ordered)


def hash_of_spends(grant_id: int, rows: Iterable[tuple[int, int, int, str]]) -> str:
    """As `spends_hash`, of plain rows: position, first step, steps, document."""
    lines = [f"{position} {first} {steps} {document}\n" for position, first, steps, document in rows]
    return hashlib.sha256(f"grant {grant_id}\n{''.join(lines)}".encode()).hexdigest()


def store(
    connection: Connection, grant: Any, release_id: int, generation: int, plan: Sequence[Spend]
) -> None:
    """Append a generation of a release's spends; it is charged once the release's row names it."""
    common = {"grant_id": grant.id, "release_id": release_id, "generation": generation}
    rows = spend_rows(plan)
    if not rows:
        return
    connection.execute(insert(spends), [{**common, **row} for row in rows])
    longest = max(row["n_steps"] for row in rows)
    if longest > grant.longest_spend:
        connection.execute(update(grants).where(grants.c.id == grant.id).values(longest_spend=longest))


def _charged() -> Select[Any]:
    in_force = and_(spends.c.release_id == releases.c.id, spends.c.generation == releases.c.generation)
    return select(spends.c.document, releases.c.amendment, releases.c.compromised).join(releases, in_force)


def charged_to_release(connection: Connection, release_id: int) -> tuple[Spend, ...]:
    """What a release was charged when it was planned, by the promise of then."""
    query = _charged().where(spends.c.release_id == release_id).order_by(spends.c.position)
    documents = connection.execute(query).scalars()
    return tuple(spend_from_document(json.loads(document)) for document in documents)


@dataclass(frozen=True)
class Charges:
    """What the releases of a grant are charged, by its present promise.

    compromised: those of them whose noise protects nobody: a window that they charge at all loses everything.
    """

    spends: tuple[Spend, ...] = ()
    compromised: tuple[Spend, ...] = ()

    def worst(self, window_length: int, windows: Any, plan: Sequence[Spend], touching: range) -> WindowLoss:
        """The worst window with `plan` included, of those that have one of the steps `touching`."""
        lost = worst_window(self.compromised, window_length, windows, touching)
        if lost.epsilon > 0:
            return WindowLoss(math.inf, lost.first_step)
        cost = worst_window([*self.spends, *plan], window_length, windows, touching)
        return WindowLoss(cost.epsilon, cost.first_step)


def charged_to_grant(connection: Connection, grant: Any, steps: range, *only: Any) -> Charges:
    """What a grant's releases are charged, of all streams: those spends that have one of `steps`.

    only: conditions on the releases to look at. Reads a range of the index as long as `steps` and the
    longest spend.
    """
    query = _charged().where(
        spends.c.grant_id == grant.id,
        spends.c.first_step < steps.stop,
        spends.c.first_step > steps.start - grant.longest_spend,
        spends.c.first_step + spends.c.n_steps > steps.start,
        *only,
    )
    promises = promises_of(connection, grant)
    read = [
        (promises.read(document, number), reason)
        for document, number, reason in connection.execute(query.order_by(spends.c.first_step, spends.c.id))
    ]
    return Charges(
        tuple(spend for spend, _ in read), tuple(spend for spend, reason in read if reason is not None)
    )


def hull(plan: Sequence[Spend]) -> range:
    """The steps from the first to the last that the spends touch."""
    return range(
        min(spend.first_step for spend in plan), max(spend.first_step + spend.n_steps for spend in plan)
    )


def cost_touching(
    connection: Connection, grant: Any, steps: range, plan: Sequence[Spend] = (), without: int | None = None
) -> WindowLoss:
    """The worst window that has one of `steps`, `plan` included; reads only the history that it may see.

    without: a release to leave out.
    """
    lead = grant.window_length - 1
    reach = range(steps.start - lead, steps.stop + lead)
    others = () if without is None else (spends.c.release_id != without,)
    charges = charged_to_grant(connection, grant, reach, *others)
    return charges.worst(grant.window_length, grant.windows, plan, steps)


class History:
    """The spends of a grant, whole: those that differ only in when they were are read and priced once."""

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self._first_steps: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._movable: dict[str, bool] = {}

    def add(self, first_step: int, document: str, amendment: int = 0) -> None:
        """Charge one more. first_step: as the document says. amendment: the promise it was planned under."""
        shape = document.replace(f'"first_step":{first_step},', '"first_step":0,', 1)
        movable = self._movable.get(shape)
        if movable is None:
            # a capped one names steps of other periods; another may be written as no spend is
            movable = '"first_step":0,' in shape and '"kind":"capped"' not in shape
            self._movable[shape] = movable
        if movable and (shape != document or first_step == 0):
            self._first_steps[shape, amendment].append(first_step)
        else:
            self._first_steps[document, amendment].append(0)

    @property
    def amendments(self) -> set[int]:
        """The promises under which something was planned."""
        return {amendment for _, amendment in self._first_steps}

    def cost(self) -> WindowCost:
        """The worst window of all, by the present promise."""
        return self._cost(self._promises, self._first_steps)

    def costs(self) -> list[tuple[PrivacyModel, WindowCost]]:
        """For each promise under which something was planned, the worst window that it answers for.

        Those are the windows that have a step of what was planned under it, and what they are charged by
        all that was planned until its end. What an earlier promise allowed is not held against a later one.
        """
        used = sorted(self.amendments)
        if len(used) < 2:
            promises = self._promises.as_of(used[0]) if used else self._promises
            return [(promises.in_force, self._cost(promises, self._first_steps))]
        return [(self._promises.as_of(number).in_force, self._cost_under(number)) for number in used]

    def _cost_under(self, number: int) -> WindowCost:
        promises = self._promises.as_of(number)
        model = promises.in_force
        written_out = [
            (amendment, replace(spend, first_step=spend.first_step + shift))
            for (shape, amendment), shifts in self._first_steps.items()
            if amendment <= number
            for spend in (promises.read(shape, amendment),)
            for shift in shifts
        ]
        everything = [spend for _, spend in written_out]
        worst = NO_COST
        for steps in _stretches(spend for amendment, spend in written_out if amendment == number):
            near = [
                spend
                for spend in everything
                if spend.first_step < steps.stop + model.window_length
                and spend.first_step + spend.n_steps > steps.start - model.window_length
            ]
            cost = worst_window(near, model.window_length, model.windows, touching=steps)
            worst = max(worst, cost, key=lambda one: one.epsilon)
        return worst

    @staticmethod
    def _cost(promises: Promises, repeats: Mapping[tuple[str, int], Sequence[int]]) -> WindowCost:
        model = promises.in_force
        repeated = [
            (promises.read(shape, amendment), first_steps)
            for (shape, amendment), first_steps in repeats.items()
        ]
        if model.windows == "sliding":
            return worst_of_repeated(repeated, model.window_length)
        written_out = (
            replace(spend, first_step=spend.first_step + shift)
            for spend, shifts in repeated
            for shift in shifts
        )
        return worst_window(written_out, model.window_length, "aligned")


def _stretches(plan: Iterable[Spend]) -> list[range]:
    """The steps that some spend has, as ranges that do not touch each other."""
    joined: list[range] = []
    for spend in sorted(plan, key=lambda one: one.first_step):
        stop = spend.first_step + spend.n_steps
        if joined and spend.first_step <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(stop, joined[-1].stop))
        else:
            joined.append(range(spend.first_step, stop))
    return joined


def cost_of_all(connection: Connection, grant: Any) -> WindowLoss:
    """The worst window of the grant's whole history, by its present promise."""
    history = History(promises_of(connection, grant))
    query = _charged().add_columns(spends.c.first_step).where(spends.c.grant_id == grant.id)
    for document, amendment, compromised, first_step in plain_rows(connection, query):
        if compromised is not None:
            return WindowLoss(math.inf, first_step)
        history.add(first_step, document, amendment)
    cost = history.cost()
    return WindowLoss(cost.epsilon, cost.first_step)


def covers(reserved: Sequence[Spend], settled: Sequence[Spend], window_length: int, windows: str) -> bool:
    """Whether the settled spends charge no window more than the reserved ones do, window by window."""
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

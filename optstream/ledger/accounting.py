"""A privacy budget's whole history: what repeats itself is read and priced once."""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import compress, groupby
from operator import itemgetter

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, insert, or_, select, update

from optstream.ledger.records import GuaranteeLoss, Key, ReleaseState, StreamTerms, WindowLoss
from optstream.ledger.schema import (
    GUARANTEE_COLUMNS,
    AmendmentRow,
    GrantRow,
    GuaranteeColumns,
    ReleaseRow,
    SpendRow,
    StreamRow,
    columns_named,
    find_grant,
    find_row,
    find_stream,
    grant_of,
    insert_row,
    model_of,
    plain_rows,
    read_rows,
)
from optstream.privacy import (
    PrivacyModel,
    Spend,
    WindowCost,
    charged_to_windows,
    worst_of_repeated,
    worst_window,
)
from optstream.privacy.accountant import NO_COST, repriced
from optstream.privacy.spends import CUSTOMERS, check_currency, merged, spend_from_document, spend_to_document

# The privacy guarantees of a budget, amendment by amendment, and the price of a spend under each.


@dataclass(frozen=True)
class Guarantees:
    """A budget's privacy guarantees by their number; `now` is the one in force."""

    by_number: Mapping[int, PrivacyModel]
    now: int

    @property
    def in_force(self) -> PrivacyModel:
        return self.by_number[self.now]

    def price(self, spend: Spend, number: int) -> Spend:
        """Return a spend planned under privacy guarantee `number`, priced by the one in force (Lemma 12)."""
        planned = self.by_number[number]
        check_currency((spend,), planned.currency)
        if number == self.now and planned.windows == "sliding":
            return spend
        return repriced(spend, planned, self.in_force)

    def read(self, document: str, number: int) -> Spend:
        """Return a spend read from the ledger's text, priced as by `price`."""
        return self.price(_spend_of(document), number)

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
    return model_of({name: getattr(row, name) for name in GUARANTEE_COLUMNS})


def _columns_of(terms: StreamTerms) -> dict[str, str | int | None]:
    stated = terms.guarantee()
    return {name: stated.get(name) for name in GUARANTEE_COLUMNS}


def first_guarantee(connection: Connection, terms: StreamTerms) -> int:
    """Insert the privacy budget of a stream's terms; return its key."""
    wanted = _columns_of(terms)
    own = {"name": terms.grant, "calendar": terms.calendar, "longest_spend": 0, "amendment": 0}
    grant_id = insert_row(connection, GrantRow, **own, **wanted)
    insert_row(connection, AmendmentRow, grant_id=grant_id, number=0, **wanted)
    return grant_id


def next_guarantee(connection: Connection, grant: GrantRow, terms: StreamTerms) -> int:
    """Put another privacy guarantee in force; return its number. Earlier ones stay, for their own plans."""
    wanted, number = _columns_of(terms), grant.amendment + 1
    insert_row(connection, AmendmentRow, grant_id=grant.id, number=number, **wanted)
    change = update(GrantRow).where(GrantRow.id == grant.id)
    connection.execute(change.values(calendar=terms.calendar, amendment=number, **wanted))
    return number


# Spends as rows: how they are stored, hashed and settled. Exact: text to fractions, nothing rounds.

PlainSpend = tuple[int, int, int, str]  # the columns COLUMNS of a spend's row, which its hash is made of
COLUMNS = ("position", "first_step", "n_steps", "document")


def spend_rows(plan: Iterable[Spend]) -> list[PlainSpend]:
    """Return the spends' own columns, in order."""
    dump = partial(json.dumps, sort_keys=True, separators=(",", ":"))
    return [(at, one.first_step, one.n_steps, dump(spend_to_document(one))) for at, one in enumerate(plan)]


def rows_hash(grant_id: int, rows: Iterable[PlainSpend]) -> str:
    """Return sha256 of a privacy budget's number and spends' rows, a line each: none holds a line break."""
    lines = [f"{position} {first} {steps} {document}\n" for position, first, steps, document in rows]
    return hashlib.sha256(f"grant {grant_id}\n{''.join(lines)}".encode()).hexdigest()


def store(
    connection: Connection, grant: GrantRow, release_id: int, generation: int, plan: Sequence[Spend]
) -> None:
    """Append a generation of a release's spends; it is charged once the release's row names it."""
    check_currency(plan, "epsilon" if grant.delta is None else "rho")
    if not plan:
        return
    common = {"grant_id": grant.id, "release_id": release_id, "generation": generation}
    columns = [{**common, **dict(zip(COLUMNS, row, strict=True))} for row in spend_rows(plan)]
    connection.execute(insert(SpendRow), columns)
    longest = max(spend.n_steps for spend in plan)
    if longest > grant.longest_spend:
        connection.execute(update(GrantRow).where(GrantRow.id == grant.id).values(longest_spend=longest))


IN_FORCE = and_(SpendRow.release_id == ReleaseRow.id, SpendRow.generation == ReleaseRow.generation)
CHARGED = select(SpendRow.document, ReleaseRow.amendment, ReleaseRow.compromised).join(ReleaseRow, IN_FORCE)
"""The texts of spends in force, the privacy guarantee of their release, and why that is compromised."""
_CHARGED_TO_RELEASE = CHARGED.where(SpendRow.release_id == bindparam("release")).order_by(SpendRow.position)


def charged_to_release(connection: Connection, release_id: int) -> tuple[Spend, ...]:
    """Return a release's charges, priced by the privacy guarantee of its plan."""
    found = connection.execute(_CHARGED_TO_RELEASE, {"release": release_id}).scalars()
    return tuple(map(_spend_of, found))


# the ledger is asked for a day's spends at each of its steps, and a backfill takes a month step by step
@lru_cache(maxsize=1024)
def _spend_of(document: str) -> Spend:
    return spend_from_document(json.loads(document))


def joined(plan: Iterable[Spend]) -> list[range]:
    """Return the steps that some spend has, as ranges that do not touch each other, rising."""
    return merged((spend.steps for spend in plan), lambda before, own: own.start <= before.stop)


def hull(plan: Sequence[Spend]) -> range:
    """Return the steps from the first to the last that the spends touch."""
    (touched,) = merged((spend.steps for spend in plan), lambda *_: True)
    return touched


def covers(reserved: Sequence[Spend], settled: Sequence[Spend], window_length: int) -> bool:
    """Return whether the settled spends charge no window more than the reserved ones do, window by window."""
    if not settled:
        return True
    steps = hull(settled)
    starts = range(steps.start - window_length + 1, steps.stop)
    before = charged_to_windows(reserved, window_length, starts)
    after = charged_to_windows(settled, window_length, starts)
    return all(plan >= outcome for plan, outcome in zip(before, after, strict=True))


# What a privacy budget's windows are charged, read from the range of the history that they see.

Condition = ColumnElement[bool]  # what restricts the releases that are looked at


@dataclass(frozen=True)
class Charges:
    """A privacy budget's charges by its guarantee in force, those of compromised noise apart."""

    spends: tuple[Spend, ...] = ()
    compromised: tuple[Spend, ...] = ()

    def of_windows(self, window_length: int, starts: range) -> list[Fraction | float]:
        """Return the loss of the window that begins at each of `starts`."""
        lost = charged_to_windows(self.compromised, window_length, starts)
        charged = charged_to_windows(self.spends, window_length, starts)
        return [math.inf if gone else amount for gone, amount in zip(lost, charged, strict=True)]

    def worst(self, window_length: int, plan: Sequence[Spend], touching: range) -> WindowLoss:
        """Return the worst window, with `plan`, among those with one of the steps `touching`."""
        lost = worst_window(self.compromised, window_length, touching)
        if lost.epsilon > 0:
            return WindowLoss(math.inf, lost.first_step)
        cost = worst_window([*self.spends, *plan], window_length, touching)
        return WindowLoss(cost.epsilon, cost.first_step)


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
    """Return the spends, of all streams, that have one of `steps`; `only` restricts their releases."""
    query = CHARGED.where(*having_one_of(grant, steps), *only).order_by(SpendRow.first_step, SpendRow.id)
    found = connection.execute(query).tuples()
    return [Planned(_spend_of(document), number, reason is not None) for document, number, reason in found]


def charges_of(near: Sequence[Planned], guarantees: Guarantees) -> Charges:
    """Return the charge of these by the privacy guarantee in force."""
    priced = [guarantees.price(one.spend, one.guarantee) for one in near]
    return Charges(tuple(priced), tuple(compress(priced, (one.is_known for one in near))))


def charged_to_grant(
    connection: Connection,
    grant: GrantRow,
    steps: range,
    *only: Condition,
    guarantees: Guarantees | None = None,
) -> Charges:
    """Return the charges of the spends that have one of `steps`, by the guarantee in force or others."""
    near = planned_near(connection, grant, steps, *only)
    return charges_of(near, guarantees or guarantees_of(connection, grant))


def window_reach(guarantee: GrantRow | PrivacyModel, steps: range) -> range:
    """Return the steps that share a window with one of these. guarantee: a budget's row, or a model."""
    lead = guarantee.window_length - 1
    return range(steps.start - lead, steps.stop + lead)


# Whether a plan keeps every privacy guarantee that days were released under (Lemma 12,
# docs/privacy.md).


def losses_with(
    connection: Connection,
    grant: GrantRow,
    plan: Sequence[Spend],
    *only: Condition,
    amended: PrivacyModel | None = None,
) -> list[GuaranteeLoss]:
    """Return the worst window of each privacy guarantee by its own model, a plan included: of the one in
    force, which comes first, over windows with a step of the plan; of an earlier one over those of them that
    also have a step planned under it."""
    steps, guarantees = hull(plan), guarantees_of(connection, grant)
    if amended is not None:
        guarantees = guarantees.amended(amended)
    longest = max(guarantees.by_number.values(), key=lambda model: model.window_length)
    near, found = planned_near(connection, grant, window_reach(longest, steps), *only), []
    for number in (guarantees.now, *sorted({one.guarantee for one in near} - {guarantees.now})):
        under, priced, places, free_from = guarantees.by(number), plan, [steps], None
        if number != guarantees.now:
            own = joined(one.spend for one in near if one.guarantee == number)
            priced = [under.price(spend, guarantees.now) for spend in plan]
            # a window has a step of the plan and one of these just where it begins in both ranges of starts
            places = [range(max(one.start, steps.start), min(one.stop, steps.stop)) for one in own]
            free_from = own[-1].stop - 1 + under.in_force.window_length
        model, charges = under.in_force, charges_of(near, under)
        losses = [charges.worst(model.window_length, priced, place) for place in places]
        worst = max(losses, key=lambda loss: loss.epsilon)
        found.append(GuaranteeLoss(number, model, worst, free_from))
    return found


def outcome_is_covered(
    connection: Connection, grant: GrantRow, reserved: Sequence[Spend], outcome: Sequence[Spend]
) -> bool:
    """Return whether a draw charges no window more than its plan did, by any of the budget's guarantees."""
    guarantees = guarantees_of(connection, grant)
    for number, model in guarantees.by_number.items():
        if model.currency != guarantees.in_force.currency:
            continue  # nothing was ever planned under it: a currency changes only before the first release
        by = guarantees.by(number)
        plan, drawn = ([by.price(spend, guarantees.now) for spend in some] for some in (reserved, outcome))
        if not covers(plan, drawn, model.window_length):
            return False
    return True


class History:
    """All spends of a privacy budget; spends that differ only in time are priced once."""

    def __init__(self) -> None:
        self._first_steps: defaultdict[tuple[str, int], list[int]] = defaultdict(list)

    def add(self, plan: Iterable[PlainSpend], amendment: int = 0) -> None:
        """Charge one more plan, made under guarantee `amendment`."""
        for _, step, _, document in plan:
            before, named, after = document.partition(f'"first_step":{step},')
            # a capped one names steps of other periods; another may be written as no spend is
            if not named or '"kind":"capped"' in document:
                self._first_steps[document, amendment].append(0)
            else:
                self._first_steps[f'{before}"first_step":0,{after}', amendment].append(step)

    @property
    def amendments(self) -> set[int]:
        """The privacy guarantees under which something was planned."""
        return {amendment for _, amendment in self._first_steps}

    def cost(self, guarantees: Guarantees) -> WindowCost:
        """Return the worst window of all, by the privacy guarantee in force."""
        repeated = [
            ([guarantees.read(shape, amendment)], first_steps)
            for (shape, amendment), first_steps in self._first_steps.items()
        ]
        return worst_of_repeated(repeated, guarantees.in_force.window_length)

    def costs(self, guarantees: Guarantees) -> Iterator[tuple[int, PrivacyModel, WindowCost]]:
        """Yield number, model and worst window of each privacy guarantee under which something was planned:
        the worst of all where that is within it, else of those with a step planned under it, inside one
        period for aligned windows, as earlier versions had."""
        used = [guarantees.by(number) for number in sorted(self.amendments)] or [guarantees]
        for under in used:
            cost, model = self.cost(under), under.in_force
            if cost.epsilon > model.budget and (len(used) > 1 or model.windows != "sliding"):
                cost = self._cost_of_planned(under)
            yield under.now, model, cost

    def _cost_of_planned(self, guarantees: Guarantees) -> WindowCost:
        """Return the worst window with a step planned under the privacy guarantee in force."""
        number, model = guarantees.now, guarantees.in_force
        written_out = [
            (replace(spend, first_step=spend.first_step + shift), amendment)
            for (shape, amendment), first_steps in self._first_steps.items()
            for spend in (guarantees.read(shape, amendment),)
            for shift in first_steps
        ]
        if model.windows == "aligned":
            periods: dict[range, list[Spend]] = {}
            for spend, _ in written_out:
                periods.setdefault(spend.steps, []).append(spend)
            own = {one.steps for one, amendment in written_out if amendment == number}
            found = [worst_window(periods[period], model.window_length) for period in own]
            return max(found, key=lambda one: one.epsilon)
        worst = NO_COST
        for steps in joined(spend for spend, amendment in written_out if amendment == number):
            reach = window_reach(model, steps)
            spends = [spend for spend, _ in written_out if spend.first_step < reach.stop]
            near = [spend for spend in spends if spend.steps.stop > reach.start]
            cost = worst_window(near, model.window_length, touching=steps)
            worst = max(worst, cost, key=lambda one: one.epsilon)
        return worst


def worst(connection: Connection, grant: str) -> WindowLoss:
    """Return the loss of the worst window of the whole history, by the privacy guarantee in force."""
    history, row = History(), find_grant(connection, grant)
    query = (
        select(SpendRow.release_id, ReleaseRow.amendment, ReleaseRow.compromised)
        .add_columns(*columns_named(SpendRow, COLUMNS))
        .join_from(SpendRow, ReleaseRow, IN_FORCE)
        .where(SpendRow.grant_id == row.id)
    )
    for (_, amendment, compromised), group in groupby(plain_rows(connection, query), key=itemgetter(0, 1, 2)):
        plan = [spend[3:] for spend in group]
        for _, first_step, _, document in plan if compromised is not None else ():
            if worst_window([_spend_of(document)], 1).epsilon:
                return WindowLoss(math.inf, first_step)
        history.add(plan, amendment)
    cost = history.cost(guarantees_of(connection, row))
    return WindowLoss(cost.epsilon, cost.first_step)


# A plan before its reservation: the charges near it, and the losses of windows with it.


def window_spent(connection: Connection, grant: str, steps: range) -> WindowLoss:
    """Return the loss of the worst window that has one of some steps, over all streams of the budget."""
    row = find_grant(connection, grant)
    return charged_to_grant(connection, row, window_reach(row, steps)).worst(row.window_length, (), steps)


def charged_near(
    connection: Connection,
    key: Key,
    steps: range,
    amended: PrivacyModel | None = None,
    only_drawn: bool = False,
    apart: bool = False,
) -> tuple[Spend, ...]:
    """Return the priced charges of a stream's other releases at steps that share a window with a plan's.

    Only releases of the same share count: first releases have one, restatements another, or, `apart`, each
    number one of its own; counts of customers are left out. Of a release whose owner died while drawing, only
    those reserved before it count, so that its plan comes out as it was. amended: the guarantee to price by,
    if not the one in force. only_drawn: of releases that are DRAWN or PUBLISHED alone.
    """
    row = find_stream(connection, key.stream)
    if row is None:
        return ()
    grant = grant_of(connection, row)
    guarantees = guarantees_of(connection, grant)
    if amended is not None:
        guarantees = guarantees.amended(amended)
    reach = window_reach(guarantees.in_force, steps)
    others = or_(ReleaseRow.period != key.period, ReleaseRow.revision != key.revision)
    own = find_row(connection, key)
    if own is not None and (own.drawing or own.redraws):
        others = and_(others, ReleaseRow.id < own.id)
    is_shared = key.revision and not apart
    same_share = ReleaseRow.revision > 0 if is_shared else ReleaseRow.revision == key.revision
    drawn = [ReleaseState.DRAWN.value, ReleaseState.PUBLISHED.value]
    only = [ReleaseRow.stream_id == row.id, same_share, others]
    only += [ReleaseRow.state.in_(drawn)] if only_drawn else []
    near = charged_to_grant(connection, grant, reach, *only, guarantees=guarantees).spends
    return tuple(one for one in near if one.stage != CUSTOMERS)


def judge_plan(
    connection: Connection, grant: str, plan: Sequence[Spend], amended: PrivacyModel | None = None
) -> list[GuaranteeLoss]:
    """Return the losses by which `reserve` judges a plan, by the guarantee in force, or `amended`, first."""
    return losses_with(connection, find_grant(connection, grant), plan, amended=amended)


def shared_window(
    connection: Connection, grant: str, steps: range
) -> tuple[WindowLoss, dict[str, Fraction | float]]:
    """Return the worst window that has one of some steps, and the part of each stream, as enrolled."""
    row, worst = find_grant(connection, grant), window_spent(connection, grant, steps)
    guarantees, start = guarantees_of(connection, row), worst.first_step
    window = range(start, start + row.window_length)
    members, found = select(StreamRow).where(StreamRow.grant_id == row.id).order_by(StreamRow.id), {}
    for member in read_rows(connection, members):
        only = ReleaseRow.stream_id == member.id
        charges = charged_to_grant(connection, row, window, only, guarantees=guarantees)
        (found[member.name],) = charges.of_windows(row.window_length, range(start, start + 1))
    return worst, found


# What every window of a privacy budget is charged, window by window: exact, and read from a range of the
# history.


@dataclass(frozen=True)
class Stretch:
    """Neighbouring windows, by their first steps, that are charged the same; `math.inf` where noise was
    compromised.
    """

    first_start: int
    last_start: int
    charged: Fraction | float


def charged_windows(connection: Connection, grant: str, steps: range) -> tuple[Stretch, ...]:
    """Return the charge of each window with one of these steps, equal neighbours as one stretch."""
    row = find_grant(connection, grant)
    reach = window_reach(row, steps)
    starts = range(reach.start, steps.stop)
    charged = charged_to_grant(connection, row, reach).of_windows(row.window_length, starts)
    groups = groupby(zip(starts, charged, strict=True), key=itemgetter(1))
    found = [(amount, [start for start, _ in own]) for amount, own in groups]
    return tuple(Stretch(own[0], own[-1], amount) for amount, own in found)


def last_charged(connection: Connection, grant: str) -> Stretch | None:
    """Return the last windows of a privacy budget that are charged; None where nothing was charged."""
    row = find_grant(connection, grant)
    newest = select(func.max(SpendRow.first_step)).where(SpendRow.grant_id == row.id)
    latest = connection.execute(newest).scalar_one()
    if latest is None:
        return None
    reach = row.longest_spend + row.window_length
    tail = charged_windows(connection, grant, range(latest - reach, latest + reach))
    return next((stretch for stretch in reversed(tail) if stretch.charged), None)


# What a privacy budget's releases were charged over a span that is longer than a window.


@dataclass(frozen=True)
class Spent:
    """The spends of a span, of all its releases; adaptive where earlier outputs chose measurements. `window`:
    its steps and budget; None where windows do not slide, or an amendment changed them."""

    spends: tuple[Spend, ...]
    compromised: bool
    adaptive: bool
    window: tuple[int, Fraction] | None


def spent_over(connection: Connection, grant: str, steps: range) -> Spent:
    """Return the charges of all releases with one of these steps, for composing them over a long span."""
    row = find_grant(connection, grant)
    charged = charged_to_grant(connection, row, steps)
    # the spends that a neighbouring day chose may decide the measurements of a day of the span
    touching = having_one_of(row, window_reach(row, steps))
    near = select(SpendRow.document).where(*touching, SpendRow.document.contains("capped"))
    window = None
    if row.windows == "sliding" and row.amendment == 0:
        window = (row.window_length, guarantees_of(connection, row).in_force.budget)
    plans = connection.execute(near).scalars()
    # of a capped spend the steps, or what each of them pays, were still to be chosen
    adaptive = any(json.loads(document)["kind"] == "capped" for document in plans)
    return Spent(charged.spends, bool(charged.compromised), adaptive, window)

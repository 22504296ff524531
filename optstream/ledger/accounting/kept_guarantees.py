"""Whether every privacy guarantee that days were released under is kept beside a plan (Lemma 12,
docs/privacy.md).
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from optstream.ledger.accounting.amendments import Guarantees, guarantees_of
from optstream.ledger.accounting.charges import Condition, Planned, charges_of, planned_near, window_reach
from optstream.ledger.accounting.spends import covers, hull
from optstream.ledger.database.schema import GrantRow
from optstream.ledger.records import GuaranteeLoss
from optstream.privacy import PrivacyModel, Spend


def losses_with(
    connection: Connection,
    grant: GrantRow,
    plan: Sequence[Spend],
    *only: Condition,
    amended: PrivacyModel | None = None,
) -> list[GuaranteeLoss]:
    """Return what the worst window of each privacy guarantee loses, with a plan under the privacy guarantee
    in force; it comes first.

    The privacy guarantee in force answers for every window with a step of the plan, an earlier one for those
    of them that also have a step of what was planned under it: days that were released under a privacy
    guarantee keep it, whatever comes beside them. Each is judged by its own window length, alpha and unit,
    over all spends. only: conditions on the releases to look at. amended: judged as if this were the privacy
    guarantee in force.
    """
    steps, guarantees = hull(plan), guarantees_of(connection, grant)
    if amended is not None:
        guarantees = guarantees.amended(amended)
    near = planned_in_reach(connection, grant, guarantees, steps, *only)
    found = [_loss(guarantees, near, plan, [steps])]
    for number in sorted({one.guarantee for one in near} - {guarantees.now}):
        under = guarantees.by(number)
        own = joined(one.spend for one in near if one.guarantee == number)
        priced = [under.price(spend, guarantees.now) for spend in plan]
        # a window has a step of the plan and one of these just where it begins in both ranges of starts
        both = [range(max(one.start, steps.start), min(one.stop, steps.stop)) for one in own]
        free_from = own[-1].stop - 1 + under.in_force.window_length
        found.append(_loss(under, near, priced, both, free_from))
    return found


def planned_in_reach(
    connection: Connection, grant: GrantRow, guarantees: Guarantees, steps: range, *only: Condition
) -> list[Planned]:
    """Return what is planned in the windows of any privacy guarantee that have some of these steps. only:
    conditions on the releases to look at.
    """
    longest = max(guarantees.by_number.values(), key=lambda model: model.window_length)
    return planned_near(connection, grant, window_reach(longest, steps), *only)


def _loss(
    guarantees: Guarantees,
    near: Sequence[Planned],
    plan: Sequence[Spend],
    places: Sequence[range],
    free_from: int | None = None,
) -> GuaranteeLoss:
    """Return the worst window, by the privacy guarantee in force, of those that touch one of the places."""
    model, charges = guarantees.in_force, charges_of(near, guarantees)
    losses = [charges.worst(model.window_length, model.windows, plan, place) for place in places]
    return GuaranteeLoss(guarantees.now, model, max(losses, key=lambda loss: loss.epsilon), free_from)


def outcome_is_covered(
    connection: Connection, grant: GrantRow, reserved: Sequence[Spend], outcome: Sequence[Spend]
) -> bool:
    """Return whether a draw charges no window more than its plan did, by any of the budget's privacy
    guarantees.

    The plan is one under the privacy guarantee in force: nothing else is drawn.
    """
    guarantees = guarantees_of(connection, grant)
    for number, model in guarantees.by_number.items():
        if model.currency != guarantees.in_force.currency:
            continue  # nothing was ever planned under it: a currency changes only before the first release
        by = guarantees.by(number)
        plan, drawn = ([by.price(spend, guarantees.now) for spend in some] for some in (reserved, outcome))
        if not covers(plan, drawn, model.window_length, model.windows):
            return False
    return True


def joined(plan: Iterable[Spend]) -> list[range]:
    """Return the steps that some spend has, as ranges that do not touch each other, rising."""
    found: list[range] = []
    for spend in sorted(plan, key=lambda one: one.first_step):
        stop = spend.first_step + spend.n_steps
        if found and spend.first_step <= found[-1].stop:
            found[-1] = range(found[-1].start, max(stop, found[-1].stop))
        else:
            found.append(range(spend.first_step, stop))
    return found

"""What a plan that is still to be reserved meets: what is charged near it, and what windows would lose."""

from collections.abc import Sequence

from sqlalchemy import Connection, and_, or_

from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.accounting.charges import charged_to_grant, cost_touching, window_reach
from optstream.ledger.accounting.kept_guarantees import losses_with
from optstream.ledger.database.schema import ReleaseRow
from optstream.ledger.database.stream_rows import find_grant, find_stream, grant_of
from optstream.ledger.records import GuaranteeLoss, WindowLoss
from optstream.ledger.transactions.held import find_row
from optstream.privacy import PrivacyModel, Spend


def window_spent(connection: Connection, grant: str, first_step: int, n_steps: int) -> WindowLoss:
    """Return what the worst window loses, of those that have one of some steps; all streams count.

    Args:
        grant: Name of the privacy budget.
        first_step: Running index of the first of these steps.
        n_steps: How many steps, at least 1.

    Returns:
        The worst window, by the privacy guarantee in force.

    Raises:
        LedgerError: There is no such privacy budget.
    """
    return cost_touching(connection, find_grant(connection, grant), range(first_step, first_step + n_steps))


def charged_near(
    connection: Connection,
    stream: str,
    period: str,
    revision: int,
    first_step: int,
    n_steps: int,
    amended: PrivacyModel | None = None,
) -> tuple[Spend, ...]:
    """Return what other releases of a stream are charged at steps that share a window with a plan's.

    Only releases of the same share count: first releases have one share of the privacy budget, restatements
    another, and a plan of the one does not look at what the other spent. Of a release whose owner died while
    drawing, only those that were reserved before it count: its plan must come out as it was, and later ones
    were judged with it.

    Args:
        stream: Name of the stream.
        period: Key of the release's period.
        revision: Of the release; 0 for a first release.
        first_step: Running index of the plan's first step.
        n_steps: How many steps the plan has, at least 1.
        amended: Price the spends as if this were the privacy guarantee in force.

    Returns:
        The spends, priced by the privacy guarantee in force or by `amended`; none for an unknown stream.
    """
    row = find_stream(connection, stream)
    if row is None:
        return ()
    grant = grant_of(connection, row)
    guarantees = guarantees_of(connection, grant)
    if amended is not None:
        guarantees = guarantees.amended(amended)
    reach = window_reach(guarantees.in_force, range(first_step, first_step + n_steps))
    others = or_(ReleaseRow.period != period, ReleaseRow.revision != revision)
    own = find_row(connection, stream, period, revision)
    if own is not None and (own.drawing or own.redraws):
        others = and_(others, ReleaseRow.id < own.id)
    same_share = ReleaseRow.revision > 0 if revision else ReleaseRow.revision == 0
    only = (ReleaseRow.stream_id == row.id, same_share, others)
    return charged_to_grant(connection, grant, reach, *only, guarantees=guarantees).spends


def judge_plan(
    connection: Connection, grant: str, plan: Sequence[Spend], amended: PrivacyModel | None = None
) -> list[GuaranteeLoss]:
    """Return what the worst window of each privacy guarantee would lose with a plan.

    The plan is judged as by `reserve`; nothing is charged.

    Args:
        grant: Name of the privacy budget.
        plan: At least one spend; steps are running indices.
        amended: Judge as if this were the privacy guarantee in force.

    Returns:
        The privacy guarantee in force first, then the earlier ones that days in the plan's windows were
        released under.

    Raises:
        LedgerError: There is no such privacy budget.
    """
    return losses_with(connection, find_grant(connection, grant), plan, amended=amended)

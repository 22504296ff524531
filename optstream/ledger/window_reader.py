"""What windows of a privacy budget lose, and what may still be charged: each method is one transaction."""

from collections.abc import Sequence

from sqlalchemy import Engine, and_, or_

from optstream.ledger.accounting.amendments import guarantees_of
from optstream.ledger.accounting.by_stream import SharedWindow, shared_window
from optstream.ledger.accounting.charges import charged_to_grant, cost_touching, window_reach
from optstream.ledger.accounting.headroom import Stretch, last_charged, stretches
from optstream.ledger.accounting.history import cost_of_all
from optstream.ledger.accounting.kept_guarantees import losses_with
from optstream.ledger.accounting.long_span import Spent, spent_over
from optstream.ledger.database.engine import reading
from optstream.ledger.database.schema import ReleaseRow
from optstream.ledger.records import GuaranteeLoss, WindowLoss
from optstream.ledger.transactions.held import find_row
from optstream.ledger.transactions.stream_rows import find_grant, find_stream, grant_of
from optstream.privacy import PrivacyModel, Spend


class WindowReader:
    """The part of `Reader` that tells what was charged."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def window_spent(self, grant: str, first_step: int, n_steps: int) -> WindowLoss:
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
        with reading(self._engine) as connection:
            steps = range(first_step, first_step + n_steps)
            return cost_touching(connection, find_grant(connection, grant), steps)

    def charged_near(
        self,
        stream: str,
        period: str,
        revision: int,
        first_step: int,
        n_steps: int,
        amended: PrivacyModel | None = None,
    ) -> tuple[Spend, ...]:
        """Return what other releases of a stream are charged at steps that share a window with a plan's.

        Only releases of the same share count: first releases have one share of the privacy budget,
        restatements another, and a plan of the one does not look at what the other spent. Of a release whose
        owner died while drawing, only those that were reserved before it count: its plan must come out as it
        was, and later ones were judged with it.

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
        with reading(self._engine) as connection:
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
            charges = charged_to_grant(connection, grant, reach, *only, guarantees=guarantees)
            return charges.spends

    def worst(self, grant: str) -> WindowLoss:
        """Return what the worst window of the whole history loses. Reads all of the history.

        Args:
            grant: Name of the privacy budget.

        Returns:
            The worst window, by the privacy guarantee in force.

        Raises:
            LedgerError: There is no such privacy budget.
        """
        with reading(self._engine) as connection:
            return cost_of_all(connection, find_grant(connection, grant))

    def charged_windows(self, grant: str, steps: range) -> tuple[Stretch, ...]:
        """Return what each window with one of these steps is charged, equal neighbours together.

        With aligned windows only those inside charged periods are listed: any other has the whole privacy
        budget.

        Args:
            grant: Name of the privacy budget.
            steps: Running indices.

        Returns:
            Stretches of windows by first step.

        Raises:
            LedgerError: There is no such privacy budget.
        """
        with reading(self._engine) as connection:
            return stretches(connection, find_grant(connection, grant), steps)

    def shared_window(self, grant: str, steps: range) -> SharedWindow:
        """Return the worst window that has one of some steps, and what each stream is charged in it.

        Args:
            grant: Name of the privacy budget.
            steps: Running indices, at least one.

        Returns:
            The window, by the privacy guarantee in force; the parts of the streams add up to what it lost.

        Raises:
            LedgerError: There is no such privacy budget.
        """
        with reading(self._engine) as connection:
            return shared_window(connection, find_grant(connection, grant), steps)

    def last_charged(self, grant: str) -> Stretch | None:
        """Return the last windows of a privacy budget that are charged anything: later ones have all of it.

        Args:
            grant: Name of the privacy budget.

        Returns:
            The windows; None where nothing was charged.

        Raises:
            LedgerError: There is no such privacy budget.
        """
        with reading(self._engine) as connection:
            return last_charged(connection, find_grant(connection, grant))

    def spent_over(self, grant: str, steps: range) -> Spent:
        """Return what all releases with one of these steps are charged, of all streams.

        Args:
            grant: Name of the privacy budget.
            steps: Running indices.

        Returns:
            The spends by the privacy guarantee in force, and what is needed to compose them over a long span.

        Raises:
            LedgerError: There is no such privacy budget.
        """
        with reading(self._engine) as connection:
            return spent_over(connection, find_grant(connection, grant), steps)

    def judge_plan(
        self, grant: str, plan: Sequence[Spend], amended: PrivacyModel | None = None
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
        with reading(self._engine) as connection:
            return losses_with(connection, find_grant(connection, grant), plan, amended=amended)

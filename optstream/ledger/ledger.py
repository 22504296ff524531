"""The ledger as the flow sees it: each method is one transaction, and takes the time as an argument."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from optstream.errors import LedgerError
from optstream.ledger.database.engine import open_engine, reading, time_of_database, writing
from optstream.ledger.reader import Reader
from optstream.ledger.records import Reservation, StreamTerms
from optstream.ledger.transactions import revisions, transitions
from optstream.ledger.transactions.enrol import amend, enrol
from optstream.ledger.transactions.reserve import Request, reserve
from optstream.ledger.transactions.revisions import Vintage
from optstream.privacy import Spend

Result = TypeVar("Result")


def open_ledger(url: str, *, busy_timeout_seconds: float = 30.0, database_time: bool = False) -> "Ledger":
    """Open the ledger at an SQLAlchemy URL, and make it if it is not there.

    SQLite: file 0600 and missing folders 0700, write-ahead log, every commit synced. PostgreSQL: any
    driver that SQLAlchemy knows. busy_timeout_seconds: how long SQLite waits for another writer.
    database_time: leases end by the clock of the PostgreSQL server, not by `now`, so that no machine's clock
    that runs ahead can hold a release; SQLite has no clock but the caller's.
    Raises LedgerError for a URL that cannot be used, a database that refuses, a schema that is newer.
    """
    return Ledger(open_engine(url, busy_timeout_seconds), database_time)


class Ledger(Reader):
    """Spends and releases. Made by `open_ledger`; threads and processes may share the database.

    Every method raises LedgerError when the database refuses or the state does not allow what was asked,
    and ParameterError for arguments that cannot be meant; then nothing was changed, unless the message says
    that the release is VOID. `now` is an instant with a time zone.
    """

    def __init__(self, engine: Engine, database_time: bool = False) -> None:
        super().__init__(engine)
        self._database_time = database_time

    def close(self) -> None:
        """Close the database's connections."""
        self._engine.dispose()

    def enrol(self, terms: StreamTerms, now: datetime) -> None:
        """Make the stream known, or check that it is known under these terms.

        Raises LedgerError naming what differs, if the stream has releases made under another privacy
        guarantee, or if it does not agree with the other streams of its privacy budget.
        """
        self._write(lambda connection: enrol(connection, terms, now))

    def amend(self, terms: StreamTerms, reason: str, now: datetime) -> None:
        """Change the privacy guarantee of a stream that has releases, and of all streams that share its
        privacy budget.

        Earlier spends stay as they are and are priced anew (Lemma 12, docs/privacy.md), so that windows are
        judged across the change; what was reserved and not drawn is planned again. reason: why, short. Raises
        LedgerError if nothing differs, and for another privacy budget or calendar, which nothing can change.
        """
        self._write(lambda connection: amend(connection, terms, reason, now))

    def reserve(
        self,
        stream: str,
        period: str,
        revision: int,
        spends: Sequence[Spend],
        owner: str,
        now: datetime,
        lease: timedelta,
        catalogue_heads: Iterable[str] = (),
        terms: StreamTerms | None = None,
        restatements_epsilon: Fraction | None = None,
        is_drawn: bool = False,
    ) -> Reservation:
        """Charge a release's plan to its privacy budget, and hold the release for `owner` until now + lease.

        spends: the worst outcome of the plan. owner: unique to the run. catalogue_heads: heads that
        the published catalogue carries; a ledger that lacks one was restored from an older copy. The newest
        stands for all of them (`head_after`). terms: what the plan was made under; refused if the stream's
        are others by now. is_drawn: the caller has the whole, durable measurements of the last owner's draw.
        A RESERVED release is taken over when its lease is over; if its owner died while drawing, this counts
        as a redraw, and the third makes it VOID; with `is_drawn` it does not count, and that draw is the one
        to be recorded. Later revisions need the earlier one PUBLISHED or VOID.

        Raises BudgetError (nothing inserted) if some window would lose more than the privacy budget;
        LedgerError if another run holds the release, if it is DRAWN (adopt it), PUBLISHED or VOID, or for a
        foreign head.
        """
        heads, plan = frozenset(catalogue_heads), tuple(spends)
        request = Request(
            stream, period, revision, plan, owner, now, lease, heads, terms, restatements_epsilon, is_drawn
        )
        outcome = self._write(
            lambda connection: reserve(connection, replace(request, now=self._time(connection, now)))
        )
        if isinstance(outcome, LedgerError):
            raise outcome
        return outcome

    def renew(self, reservation: Reservation, now: datetime, lease: timedelta) -> None:
        """Hold the release until now + lease; never shortens. Refused once another run has taken it over."""
        self._write(
            lambda connection: transitions.renew(connection, reservation, self._time(connection, now), lease)
        )

    def end_lease(self, reservation: Reservation, now: datetime) -> None:
        """End the owner's lease, so that the next run need not wait; nothing happens while a draw is open."""
        self._write(
            lambda connection: transitions.end_lease(connection, reservation, self._time(connection, now))
        )

    def release_lease(self, stream: str, period: str, revision: int, reason: str, now: datetime) -> None:
        """End the lease of a run that will not come back, and fence it off; a person's decision.

        What that run drew and did not record counts as a death, as if the lease had ended by itself.
        reason: short, without any value. Raises LedgerError for a release that is VOID.
        """
        key = (stream, period, revision)
        self._write(
            lambda connection: transitions.release_lease(connection, key, reason, self._time(connection, now))
        )

    def begin_draw(self, reservation: Reservation, now: datetime) -> None:
        """Record that the first noise sample is about to be drawn; only then may it be.

        Refused a second time, after the lease, and for a stale reservation; raises BudgetError where noise in
        its windows became known since.
        """
        self._write(
            lambda connection: transitions.begin_draw(connection, reservation, self._time(connection, now))
        )

    def call_off_draw(self, reservation: Reservation, now: datetime) -> None:
        """Take `begin_draw` back: the owner knows that no sample was drawn since, and none will be.

        Refused for a stale reservation: then it counts as a death.
        """
        self._write(
            lambda connection: transitions.call_off_draw(connection, reservation, self._time(connection, now))
        )

    def record_drawn(
        self, reservation: Reservation, measurements_hash: str, spends: Sequence[Spend], now: datetime
    ) -> None:
        """Record RESERVED -> DRAWN, once the measurements are durable; from now on the outcome's spends are
        charged.

        If they charge any window more than the plan did, the release is VOID, stays charged for its plan,
        and LedgerError is raised. Repeating the same call changes nothing.
        """
        outcome = tuple(spends)
        error = self._write(
            lambda connection: transitions.record_drawn(
                connection, reservation, measurements_hash, outcome, now
            )
        )
        if error is not None:
            raise error

    def adopt(
        self, stream: str, period: str, revision: int, owner: str, now: datetime, lease: timedelta
    ) -> Reservation:
        """Take up a DRAWN release whose lease is over or the owner's own; earlier reservations are stale."""
        key = (stream, period, revision)
        return self._write(
            lambda connection: transitions.adopt(connection, key, owner, self._time(connection, now), lease)
        )

    def record_staged(
        self,
        stream: str,
        period: str,
        revision: int,
        staged_hash: str,
        published_name: str,
        now: datetime,
        reservation: Reservation | None = None,
    ) -> None:
        """Record the bytes that a DRAWN release will be published as; only ever the same ones."""
        key = (stream, period, revision)
        self._write(
            lambda connection: transitions.record_staged(
                connection, key, staged_hash, published_name, now, reservation
            )
        )

    def record_published(
        self, stream: str, period: str, revision: int, now: datetime, reservation: Reservation | None = None
    ) -> None:
        """Record DRAWN -> PUBLISHED, once the catalogue lists it; repeating it changes nothing."""
        key = (stream, period, revision)
        self._write(lambda connection: transitions.record_published(connection, key, now, reservation))

    def revise(
        self, stream: str, period: str, revision: int, owner: str, now: datetime, lease: timedelta
    ) -> Reservation:
        """Hold a PUBLISHED release until now + lease, to give it a new estimate. Charges nothing.

        Earlier reservations are stale. Refused while another run holds it (HeldError), and for a release that
        is withdrawn, compromised or restated.
        """
        key = (stream, period, revision)
        return self._write(
            lambda connection: revisions.revise(connection, key, owner, self._time(connection, now), lease)
        )

    def record_vintage(self, reservation: Reservation, vintage: Vintage, now: datetime) -> None:
        """Record the bytes of a new estimate before the catalogue shows them. Repeating changes nothing.

        Its number must be above all others of the release; spends and measurements stay as they are.
        """
        self._write(lambda connection: revisions.record_vintage(connection, reservation, vintage, now))

    def record_vintage_published(self, reservation: Reservation, number: int, now: datetime) -> None:
        """Record that the catalogue lists a staged vintage, and release its lease."""
        self._write(lambda connection: revisions.vintage_published(connection, reservation, number, now))

    def void(
        self,
        stream: str,
        period: str,
        revision: int,
        reason: str,
        now: datetime,
        reservation: Reservation | None = None,
    ) -> None:
        """Give up a release that is RESERVED or DRAWN: it stays charged and is never drawn again.

        reason: short, without any value. Repeating it changes nothing; a PUBLISHED release is refused.
        """
        key = (stream, period, revision)
        self._write(lambda connection: transitions.void(connection, key, reason, now, reservation))

    def withdraw(self, stream: str, period: str, revision: int, reason: str, now: datetime) -> None:
        """Record that a PUBLISHED release leaves the catalogue; it stays charged. Repeating changes nothing.

        reason: short, without any value. A release that is not published is made VOID instead.
        """
        key = (stream, period, revision)
        self._write(lambda connection: transitions.withdraw(connection, key, reason, now))

    def compromise(self, stream: str, period: str, revision: int, reason: str, now: datetime) -> None:
        """Record that the noise of a release is known to others: its windows have lost everything.

        The accountant answers infinity for every window that the release charges; nothing more is reserved
        or drawn in them, and a release that is DRAWN is VOID. Nothing is refunded, and this is never taken
        back. Repeating it changes nothing.
        """
        key = (stream, period, revision)
        self._write(lambda connection: transitions.compromise(connection, key, reason, now))

    def lease_time(self, now: datetime) -> datetime:
        """Return the instant by which leases are over: the database's with `database_time`, else `now`."""
        with reading(self._engine) as connection:
            return self._time(connection, now)

    def _time(self, connection: Connection, now: datetime) -> datetime:
        """Return the instant by which leases end."""
        return (time_of_database(connection) if self._database_time else None) or now

    def _write(self, work: Callable[[Connection], Result]) -> Result:
        try:
            with writing(self._engine) as connection:
                return work(connection)
        except LedgerError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
        # two first enrolments met (PostgreSQL): the second try finds what the other inserted
        with writing(self._engine) as connection:
            return work(connection)

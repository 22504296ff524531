"""The ledger as the flow sees it: each method is one transaction, and takes the time as an argument."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from optstream.errors import LedgerError
from optstream.ledger.database.engine import lease_time, open_engine, reading, writing
from optstream.ledger.reader import Reader
from optstream.ledger.transactions import amend as amendment
from optstream.ledger.transactions import enrol as enrolment
from optstream.ledger.transactions import leases, revisions, transitions, withdrawals
from optstream.ledger.transactions import reserve as reservation

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def open_ledger(url: str, *, busy_timeout_seconds: float = 30.0, database_time: bool = False) -> "Ledger":
    """Open the ledger at an SQLAlchemy URL; make it, or upgrade its schema, where needed.

    SQLite: missing files are made with mode 0600 and missing folders with 0700; write-ahead log, every commit
    synced before it returns. PostgreSQL: any driver that SQLAlchemy knows, psycopg by default; a server that
    does not sync commits is told to for each transaction of the ledger.

    Args:
        url: Such as "sqlite:///trusted/ledger.sqlite" or "postgresql://host/database".
        busy_timeout_seconds: How long a transaction waits for another writer.
        database_time: Leases end by the clock of the PostgreSQL server, not by `now`, so that no machine
            whose clock runs ahead can hold a release. SQLite has no clock but the caller's.

    Returns:
        The ledger, open; close it with `close`.

    Raises:
        LedgerError: The URL cannot be used (it is not shown: it may hold a password), its driver is not
            installed, file or folder cannot be made, or the schema is newer than this version of OptStream
            knows.
        LedgerUnavailableError: The database does not answer, or refuses.
    """
    engine = open_engine(url, busy_timeout_seconds)
    engine.update_execution_options(ledger_clock=database_time)
    return Ledger(engine)


def transaction(
    work: Callable[Concatenate[Connection, Arguments], Result | LedgerError],
) -> Callable[Concatenate["Ledger", Arguments], Result]:
    """Return the method of `Ledger` that does `work` in a transaction of its own.

    What it raises undoes the transaction; a LedgerError that it returns is raised once the rest is durable.
    """

    @wraps(work)
    def method(self: "Ledger", /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        def attempt() -> Result | LedgerError:
            with writing(self._engine) as connection:
                return work(connection, *arguments, **named)

        try:
            outcome = attempt()
        except LedgerError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            # two first enrolments met (PostgreSQL): the second try finds what the other inserted
            outcome = attempt()
        if isinstance(outcome, LedgerError):
            raise outcome
        return outcome

    return method


class Ledger(Reader):
    """Spends and releases. Made by `open_ledger`; threads and processes may share the database.

    Each method is one transaction: when it returns, what it recorded is durable. After an error nothing was
    changed, unless the message says that the release is VOID, or the connection to PostgreSQL broke during
    the commit, which may then have been made. Every method raises LedgerUnavailableError, a LedgerError, when
    the database refuses or does not answer; the same may then be asked again. `now` is an instant with a time
    zone, and names, owners and reasons are printable text of 1 to 500 characters; else the method raises
    ParameterError. Methods that are only named here are the functions of `optstream.ledger.transactions`,
    without their first argument.
    """

    enrol = transaction(enrolment.enrol)
    amend = transaction(amendment.amend)
    reserve = transaction(reservation.reserve)

    renew = transaction(leases.renew)
    end_lease = transaction(leases.end_lease)
    release_lease = transaction(leases.release_lease)
    adopt = transaction(leases.adopt)

    begin_draw = transaction(transitions.begin_draw)
    call_off_draw = transaction(transitions.call_off_draw)
    record_drawn = transaction(transitions.record_drawn)
    record_staged = transaction(transitions.record_staged)
    record_published = transaction(transitions.record_published)
    void = transaction(withdrawals.void)
    withdraw = transaction(withdrawals.withdraw)
    compromise = transaction(withdrawals.compromise)

    revise = transaction(revisions.revise)
    record_vintage = transaction(revisions.record_vintage)
    record_vintage_published = transaction(revisions.record_vintage_published)

    def lease_time(self, now: datetime) -> datetime:
        """Return the instant by which leases are over.

        Args:
            now: The caller's time.

        Returns:
            The time of the database server, where the ledger was opened with `database_time`; else `now`.
        """
        with reading(self._engine) as connection:
            return lease_time(connection, now)

    def close(self) -> None:
        """Close the database's connections."""
        self._engine.dispose()

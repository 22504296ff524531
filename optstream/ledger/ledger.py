"""The ledger as the flow sees it: each method is one transaction, and takes the time as an argument."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import IntegrityError

from optstream.errors import LedgerError
from optstream.ledger import accounting as beside_plans
from optstream.ledger import accounting as by_stream
from optstream.ledger import accounting as headroom
from optstream.ledger import accounting as history
from optstream.ledger import accounting as long_span
from optstream.ledger import hash_chain, transitions
from optstream.ledger import queries as export
from optstream.ledger import queries as release_reader
from optstream.ledger import queries as stream_reader
from optstream.ledger import reserve as reservation
from optstream.ledger import terms as amendment
from optstream.ledger import terms as enrolment
from optstream.ledger import transitions as leases
from optstream.ledger import transitions as revisions
from optstream.ledger import transitions as withdrawals
from optstream.ledger.database import lease_time, open_engine, reading, writing
from optstream.ledger.verify import verify

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def open_ledger(
    url: str | URL, *, busy_timeout_seconds: float = 30.0, database_time: bool = False
) -> "Ledger":
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


def question(
    work: Callable[Concatenate[Connection, Arguments], Result],
) -> Callable[Concatenate["Ledger", Arguments], Result]:
    """Return the method of `Ledger` that does `work`, which changes nothing, on the ledger of one moment."""

    @wraps(work)
    def method(self: "Ledger", /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with reading(self._engine) as connection:
            return work(connection, *arguments, **named)

    return method


def series(
    work: Callable[Concatenate[Connection, Arguments], Iterator[Result]],
) -> Callable[Concatenate["Ledger", Arguments], Iterator[Result]]:
    """Return the method as `question` does, for `work` that yields; it is over when the last was taken."""

    @wraps(work)
    def method(self: "Ledger", /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Iterator[Result]:
        with reading(self._engine) as connection:
            yield from work(connection, *arguments, **named)

    return method


class Ledger:
    """Spends and releases. Made by `open_ledger`; threads and processes may share the database.

    Each method is one transaction: when it returns, what it recorded is durable, and what it read is of one
    moment. After an error nothing was changed, unless the message says that the release is VOID, or the
    connection to PostgreSQL broke during the commit, which may then have been made. Every method raises
    LedgerUnavailableError, a LedgerError, when the database refuses or does not answer; the same may then be
    asked again. `now` is an instant with a time zone, and names, owners and reasons are printable text of 1
    to 500 characters; else the method raises ParameterError. Methods that are only named here are functions
    of the modules beside, without their first argument.

    Args:
        engine: As `open_ledger` opens it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

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

    refuse_amendment = question(amendment.refuse_amendment)
    terms = question(stream_reader.terms)
    siblings = question(stream_reader.siblings)
    streams = question(stream_reader.streams)
    documents = question(stream_reader.documents)
    trees = question(stream_reader.trees)
    guarantee_number = question(stream_reader.guarantee_number)
    guarantees = question(stream_reader.guarantees)
    head = question(stream_reader.head)
    head_after = question(stream_reader.head_after)
    heads = question(stream_reader.heads)
    missing_heads = question(hash_chain.missing_heads)
    last_event_at = question(stream_reader.last_event_at)

    find = question(release_reader.find)
    releases = question(release_reader.releases)
    latest = question(release_reader.latest)
    drawn_before = question(release_reader.drawn_before)
    vintages = question(revisions.vintages)
    vintages_of = question(release_reader.vintages_of)
    outlines = series(release_reader.outlines)
    last_release = question(release_reader.last_release)
    has_known_noise = question(release_reader.has_known_noise)
    known_noise = question(release_reader.known_noise)
    count_by_state = question(release_reader.count_by_state)
    event_times = question(release_reader.event_times)
    last_shown = question(release_reader.last_shown)
    events_of = question(release_reader.events_of)

    window_spent = question(beside_plans.window_spent)
    charged_near = question(beside_plans.charged_near)
    judge_plan = question(beside_plans.judge_plan)
    worst = question(history.worst)
    charged_windows = question(headroom.charged_windows)
    last_charged = question(headroom.last_charged)
    shared_window = question(by_stream.shared_window)
    spent_over = question(long_span.spent_over)

    batches = series(export.batches)
    lease_time = question(lease_time)

    def verify(self) -> list[str]:
        """Return every edit, gap and reordering that hash chain and replay of the events show.

        Compare the catalogue's heads as well (`missing_heads`): a chain that was cut at its end is whole in
        itself, and a stream of which every row was deleted is missed by nobody here. Not seen are a renewed
        lease, the number of a row, and a change that leaves the meaning, as a space in a stream's terms.

        Returns:
            A line in words for each problem; empty where the ledger is whole.
        """
        return verify(self._engine)

    def close(self) -> None:
        """Close the database's connections."""
        self._engine.dispose()

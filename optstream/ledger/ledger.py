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
    synced. PostgreSQL: any driver of SQLAlchemy, psycopg by default; commits are synced whatever the server's
    setting.

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
    """Return the method of `Ledger` that does `work` in a transaction; an error that it returns is raised
    after.
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
    connection to PostgreSQL broke during the commit, which may then have been made. The methods are functions
    of this package, without their first argument. Their common arguments and errors:

    - `stream`, `period` and `revision` name a release: a stream, the key of a period such as "2016-02-01",
      and 0 for the first release of the period, from 1 on for restatements.
    - `now`: the caller's time, with a time zone. `lease`: greater than 0, a day at most.
    - `owner`: a name unique to the run. `reason`: text without any value. Names, owners and reasons are
      printable, of 1 to 500 characters.
    - `reservation`: the newest one of its release; where it may be None, the caller is not checked.
    - ParameterError: an argument is outside its range.
    - LedgerError: the release is not in the ledger, or the reservation is not the newest.
    - LedgerUnavailableError, a LedgerError: the database refuses or does not answer; try again later.

    Args:
        engine: Of `open_ledger`.
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
        """Return a line for each edit, gap and reordering that hash chain and replay of the events show.

        Compare the catalogue's heads as well (`missing_heads`): a chain cut at its end is whole in itself,
        and a stream of which every row was deleted leaves no trace here. Not seen are a renewed lease, the
        number of a row, and a change that keeps the meaning, such as a space in a stream's terms.
        """
        return verify(self._engine)

    def close(self) -> None:
        """Close the database's connections."""
        self._engine.dispose()

"""The ledger as the flow sees it: each method is one transaction, and takes the time as an argument."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import IntegrityError

from optstream.errors import LedgerError
from optstream.ledger import accounting, hash_chain, lifecycle, queries
from optstream.ledger.database import lease_time, open_engine, reading, writing
from optstream.ledger.terms import amend, enrol, refuse_amendment
from optstream.ledger.verify import verify

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def open_ledger(
    url: str | URL, *, busy_timeout_seconds: float = 30.0, database_time: bool = False
) -> "Ledger":
    """Open the ledger at an SQLAlchemy URL; make it, or upgrade its schema, where needed.

    SQLite: missing files are made with mode 0600 and missing folders with 0700; write-ahead log, every commit
    synced. PostgreSQL: commits are synced whatever the server's setting, and with `database_time` leases end
    by the server's clock, so that no machine whose clock runs ahead can hold a release. Raises LedgerError,
    which does not show the URL, for it may hold a password.
    """
    engine = open_engine(url, busy_timeout_seconds)
    engine.update_execution_options(ledger_clock=database_time)
    return Ledger(engine)


def transaction(
    work: Callable[Concatenate[Connection, Arguments], Result | LedgerError],
) -> Callable[Concatenate["Ledger", Arguments], Result]:
    """Return the method that does `work` in a transaction, and raises the error that it returns, if any."""

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
            # two first enrolments met (PostgreSQL): the second try finds the other's row
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

    Each method is one transaction: when it returns, its records are durable, and its reads are of one
    moment; recording twice changes nothing. After an error nothing was changed, unless the message says that
    the release is VOID, or the connection to PostgreSQL broke during the commit, which may then have been
    made. The methods are functions of this package, without their first argument. They share:

    - `now`: the caller's time, with a time zone. `lease`: greater than 0, a day at most.
    - `owner`: a name unique to the run. `reason`: text without any value.
    - `reservation`: the newest one of its release; where it may be None, the caller is not checked.
    - ParameterError: an argument is outside its range.
    - LedgerError: release or privacy budget are not in the ledger, the release is not in a state that the
      method takes, or the reservation is not the newest. LedgerUnavailableError: try again later.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    enrol = transaction(enrol)
    amend = transaction(amend)
    reserve = transaction(lifecycle.reserve)

    renew = transaction(lifecycle.renew)
    end_lease = transaction(lifecycle.end_lease)
    release_lease = transaction(lifecycle.release_lease)
    adopt = transaction(lifecycle.adopt)

    begin_draw = transaction(lifecycle.begin_draw)
    call_off_draw = transaction(lifecycle.call_off_draw)
    record_drawn = transaction(lifecycle.record_drawn)
    record_staged = transaction(lifecycle.record_staged)
    record_published = transaction(lifecycle.record_published)
    void = transaction(lifecycle.void)
    withdraw = transaction(lifecycle.withdraw)
    compromise = transaction(lifecycle.compromise)

    revise = transaction(lifecycle.revise)
    record_vintage = transaction(lifecycle.record_vintage)
    record_vintage_published = transaction(lifecycle.record_vintage_published)

    refuse_amendment = question(refuse_amendment)
    terms = question(queries.terms)
    siblings = question(queries.siblings)
    streams = question(queries.streams)
    documents = question(queries.documents)
    trees = question(queries.trees)
    guarantee_number = question(queries.guarantee_number)
    guarantees = question(queries.guarantees)
    head = question(queries.head)
    heads = question(queries.heads)
    missing_heads = question(hash_chain.missing_heads)
    last_event_at = question(queries.last_event_at)

    find = question(queries.find)
    releases = question(queries.releases)
    latest = question(queries.latest)
    drawn_before = question(queries.drawn_before)
    vintages = question(lifecycle.vintages)
    vintages_of = question(queries.vintages_of)
    outlines = series(queries.outlines)
    last_release = question(queries.last_release)
    known_noise = question(queries.known_noise)
    count_by_state = question(queries.count_by_state)
    event_times = question(queries.event_times)
    last_shown = question(queries.last_shown)
    events_of = question(queries.events_of)

    window_spent = question(accounting.window_spent)
    charged_near = question(accounting.charged_near)
    judge_plan = question(accounting.judge_plan)
    worst = question(accounting.worst)
    charged_windows = question(accounting.charged_windows)
    last_charged = question(accounting.last_charged)
    shared_window = question(accounting.shared_window)
    spent_over = question(accounting.spent_over)

    batches = series(queries.batches)
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

"""Checking a large ledger in several processes, each of which reads a share of the streams.

What a stream says of itself (its chain, its releases, its spends) is judged within one process. A price is
not: a window adds up the spends of all streams of a privacy budget, so all processes must see the ledger of
one moment, or a settlement between two of them could show an overspend that never was. On PostgreSQL they
read one exported snapshot. SQLite exports none, but it has one writer at a time, whose every change of what
is compared appends an event: the processes open their snapshots, name the last event that they see, and begin
once all name the same.

Processes are spawned, not forked: each opens what it reads. If one cannot be had, or ends early, the ledger
is checked from the beginning by the process that asked.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection as End
from sqlite3 import OperationalError
from typing import NamedTuple

from sqlalchemy import URL, Connection, Engine, select

from optstream.errors import LedgerError
from optstream.ledger.database.engine import open_engine, reading
from optstream.ledger.database.rows import any_text, is_undecodable, read_rows
from optstream.ledger.database.schema import EventRow, GrantRow, StreamRow
from optstream.ledger.verification.releases import Account
from optstream.ledger.verification.verify import grant_problems, problems, stray_problems, stream_problems

WORTH_A_PROCESS = 100_000
"""Events; fewer are read in less time than a process takes to start."""

TRIES = 100
"""How often snapshots are opened until all are of one moment; each takes milliseconds."""

PATIENCE_SECONDS = 30.0


class Part(NamedTuple):
    """Streams of a privacy budget that one process reads; if they are all of it, it prices that as well."""

    grant_id: int
    stream_ids: tuple[int, ...]
    whole: bool


Position = tuple[str, bool, str]
"""Where a finding stands in the report: privacy budget, after its streams or among them, stream."""


class Finding(NamedTuple):
    """What was found of a stream or a privacy budget."""

    place: Position
    said: list[str]


Report = tuple[list[Finding], dict[int, Account]]
"""Findings, and of every privacy budget what was read of it."""


def problems_by_processes(engine: Engine, n_processes: int) -> list[str]:
    """Return what `problems` does, the streams shared out; by this process alone if the ledger is small, or
    SQLite keeps text in it that is none.
    """
    try:
        return _problems(engine, n_processes)
    except (OperationalError, LedgerError) as error:
        if not is_undecodable(error):
            raise
    # slower, so only where it is needed
    with reading(engine) as connection, any_text(connection):
        return list(problems(connection))


def _problems(engine: Engine, n_processes: int) -> list[str]:
    with reading(engine) as connection:
        n_events = sum(_size(row) for row in connection.execute(select(StreamRow.n_events)).scalars())
    n_processes = min(n_processes, n_events // WORTH_A_PROCESS)
    if n_processes > 1:
        try:
            with _spawned(engine, n_processes) as ends:
                found = _together(engine, ends)
            if found is not None:
                return found
        except (EOFError, OSError):
            pass
    with reading(engine) as connection:
        return list(problems(connection))


def _size(n_events: object) -> int:
    """Return how many events a stream's row says that it has. SQLite keeps text among numbers."""
    return n_events if isinstance(n_events, int) else 0


def _together(engine: Engine, ends: Sequence[End]) -> list[str] | None:
    """Return what the processes find; None if writers never left them the same moment."""
    for _ in range(TRIES):
        with reading(engine) as connection:
            exported = None
            if engine.dialect.name == "postgresql":
                exported = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
            _tell(ends, [exported] * len(ends))
            own = _moment(connection)
            if [end.recv() for end in ends] == [own] * len(ends):
                _tell(ends, _shares(connection, len(ends)))
                return _joined(connection, [end.recv() for end in ends])
            _tell(ends, [None] * len(ends))
    return None


def _tell(ends: Sequence[End], words: Sequence[object]) -> None:
    for end, word in zip(ends, words, strict=True):
        end.send(word)


def _serve(url: URL, end: End) -> None:
    """A process's life: open snapshots until told to read, then read and report."""
    # what is in cycles may wait for its end: to look for it among millions of rows takes 2 % of the time
    gc.disable()
    engine = open_engine(url, PATIENCE_SECONDS)
    share = None
    while share is None:
        exported = end.recv()
        with reading(engine) as connection:
            if exported is not None:
                connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{exported}'")
            end.send(_moment(connection))
            share = end.recv()
            if share is not None:
                with suppress(OperationalError, LedgerError):
                    # else it ends without an answer, and is asked no more: whoever reads it next raises
                    end.send(_read(connection, share))
    engine.dispose()


@contextmanager
def _spawned(engine: Engine, n_processes: int) -> Iterator[list[End]]:
    context, url = get_context("spawn"), engine.url
    ends, processes = [], []
    try:
        for _ in range(n_processes):
            end, theirs = Pipe()
            ends.append(end)
            process = context.Process(target=_serve, args=(url, theirs), daemon=True)
            process.start()
            processes.append(process)
            # else its death would not be heard here
            theirs.close()
        yield ends
    finally:
        for end in ends:
            end.close()
        for process in processes:
            process.terminate()
            process.join()


def _moment(connection: Connection) -> tuple[int, str] | None:
    """Return the last event that a snapshot sees."""
    last = select(EventRow.id, EventRow.hash).order_by(EventRow.id.desc()).limit(1)
    row = connection.execute(last).one_or_none()
    return None if row is None else (row.id, row.hash)


def _shares(connection: Connection, n_shares: int) -> list[list[Part]]:
    """Return the streams, dealt out so that all shares read about as many events; only large privacy budgets
    are divided.
    """
    found = read_rows(connection, select(StreamRow).where(StreamRow.grant_id.in_(select(GrantRow.id))))
    by_grant: dict[int, list[StreamRow]] = {}
    for row in found:
        by_grant.setdefault(row.grant_id, []).append(row)
    small = sum(_size(row.n_events) for row in found) / (2 * n_shares)
    parts: list[tuple[int, Part]] = []
    for grant_id, members in by_grant.items():
        n_events = sum(_size(row.n_events) for row in members)
        if n_events <= small or len(members) == 1:
            parts.append((n_events, Part(grant_id, tuple(row.id for row in members), True)))
        else:
            parts.extend((_size(row.n_events), Part(grant_id, (row.id,), False)) for row in members)
    loads, shares = [0] * n_shares, [list[Part]() for _ in range(n_shares)]
    for n_events, part in sorted(parts, reverse=True):
        least = loads.index(min(loads))
        loads[least] += n_events
        shares[least].append(part)
    return shares


def _read(connection: Connection, share: Sequence[Part]) -> Report:
    findings: list[Finding] = []
    accounts: dict[int, Account] = {}
    for part in share:
        (grant,) = read_rows(connection, select(GrantRow).where(GrantRow.id == part.grant_id))
        account = accounts.setdefault(part.grant_id, Account())
        members = select(StreamRow).where(StreamRow.id.in_(part.stream_ids))
        for stream in read_rows(connection, members):
            said = list(stream_problems(connection, stream, account))
            findings.append(Finding((grant.name, False, stream.name), said))
        if part.whole:
            findings.append(_priced(connection, grant, account))
            accounts[part.grant_id] = Account(n_spends=account.n_spends, priced=True)
    return findings, accounts


def _priced(connection: Connection, grant: GrantRow, account: Account) -> Finding:
    return Finding((grant.name, True, ""), list(grant_problems(connection, grant, account)))


def _joined(connection: Connection, reports: Sequence[Report]) -> list[str]:
    findings = [finding for found, _ in reports for finding in found]
    n_spends = sum(account.n_spends for _, accounts in reports for account in accounts.values())
    for grant in read_rows(connection, select(GrantRow)):
        account = Account()
        for _, accounts in reports:
            if grant.id in accounts:
                account.include(accounts[grant.id])
        if not account.priced:
            findings.append(_priced(connection, grant, account))
    said = [text for finding in sorted(findings) for text in finding.said]
    return [*said, *stray_problems(connection, n_spends)]

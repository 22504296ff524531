"""Connections that are lost or refused, and engines: one file has one name."""

import os
import shutil
import sqlite3
import stat
from pathlib import Path
from traceback import format_exception

import pytest
from psycopg import ServerCursor
from sqlalchemy import Engine, event

from optstream.errors import LedgerError
from optstream.ledger import Key, Ledger, open_ledger
from optstream.ledger import database as connections
from optstream.ledger import database as engine
from optstream.ledger.ledger import transaction

ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
ONLY_POSTGRESQL = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


@pytest.fixture
def opened():
    """How many connections were opened meanwhile, as a list that grows."""
    found = []

    def note(*_):
        found.append(os.getpid())

    event.listen(Engine, "connect", note)
    yield found
    event.remove(Engine, "connect", note)


def files_of(url):
    """A ledger's file on SQLite, and its write-ahead log."""
    file = Path(url.removeprefix("sqlite:///"))
    return file, file.with_name(f"{file.name}-wal")


def remove_log(log):
    """With the index that goes with it."""
    log.unlink()
    log.with_name(log.name.replace("-wal", "-shm")).unlink()


def reserve_in(ledger, kit, number):
    """Reserve a day of its own."""
    plan = kit.plan(4 * number, "1/8")
    return ledger.reserve(Key("load", f"day {number}"), plan, "night", kit.now, kit.lease)


def test_a_year_of_transactions_uses_one_connection(ledger, publish, kit, opened):
    for number in range(5):
        publish(f"day {number}", kit.plan(4 * number, "1/8"))
        assert ledger.find(Key("load", f"day {number}"))
    assert opened == []


def test_close_closes_everything(ledger, url, publish, postgresql_cluster):
    publish()
    if url.startswith("sqlite"):
        file, log = files_of(url)
        assert log.exists()
        ledger.close()
        assert file.exists()
        assert not log.exists()  # the last to close copies it back
    else:
        engine = ledger._engine
        assert engine.pool.checkedin() == 1
        ledger.close()
        assert engine.pool.checkedin() == 0
    assert not connections._opened[ledger._engine]
    assert ledger.verify() == []  # and may be used again


@ONLY_SQLITE
def test_an_older_file_put_in_its_place_is_seen(ledger, url, publish, kit, tmp_path):
    publish("day 0", kit.plan(0, "1/8"))
    (file, log), older = files_of(url), tmp_path / "older.sqlite"
    ledger.close()
    shutil.copyfile(file, older)
    publish("day 1", kit.plan(4, "1/8"))
    remove_log(log)
    older.replace(file)
    assert ledger.find(Key("load", "day 1")) is None
    assert ledger.verify() == []
    reserve_in(ledger, kit, 2)
    other = open_ledger(url)
    assert [record.period for record in other.releases("load")] == ["day 0", "day 2"]


@ONLY_SQLITE
def test_a_deleted_file_is_seen_and_none_made(ledger, url, publish, kit):
    publish()
    file, _ = files_of(url)
    away = file.rename(file.with_name("away"))
    for _ in range(2):
        with pytest.raises(LedgerError, match="its file is gone"):
            ledger.find(Key("load", "day 0"))
    assert not file.exists()
    away.rename(file)
    assert ledger.find(Key("load", "day 0"))


CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"
)


@ONLY_POSTGRESQL
def test_a_connection_that_died_meanwhile_is_replaced(ledger, kit, postgresql_cluster, opened):
    reserve_in(ledger, kit, 0)
    postgresql_cluster.run_sql(CUT)
    reserve_in(ledger, kit, 1)
    assert len(opened) == 1
    assert len(ledger.releases("load")) == 2


@ONLY_POSTGRESQL
def test_what_dies_after_its_last_row_is_told_once(ledger, kit, postgresql_cluster, monkeypatch, caplog):
    """As an error in one sentence, and not before it as a traceback in the library's log."""
    reserve_in(ledger, kit, 0)
    close = ServerCursor.close

    def cut(cursor):
        postgresql_cluster.run_sql(CUT)
        close(cursor)

    monkeypatch.setattr(ServerCursor, "close", cut)
    with pytest.raises(LedgerError, match="nothing of this was confirmed"):
        list(ledger.outlines("load"))
    assert caplog.records == []


@ONLY_POSTGRESQL
def test_what_dies_in_a_transaction_is_not_repeated(ledger, kit, postgresql_cluster, monkeypatch):
    """Whether it was committed is not known, so it is the caller who asks again."""
    calls = []

    def enrol_and_die(connection, terms, now):
        calls.append(terms)
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(Ledger, "enrol", transaction(enrol_and_die))
    with pytest.raises(LedgerError, match="nothing of this was confirmed"):
        ledger.enrol(kit.terms("another"), kit.now)
    assert len(calls) == 1
    monkeypatch.undo()
    ledger.enrol(kit.terms("another"), kit.now)
    assert ledger.terms("another")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_file_and_folders_are_private(tmp_path, kit):
    ledger = open_ledger(f"sqlite:///{tmp_path}/outer/inner/ledger.sqlite")
    ledger.enrol(kit.terms(), kit.now)
    assert mode(tmp_path / "outer") == 0o700
    assert mode(tmp_path / "outer" / "inner") == 0o700
    # a reader keeps the write-ahead log alive so that its mode can be seen
    reader = sqlite3.connect(tmp_path / "outer" / "inner" / "ledger.sqlite")
    reader.execute("SELECT * FROM events").fetchall()
    files = sorted((tmp_path / "outer" / "inner").iterdir())
    assert len(files) == 3
    assert {mode(file) for file in files} == {0o600}
    reader.close()


def test_commits_are_synced_and_writers_exclude_each_other(sqlite_url, kit):
    url, ledger = sqlite_url, open_ledger(sqlite_url)
    with engine.writing(engine.open_engine(url, 30)) as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
        assert pragmas == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30000, "foreign_keys": 1}
        # the lock is held before the first write
        other = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        assert ledger.verify() == []  # readers do not wait


def test_a_file_with_two_names_is_refused(sqlite_url, kit, tmp_path):
    """Each name has a write-ahead log of its own: two streams of a budget took all of its epsilon each, and
    one of them was forgotten.
    """
    first = open_ledger(sqlite_url)
    first.enrol(kit.terms(), kit.now)
    first.close()
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "ledger.sqlite").hardlink_to(sqlite_url.removeprefix("sqlite:///"))
    for url in (sqlite_url, f"sqlite:///{tmp_path}/second/ledger.sqlite"):
        with pytest.raises(LedgerError, match="must have one name"):
            open_ledger(url)
    (tmp_path / "second" / "ledger.sqlite").unlink()
    assert open_ledger(sqlite_url).terms(kit.terms().stream) == kit.terms()


HOLD = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "LOCK TABLE streams"}


def test_a_locked_ledger_says_so_and_records_nothing(url, ledger, kit, round_the_library):
    impatient = open_ledger(url, busy_timeout_seconds=0.01)
    with round_the_library() as holder:
        holder.exec_driver_sql(HOLD[holder.dialect.name])
        with pytest.raises(LedgerError, match=r"locked|LockNotAvailable"):
            impatient.enrol(kit.terms("another"), kit.now)
    assert ledger.terms("another") is None


@pytest.mark.parametrize(
    ("told", "kept"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")]
)
def test_a_server_that_confirms_too_early_is_told_to_wait(postgresql_cluster, told, kept):
    opened = engine.open_engine(postgresql_cluster.new_url(f"synchronous_commit={told}"), 30)
    with engine.writing(opened) as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == kept


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://user:secret@host/base",
        "no such thing: secret",
        "nothing://user:secret@host/base",
        "postgresql+nodriver://user:secret@host/base",
        "postgresql://user:secret",
        "postgresql://user@host:secret/ledger",
    ],
)
def test_an_unusable_url_is_refused_and_not_echoed(url):
    with pytest.raises(LedgerError) as refusal:
        open_ledger(url)
    assert "secret" not in "".join(format_exception(refusal.value))

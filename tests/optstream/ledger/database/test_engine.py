"""Files, pragmas, versions and databases that say no."""

import sqlite3
import stat
from traceback import format_exception

import pytest

from optstream.errors import LedgerError
from optstream.ledger import database as engine
from optstream.ledger import open_ledger


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

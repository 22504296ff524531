"""A forked child refuses a file that was open; a process that ends leaves one whole file."""

import os
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from optstream.errors import LedgerError
from optstream.ledger import Key, StreamTerms, open_ledger
from optstream.ledger.database import writing
from optstream.ledger.lifecycle import reserve
from optstream.privacy import PrivacyModel, StepSpend

NOW, LEASE = datetime(2026, 3, 1, 2, tzinfo=UTC), timedelta(minutes=10)
TERMS = StreamTerms("load", "people", PrivacyModel("1", 4, "1", "1"), "tree", "30 min")


def request(day):
    plan = (StepSpend(0, "samples", 4 * day, (1,) * 4, Fraction(4), 1),)
    return Key("load", f"day {day}"), plan, "night", NOW, LEASE


@pytest.fixture
def book(sqlite_url):
    opened = open_ledger(sqlite_url, busy_timeout_seconds=2)
    opened.enrol(TERMS, NOW)
    opened.reserve(*request(0))
    yield opened
    opened.close()


def forked(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001
            print(repr(error)[:300])
        os._exit(code)
    return child


def forked_from_one_that_ends(book, work):
    """Whether `work` went through in a child whose parent closes its ledger while the child pauses in it."""
    there, told = os.pipe(), os.pipe()

    def pause():
        os.write(there[1], b"x")
        os.read(told[0], 1)

    pid = forked(lambda: work(pause))
    os.read(there[0], 1)
    book.close()
    os.write(told[1], b"x")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.slow
def test_a_childs_commit_survives_the_parents_close(book, sqlite_url):
    """The reservation is committed without an error, and is in no file: its windows look untouched."""

    def child(pause):
        with writing(book._engine) as connection:
            reserve(connection, *request(1))
            pause()

    committed = forked_from_one_that_ends(book, child)
    after = open_ledger(sqlite_url)
    kept = after.find(Key("load", "day 1")) is not None
    after.close()
    assert kept == committed


def test_a_child_of_a_fork_in_anothers_transaction_is_refused(book, sqlite_url):
    """What that thread had open cannot be closed for the child; the parent's transaction goes on."""
    inside, go = threading.Event(), threading.Event()

    def hold():
        with writing(book._engine) as connection:
            reserve(connection, *request(1))
            inside.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()

    def child():
        for opened in (lambda: book, lambda: open_ledger(sqlite_url)):
            with pytest.raises(LedgerError, match="forked while another thread used the ledger"):
                opened().find(Key("load", "day 0"))

    pid = forked(child)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    go.set()
    thread.join()
    assert book.find(Key("load", "day 1")) is not None
    assert book.verify() == []


def test_a_childs_open_ledger_keeps_its_log(book, sqlite_url):
    """With an open connection in the child, nobody else may take the log away."""

    def child(pause):
        book.reserve(*request(1))
        pause()
        book.reserve(*request(2))

    assert forked_from_one_that_ends(book, child)


def test_a_child_that_only_opens_a_ledger_of_its_own_has_locks(book, sqlite_url):
    """Not even a ledger opened afresh in the child is safe: it is the inode that SQLite remembers."""

    def child(pause):
        own = open_ledger(sqlite_url)
        with writing(own._engine) as connection:
            reserve(connection, *request(1))
            pause()

    committed = forked_from_one_that_ends(book, child)
    path = sqlite_url.removeprefix("sqlite:///")
    rows = sqlite3.connect(path).execute("SELECT count(*) FROM releases").fetchone()[0]
    assert rows == 1 + committed


WRITTEN_OVER_THEN_END = """
import sys
from datetime import UTC, datetime
from pathlib import Path

from optstream.errors import LedgerError
from optstream.ledger import Key, StreamTerms, open_ledger
from optstream.privacy import PrivacyModel

file = Path(sys.argv[1])
ledger = open_ledger(f"sqlite:///{file}")
backup = file.read_bytes()
terms = StreamTerms("load", "people", PrivacyModel("1", 4, "1", "1"), "tree", "30 min")
ledger.enrol(terms, datetime(2026, 3, 1, tzinfo=UTC))
for end in ("-wal", "-shm"):
    file.with_name(file.name + end).unlink()
file.write_bytes(backup)
file.with_name("backup").write_bytes(backup)
try:
    ledger.find(Key("load", "day 0"))
except LedgerError as error:
    assert "written over" in str(error)
else:
    raise AssertionError
"""


@pytest.mark.slow
def test_a_program_that_ends_writes_nothing_into_a_file_that_was_written_over(tmp_path):
    """SQLite copies the log that it holds into the file when a connection is closed, at the end as well."""
    file = tmp_path / "ledger.db"
    subprocess.run([sys.executable, "-c", WRITTEN_OVER_THEN_END, str(file)], check=True, timeout=120)
    assert file.read_bytes() == (tmp_path / "backup").read_bytes()

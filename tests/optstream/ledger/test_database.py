"""Connections that are lost, refused or forked, files with one name, and migrations of every old database."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from traceback import format_exception

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg import ServerCursor
from sqlalchemy import event, inspect, text

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import Key, Ledger, ReleaseState, database, migrations, open_ledger
from optstream.ledger.database import writing
from optstream.ledger.ledger import transaction
from optstream.ledger.lifecycle import reserve as reserve_within
from optstream.ledger.schema import GUARANTEE_COLUMNS, SCHEMA, metadata
from tests.optstream.ledger.conftest import insert_rows

ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
ONLY_POSTGRESQL = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    return request.getfixturevalue(f"{request.param}_url")


def files_of(url):
    file = Path(url.removeprefix("sqlite:///"))
    return file, file.with_name(f"{file.name}-wal")


def request_of(kit, number):
    return Key("load", f"day {number}"), kit.plan(4 * number, "1/8"), "night", kit.now, kit.lease


@ONLY_SQLITE
def test_an_older_file_put_in_its_place_is_seen(ledger, url, publish, kit, tmp_path):
    publish("day 0", kit.plan(0, "1/8"))
    (file, log), older = files_of(url), tmp_path / "older.sqlite"
    ledger.close()
    shutil.copyfile(file, older)
    publish("day 1", kit.plan(4, "1/8"))
    log.unlink()
    log.with_name(log.name.replace("-wal", "-shm")).unlink()
    older.replace(file)
    assert ledger.find(Key("load", "day 1")) is None
    assert ledger.verify() == []
    ledger.reserve(*request_of(kit, 2))
    assert [record.period for record in open_ledger(url).releases("load")] == ["day 0", "day 2"]


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


def test_transactions_use_one_connection_until_it_dies(request, ledger, url, publish, kit):
    opened = []
    event.listen(ledger._engine, "connect", lambda connection, _: opened.append(connection))
    for number in range(5):
        publish(f"day {number}", kit.plan(4 * number, "1/8"))
        assert ledger.find(Key("load", f"day {number}"))
    assert opened == []
    if url.startswith("postgresql"):
        request.getfixturevalue("postgresql_cluster").run_sql(CUT)
        ledger.reserve(*request_of(kit, 5))
        assert len(opened) == 1
        assert len(ledger.releases("load")) == 6


@ONLY_POSTGRESQL
def test_what_dies_after_its_last_row_is_reported_once(ledger, kit, postgresql_cluster, monkeypatch, caplog):
    """As an error in one sentence, and not before it as a traceback in the library's log."""
    ledger.reserve(*request_of(kit, 0))
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
    open_ledger(f"sqlite:///{tmp_path}/outer/inner/ledger.sqlite").enrol(kit.terms(), kit.now)
    assert mode(tmp_path / "outer") == 0o700
    assert mode(tmp_path / "outer" / "inner") == 0o700
    # a reader keeps the write-ahead log alive so that its mode can be seen
    reader = sqlite3.connect(tmp_path / "outer" / "inner" / "ledger.sqlite")
    reader.execute("SELECT * FROM events").fetchall()
    files = sorted((tmp_path / "outer" / "inner").iterdir())
    assert len(files) == 3
    assert {mode(file) for file in files} == {0o600}
    reader.close()


@ONLY_SQLITE
def test_commits_are_synced_and_writers_exclude_each_other(ledger, url):
    with database.writing(database.open_engine(url, 30)) as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
        assert pragmas == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30000, "foreign_keys": 1}
        # the lock is held before the first write
        other = sqlite3.connect(files_of(url)[0], timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        assert ledger.verify() == []  # readers do not wait


@ONLY_SQLITE
def test_a_file_with_two_names_is_refused(ledger, url, kit, tmp_path):
    """Each name has a write-ahead log: two streams took all of a budget each, and one was forgotten."""
    second = tmp_path / "second.sqlite"
    second.hardlink_to(files_of(url)[0])
    for name in (url, f"sqlite:///{second}"):
        with pytest.raises(LedgerError, match="must have one name"):
            open_ledger(name)
    second.unlink()
    assert open_ledger(url).terms("load") == kit.terms()


HOLD = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "LOCK TABLE streams"}
UPGRADING = {**HOLD, "postgresql": f"SELECT pg_advisory_xact_lock({database.UPGRADE_LOCK})"}


def test_a_locked_ledger_says_so_and_records_nothing(url, ledger, kit, round_the_library):
    impatient = open_ledger(url, busy_timeout_seconds=0.01)
    with round_the_library() as holder:
        holder.exec_driver_sql(HOLD[holder.dialect.name])
        with pytest.raises(LedgerError, match=r"locked|LockNotAvailable"):
            impatient.enrol(kit.terms("another"), kit.now)
    assert ledger.terms("another") is None


@pytest.mark.parametrize(
    ("setting", "kept"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")]
)
def test_a_server_that_confirms_too_early_is_made_to_wait(postgresql_cluster, setting, kept):
    opened = database.open_engine(postgresql_cluster.new_url(f"synchronous_commit={setting}"), 30)
    with database.writing(opened) as connection:
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


# A forked child refuses a file that was open; a process that ends leaves one whole file.


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


@ONLY_SQLITE
@pytest.mark.parametrize("opens_its_own", [False, True])
def test_a_childs_commit_survives_the_parents_close(ledger, url, kit, opens_its_own):
    """Else it is committed without an error and in no file: it is the inode that SQLite remembers."""
    there, setting = os.pipe(), os.pipe()

    def child():
        own = open_ledger(url) if opens_its_own else ledger
        with writing(own._engine) as connection:
            reserve_within(connection, *request_of(kit, 1))
            os.write(there[1], b"x")
            os.read(setting[0], 1)

    ledger.reserve(*request_of(kit, 0))
    pid = forked(child)
    os.close(there[1])  # so that a child that dies before it writes ends the wait
    os.read(there[0], 1)
    ledger.close()
    os.write(setting[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    rows = sqlite3.connect(files_of(url)[0]).execute("SELECT count(*) FROM releases")
    assert rows.fetchone()[0] == 2


@ONLY_SQLITE
def test_a_child_of_a_fork_in_anothers_transaction_is_refused(ledger, url, kit):
    """What that thread had open cannot be closed for the child; the parent's transaction goes on."""
    inside, go = threading.Event(), threading.Event()

    def hold():
        with writing(ledger._engine) as connection:
            reserve_within(connection, *request_of(kit, 1))
            inside.set()
            go.wait()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    inside.wait()

    def child():
        for opened in (lambda: ledger, lambda: open_ledger(url)):
            with pytest.raises(LedgerError, match="forked while another thread used the ledger"):
                opened().find(Key("load", "day 0"))

    assert os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1]) == 0
    go.set()
    thread.join()
    assert ledger.find(Key("load", "day 1")) is not None


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


# Every database goes through the migrations: new ones, old ones with their releases, and none too new.

FIRST_VERSION = json.loads((Path(__file__).parent / "first_version.json").read_text())
"""What the last OptStream without migrations made: its tables on each database, and a ledger's rows."""


@pytest.fixture
def first_version(url, round_the_library):
    """A database of the first version with four releases, two of them settled."""
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir()
    with round_the_library() as connection:
        for statement in FIRST_VERSION["tables"][connection.dialect.name]:
            connection.exec_driver_sql(statement)
        insert_rows(connection, FIRST_VERSION["rows"])
    return url


def rows_of(connection, like=None):
    """Every row by table; `like`: only the tables and columns that an earlier answer had."""
    known, found = inspect(connection), {}
    for table in like or metadata.tables.keys() - {"schema_version"}:
        if known.has_table(table):
            columns = ", ".join(like[table][0]) if like else "*"
            rows = connection.execute(text(f"SELECT {columns} FROM {table} ORDER BY id")).mappings()
            found[table] = [dict(row) for row in rows]
    return found


def contents_of(connection, like=None):
    """Tables, keys, indices, checks and triggers, as the database has them; and every row, as `rows_of`."""
    known = inspect(connection)
    of_table = ("get_indexes", "get_unique_constraints", "get_foreign_keys", "get_check_constraints")
    tables = {
        name: (
            [(column["name"], str(column["type"]), column["nullable"]) for column in known.get_columns(name)],
            *(sorted(map(str, getattr(known, listed)(name))) for listed in of_table),
        )
        for name in metadata.tables
        if known.has_table(name)
    }
    triggers = {
        "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY sql",
        "postgresql": "SELECT replace(pg_get_triggerdef(oid), current_schema(), '') FROM pg_trigger "
        "WHERE NOT tgisinternal AND tgrelid::regclass::text IN ('spends', 'events', 'amendments') "
        "ORDER BY tgname",
    }
    found = connection.execute(text(triggers[connection.dialect.name])).scalars().all()
    return tables, found, rows_of(connection, like)


def test_the_migrations_make_the_tables_that_the_queries_go_by(ledger, round_the_library):
    def differences():
        columns = {"include_object": lambda _item, _name, kind, *_: kind in ("table", "column")}
        return compare_metadata(MigrationContext.configure(connection, opts=columns), metadata)

    assert len(migrations.STEPS) == int(SCHEMA)
    with round_the_library() as connection:
        assert differences() == []
        connection.exec_driver_sql("ALTER TABLE releases ADD COLUMN unknown INTEGER")
        (difference,) = differences()
        assert difference[0] == "remove_column"


def test_an_old_database_keeps_releases_and_heads(first_version, round_the_library, request, tmp_path, kit):
    with round_the_library() as connection:
        before = rows_of(connection)
    ledger = open_ledger(first_version)
    fresh = f"sqlite:///{tmp_path}/fresh.sqlite"
    if not first_version.startswith("sqlite"):
        fresh = request.getfixturevalue("postgresql_cluster").new_url()
    open_ledger(fresh)
    with round_the_library() as connection, round_the_library(fresh) as new:
        assert contents_of(connection)[:2] == contents_of(new)[:2]
        assert rows_of(connection, before) == before
        assert database.version_of(connection) == SCHEMA
        (guarantee,) = rows_of(connection)["amendments"]
        assert {name: guarantee[name] for name in GUARANTEE_COLUMNS} == {
            name: before["grants"][0].get(name) for name in GUARANTEE_COLUMNS
        }
    assert ledger.verify() == []
    heads = [row["head"] for row in before["streams"]] + [row["hash"] for row in before["events"]]
    assert ledger.missing_heads(heads) == []
    states = [(one.period, one.state) for one in ledger.releases("load")]
    expected = [ReleaseState.PUBLISHED, ReleaseState.DRAWN, ReleaseState.RESERVED]
    assert states == [(f"day {number}", state) for number, state in enumerate(expected)]
    # and work goes on
    request = Key("second", "day 2"), kit.plan(8, "1/8"), "night", kit.now, kit.lease
    with pytest.raises(BudgetError):
        ledger.reserve(request[0], kit.plan(8, "1/4"), *request[2:])
    ledger.reserve(*request, [ledger.head("load")])
    adopted = ledger.adopt(Key("load", "day 1"), "night", kit.now, kit.lease)
    ledger.record_staged(Key("load", "day 1"), "staged", "release-2.parquet", kit.now, adopted)
    ledger.record_published(Key("load", "day 1"), kit.now, adopted)
    assert ledger.verify() == []
    assert len(open_ledger(first_version).releases("second")) == 2


NEWER = f"{int(SCHEMA) + 1:04}"


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        (f"UPDATE alembic_version SET version_num = '{NEWER}'", f"schema {NEWER}, newer than the {SCHEMA}"),
        ("UPDATE alembic_version SET version_num = 'x'", "does not say which schema"),
        ("DELETE FROM alembic_version", "does not say which schema"),
    ],
)
def test_a_newer_or_no_version_is_refused_and_left_alone(url, ledger, round_the_library, statement, rule):
    with round_the_library() as connection:
        connection.execute(text(statement))
        before = contents_of(connection)
    with pytest.raises(LedgerError, match=rule):
        open_ledger(url)
    with round_the_library() as connection:
        assert contents_of(connection) == before


def fail(op):
    assert inspect(op.get_bind()).has_table("amendments")
    raise LedgerError("the lights went out")


def lose_rows(op):
    with op.batch_alter_table("grants") as grants:
        grants.alter_column("calendar", existing_type=sa.Text, nullable=True)
        grants.create_check_constraint("some_window", "window_length > 0")
    op.execute("DELETE FROM grants")


@pytest.mark.parametrize(
    ("step", "rule"), [(fail, "lights"), (lose_rows, r"point to rows that are gone|ForeignKeyViolation")]
)
def test_an_upgrade_that_fails_changes_nothing(first_version, round_the_library, monkeypatch, step, rule):
    with round_the_library() as connection:
        before = contents_of(connection)
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "STEPS", (*migrations.STEPS, step))
        patched.setattr(database, "SCHEMA", NEWER)
        with pytest.raises(LedgerError, match=rule):
            open_ledger(first_version)
    with round_the_library() as connection:
        assert not inspect(connection).has_table("alembic_version")
        assert contents_of(connection) == before
    assert open_ledger(first_version).verify() == []


@pytest.mark.slow
def test_many_threads_that_open_an_old_ledger_upgrade_it_once(first_version):
    together = Barrier(6)

    def verified(url):
        together.wait()
        return open_ledger(url).verify()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(verified, [first_version] * 6)) == [[]] * 6


def test_an_upgrade_waits_for_the_one_under_way(first_version, round_the_library):
    with round_the_library() as holder:
        holder.exec_driver_sql(UPGRADING[holder.dialect.name])
        with pytest.raises(LedgerError, match=r"locked|LockNotAvailable"):
            open_ledger(first_version, busy_timeout_seconds=0.05)
    assert open_ledger(first_version).verify() == []

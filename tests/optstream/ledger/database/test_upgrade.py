"""Every database goes through the migrations: new ones, old ones with their releases, and none too new."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import Key, ReleaseState, migrations, open_ledger
from optstream.ledger import database as engine
from optstream.ledger import database as upgrade
from optstream.ledger.accounting import GUARANTEE_COLUMNS
from optstream.ledger.schema import SCHEMA, metadata

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
        for table, rows in FIRST_VERSION["rows"].items():
            connection.execute(metadata.tables[table].insert(), rows)
            if connection.dialect.name == "postgresql" and "id" in rows[0]:
                # keys were given, so nobody told the sequence of them
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {len(rows)})"
                )
    return url


def rows_of(connection, like=None):
    """Every row by table; `like`: only the tables and columns that an earlier answer had."""
    told = inspect(connection)
    tables = [name for name in metadata.tables if name != "schema_version" and told.has_table(name)]
    found = {
        table: [
            dict(row) for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY id")).mappings()
        ]
        for table in tables
    }
    if like is None:
        return found
    return {
        table: [{name: row[name] for name in before[0]} for row in found[table]]
        for table, before in like.items()
    }


def description_of(connection):
    """Tables, keys, indices, checks and triggers, as the database tells them."""
    told = inspect(connection)
    tables = {
        name: (
            [(column["name"], str(column["type"]), column["nullable"]) for column in told.get_columns(name)],
            sorted(str(index) for index in told.get_indexes(name)),
            sorted(str(constraint) for constraint in told.get_unique_constraints(name)),
            sorted(str(key) for key in told.get_foreign_keys(name)),
            sorted(str(check) for check in told.get_check_constraints(name)),
        )
        for name in metadata.tables
        if told.has_table(name)
    }
    triggers = {
        "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY sql",
        "postgresql": "SELECT replace(pg_get_triggerdef(oid), current_schema(), '') FROM pg_trigger "
        "WHERE NOT tgisinternal AND tgrelid::regclass::text IN ('spends', 'events', 'amendments') "
        "ORDER BY tgname",
    }
    return tables, connection.execute(text(triggers[connection.dialect.name])).scalars().all()


def test_the_migrations_make_the_tables_that_the_queries_go_by(ledger, round_the_library):
    def differences():
        columns = {"include_object": lambda _item, _name, kind, *_: kind in ("table", "column")}
        return compare_metadata(MigrationContext.configure(connection, opts=columns), metadata)

    with round_the_library() as connection:
        assert differences() == []
        connection.exec_driver_sql("ALTER TABLE releases ADD COLUMN unknown INTEGER")
        (difference,) = differences()
        assert difference[0] == "remove_column"


def test_the_newest_migration_is_todays_schema():
    assert len(migrations.STEPS) == int(SCHEMA)


def test_a_database_from_before_the_migrations_keeps_its_releases_and_heads(first_version, round_the_library):
    with round_the_library() as connection:
        before = rows_of(connection)
    ledger = open_ledger(first_version)
    with round_the_library() as connection:
        assert rows_of(connection, before) == before
        assert upgrade.version_of(connection) == SCHEMA
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


def test_work_goes_on_after_an_upgrade(first_version, kit):
    ledger = open_ledger(first_version)
    head = ledger.head("load")
    with pytest.raises(BudgetError):
        ledger.reserve(Key("second", "day 2"), kit.plan(8, "1/4"), "night", kit.now, kit.lease)
    ledger.reserve(Key("second", "day 2"), kit.plan(8, "1/8"), "night", kit.now, kit.lease, [head])
    adopted = ledger.adopt(Key("load", "day 1"), "night", kit.now, kit.lease)
    ledger.record_staged(Key("load", "day 1"), "staged", "release-2.parquet", kit.now, adopted)
    ledger.record_published(Key("load", "day 1"), kit.now, adopted)
    assert ledger.verify() == []
    assert len(open_ledger(first_version).releases("second")) == 2


def test_an_upgraded_database_is_a_new_one(first_version, round_the_library, request, tmp_path):
    open_ledger(first_version)
    fresh = f"sqlite:///{tmp_path}/fresh.sqlite"
    if not first_version.startswith("sqlite"):
        fresh = request.getfixturevalue("postgresql_cluster").new_url()
    open_ledger(fresh)
    with round_the_library() as upgraded, round_the_library(fresh) as new:
        assert description_of(upgraded) == description_of(new)


def test_a_newer_schema_is_refused_and_left_alone(url, ledger, round_the_library):
    newer = f"{int(SCHEMA) + 1:04}"
    with round_the_library() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{newer}'"))
        before = description_of(connection), rows_of(connection)
    with pytest.raises(LedgerError, match=f"schema {newer}, newer than the {SCHEMA}"):
        open_ledger(url)
    with round_the_library() as connection:
        assert (description_of(connection), rows_of(connection)) == before


@pytest.mark.parametrize(
    "statement", ["UPDATE alembic_version SET version_num = 'x'", "DELETE FROM alembic_version"]
)
def test_a_database_without_a_version_is_refused(url, ledger, edit, statement):
    edit(statement)
    with pytest.raises(LedgerError, match="does not say which schema"):
        open_ledger(url)


def test_an_upgrade_that_fails_changes_nothing(first_version, round_the_library, monkeypatch):
    with round_the_library() as connection:
        before = description_of(connection), rows_of(connection)

    whole = engine.upgrade

    def fail(connection, to):
        whole(connection, to)
        assert inspect(connection).has_table("alembic_version")
        raise LedgerError("the lights went out")

    with monkeypatch.context() as patched:
        patched.setattr(engine, "upgrade", fail)
        with pytest.raises(LedgerError, match="lights"):
            open_ledger(first_version)
    with round_the_library() as connection:
        assert not inspect(connection).has_table("alembic_version")
        assert (description_of(connection), rows_of(connection)) == before
    assert open_ledger(first_version).verify() == []


def verified_at_once(urls):
    """What is found in each ledger, opened by as many threads at the same moment."""
    together = Barrier(len(urls))

    def opening(url):
        together.wait()
        return open_ledger(url).verify()

    with ThreadPoolExecutor(len(urls)) as pool:
        return list(pool.map(opening, urls))


@pytest.mark.slow
def test_many_threads_that_open_an_old_ledger_upgrade_it_once(first_version):
    assert verified_at_once([first_version] * 6) == [[]] * 6


HOLD = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": f"SELECT pg_advisory_xact_lock({engine.UPGRADE_LOCK})",
}


def test_an_upgrade_waits_for_the_one_under_way(first_version, round_the_library):
    with round_the_library() as holder:
        holder.exec_driver_sql(HOLD[holder.dialect.name])
        with pytest.raises(LedgerError, match=r"locked|LockNotAvailable"):
            open_ledger(first_version, busy_timeout_seconds=0.05)
    assert open_ledger(first_version).verify() == []


def test_an_upgrade_that_loses_rows_is_undone(first_version, round_the_library, monkeypatch):
    def lose_rows(op):
        with op.batch_alter_table("grants") as grants:
            grants.alter_column("calendar", existing_type=sa.Text, nullable=True)
            grants.create_check_constraint("some_window", "window_length > 0")
        op.execute("DELETE FROM grants")

    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, lose_rows))
    monkeypatch.setattr(engine, "SCHEMA", f"{int(SCHEMA) + 1:04}")
    with pytest.raises(LedgerError, match=r"point to rows that are gone|ForeignKeyViolation"):
        open_ledger(first_version)
    with round_the_library() as connection:
        assert len(rows_of(connection)["grants"]) == 1
        assert not inspect(connection).has_table("alembic_version")

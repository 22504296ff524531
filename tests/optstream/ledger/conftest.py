"""A ledger with one stream, on each of the databases, and plans that are easy to add up."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import SimpleNamespace

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from optstream.ledger import Key, StreamTerms, open_ledger
from optstream.ledger.schema import metadata
from optstream.privacy import PrivacyModel, StepSpend


def step_plan(first_step, charge, n_steps=4, alpha_units=1):
    weights = (Fraction(charge) / alpha_units,) * n_steps
    return (StepSpend(0, "samples", first_step, weights, Fraction(1), alpha_units),)


def terms(stream="load", grant="customers", epsilon="1", window_length=4, hierarchy="tree", **more):
    model = PrivacyModel(epsilon, window_length, "1", resolution="1")
    return StreamTerms(stream, grant, model, hierarchy, "30 min", **more)


@pytest.fixture
def kit():
    """Times, plans and terms; epsilon 1 in any window of 4 steps."""
    now = datetime(2026, 3, 1, 2, tzinfo=UTC)
    return SimpleNamespace(now=now, lease=timedelta(minutes=10), plan=step_plan, terms=terms)


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path}/trusted/ledger.sqlite"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def url(request):
    """Where a ledger may be made: on either database; on PostgreSQL by night, for the code is the same."""
    return request.getfixturevalue(f"{request.param}_url")


BOTH = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
"""By day too: what a database decides itself."""


@pytest.fixture
def broken_on_purpose():
    """What asks for this need not leave a whole ledger."""


@pytest.fixture
def round_the_library(url, broken_on_purpose):
    """A transaction on the ledger's database that OptStream knows nothing of; undone if it raises."""

    @contextmanager
    def call(address=url):
        engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
        with engine.begin() as connection:
            yield connection

    return call


TRIGGERS = {
    "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname, tgrelid::regclass FROM pg_trigger WHERE NOT tgisinternal",
}


@pytest.fixture
def edit(round_the_library):
    """Run SQL on the ledger's database, past its triggers, which are gone from then on."""

    def call(*statements, **values):
        with round_the_library() as connection:
            dialect = connection.dialect.name
            for trigger, table in connection.execute(text(TRIGGERS[dialect])).all():
                on = f" ON {table}" if dialect == "postgresql" else ""
                connection.execute(text(f"DROP TRIGGER {trigger}{on}"))
            if dialect == "postgresql":
                # foreign keys are not looked at either, as SQLite ignores them by default
                connection.execute(text("SET session_replication_role = replica"))
            for statement in statements:
                found = connection.execute(text(statement), values)
                assert found.rowcount > 0 or statement.startswith("PRAGMA"), "it must hit something"

    return call


@pytest.fixture
def ledger(request, url, kit):
    """Whole after every test but those that break it on purpose."""
    opened = open_ledger(url)
    opened.enrol(terms(), kit.now)
    yield opened
    if "broken_on_purpose" not in request.fixturenames:
        assert opened.verify() == []
    opened.close()


@pytest.fixture
def reserve(ledger, kit):
    """Reserve with everything defaulted: the plan was made under the current terms."""

    def call(period="day 0", plan=None, revision=0, owner="night", stream="load", **more):
        now = more.pop("now", kit.now)
        plan = kit.plan(0, "1/4") if plan is None else plan
        more.setdefault("terms", ledger.terms(stream))
        return ledger.reserve(Key(stream, period, revision), plan, owner, now, kit.lease, **more)

    return call


@pytest.fixture
def let_through(monkeypatch, broken_on_purpose):
    """The fault that `verify` should find: windows are not judged before a release is reserved."""
    monkeypatch.setattr("optstream.ledger.lifecycle._check_windows", lambda *_: None)


@pytest.fixture
def drawn(ledger, reserve, kit):
    """Reserve a release and draw it, as it was planned or with another outcome."""

    def call(period="day 0", plan=None, revision=0, outcome=None, **more):
        reservation = reserve(period, plan, revision, **more)
        ledger.begin_draw(reservation, kit.now)
        planned = kit.plan(0, "1/4") if plan is None else plan
        ledger.record_drawn(reservation, "measured", planned if outcome is None else outcome, kit.now)
        return reservation

    return call


@pytest.fixture
def publish(ledger, drawn, kit):
    def call(period="day 0", plan=None, revision=0, **more):
        reservation = drawn(period, plan, revision, **more)
        key = reservation.key
        ledger.record_staged(key, "staged", "release-1.parquet", kit.now, reservation)
        ledger.record_published(key, kit.now, reservation)
        return reservation

    return call


def insert_rows(connection, tables):
    """Insert rows with their keys, then set PostgreSQL's sequences past them."""
    for table, rows in tables.items():
        connection.execute(metadata.tables[table].insert(), rows)
        if connection.dialect.name == "postgresql" and "id" in rows[0]:
            key = f"pg_get_serial_sequence('{table}', 'id')"
            connection.exec_driver_sql(f"SELECT setval({key}, {len(rows)})")

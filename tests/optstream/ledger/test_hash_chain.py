"""Only appended to: the ledger notices what was done behind its back, and is read from one moment."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import Key, Vintage, open_ledger
from optstream.ledger.schema import metadata
from tests.optstream.ledger.conftest import BOTH


@pytest.fixture
def tamper(publish, ledger, kit, edit):
    """Run SQL on the database of a ledger with two releases, past the triggers; return what verify says."""
    for period, first_step in (("day 0", 0), ("day 1", 40)):
        publish(period, kit.plan(first_step, "1/8"))
    held = ledger.revise(Key("load", "day 1"), "next night", kit.now, kit.lease)
    ledger.record_vintage(held, Vintage(1, "basis", "a" * 64, "release-a.parquet", False), kit.now)
    ledger.record_vintage_published(held, 1, kit.now)
    assert ledger.verify() == []

    def call(*statements, **values):
        edit(*statements, **values)
        return " ".join(ledger.verify())

    return call


SPENDS = "grant_id, release_id, generation, position, first_step, n_steps, document"
STRAY = SPENDS.replace("release_id", "release_id + 9999")
EDITS = [
    ("UPDATE events SET at = '2020' WHERE number = 2", "event 2: was changed"),
    ("DELETE FROM events WHERE number = 2", "event 2 should be here"),
    ("DELETE FROM events WHERE number = (SELECT max(number) FROM events)", "last event"),
    ("UPDATE events SET number = 99 WHERE number = 2", "event 2 should be here"),
    ("UPDATE spends SET document = replace(document, '1/8', '1/9') WHERE first_step = 40", "day 1.*spends"),
    ("UPDATE spends SET document = 'nothing'", "day 0.*spends are not those"),
    ("UPDATE spends SET first_step = 400 WHERE first_step = 40", "day 1.*spends are not those"),
    ("DELETE FROM spends WHERE first_step = 40", "day 1.*spends are gone"),
    ("UPDATE releases SET state = 'VOID' WHERE period = 'day 0'", "day 0.*state"),
    ("DELETE FROM releases WHERE period = 'day 0'", "its row is gone"),
    ("UPDATE grants SET epsilon = '100'", "differs from stream .* in epsilon"),
    ("DELETE FROM grants", "stream 'load': its privacy budget is missing"),
    (f"INSERT INTO spends ({SPENDS}) SELECT {STRAY} FROM spends", "spends belong to no release of a stream"),
    ("UPDATE streams SET head = 'x'", "last event"),
    ("UPDATE events SET body = '{\"grant\": [1]}' WHERE number = 0", "event 0: was changed"),
    ("UPDATE events SET body = '{\"vintage\": [1]}' WHERE number = 2", "event 2: was changed"),
    (
        'UPDATE events SET body = \'{"spends_hash": "a", "generation": {}}\' WHERE number = 2',
        "event 2: was changed",
    ),
    ("UPDATE releases SET stream_id = 9 WHERE period = 'day 0'", "1 releases belong to no row of streams"),
    ("UPDATE events SET stream_id = 9 WHERE number = 2", "1 events belong to no row of streams"),
    (
        "INSERT INTO vintages (release_id, number, basis, staged_hash, published_name, published) "
        "VALUES (99, 1, 'a', 'b', 'c', (1 = 1))",
        "1 vintages belong to no row of releases",
    ),
    ("UPDATE vintages SET published = (1 = 0)", "vintage 1: differs from .* in published"),
    ("UPDATE vintages SET number = 7", "vintage 7: no event tells of it.*vintage 1: its events are"),
    ("DELETE FROM vintages", "vintage 1: its events are there, its row is gone"),
    (
        "INSERT INTO amendments (grant_id, number, epsilon, window_length, alpha, unit, leaves_per_step, "
        "windows) SELECT id, 7, '9', window_length, alpha, unit, leaves_per_step, windows FROM grants",
        "its privacy guarantees are not those",
    ),
    (
        f"INSERT INTO spends ({SPENDS}) SELECT grant_id, release_id, generation, 7, first_step, n_steps, "
        "replace(document, '1/8', '1') FROM spends",
        "day 0.*spends are not those.*day 1.*spends are not those",
    ),
    # two events swapped
    (
        "UPDATE events SET number = -1 WHERE number = 2; UPDATE events SET number = 2 WHERE number = 3; "
        "UPDATE events SET number = 3 WHERE number = -1",
        "does not follow",
    ),
]
OFTEN_ON_POSTGRESQL = ("UPDATE events SET at", "DELETE FROM spends", "UPDATE streams SET head", "INSERT INTO")
OFTEN_ON_POSTGRESQL += ("UPDATE events SET number = -1",)


def edits():
    """Each on SQLite; on PostgreSQL, where the same code looks at the same rows, some in `make test`."""
    for statement, finding in EDITS:
        yield pytest.param("sqlite", statement, finding)
        often = statement.startswith(OFTEN_ON_POSTGRESQL)
        yield pytest.param("postgresql", statement, finding, marks=[] if often else pytest.mark.nightly)


@pytest.mark.parametrize(("url", "statement", "finding"), [*edits()], indirect=["url"])
@pytest.mark.slow
def test_an_edit_is_found(tamper, statement, finding):
    found = tamper(*statement.split("; "))
    assert re.search(finding, found), found


@BOTH
def test_an_overspend_that_was_let_through_is_found(publish, ledger, kit, let_through):
    """Of one stream, and of two that are each within the budget."""
    ledger.enrol(kit.terms("second"), kit.now)
    publish("day 0", kit.plan(0, "1/4"))
    publish("day 9", kit.plan(100, "3/16"))
    assert ledger.verify() == []
    publish("day 9", kit.plan(100, "3/16"), stream="second")
    assert any("from step 100 costs 3/2, more than 1" in found for found in ledger.verify())
    publish("day 1", kit.plan(0, "1/4"))
    assert any("from step 0 costs 2, more than 1" in found for found in ledger.verify())


TO_STEPS = (
    "n_steps = n_steps || ' ' || substr(document, 1, instr(document, ' ') - 1), "
    "document = substr(document, instr(document, ' ') + 1)"
)
TO_POSITION = (
    "position = position || ' ' || first_step || ' ' || n_steps || ' ' || "
    "substr(document, 1, instr(document, ' 40 1 ') - 1), "
    "n_steps = 1, document = substr(document, instr(document, ' 40 1 ') + 6)"
)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("moved", [TO_STEPS, TO_POSITION], ids=["to the steps", "to the position"])
@pytest.mark.parametrize("settled", [False, True], ids=["in force", "not in force"])
def test_a_spend_whose_words_moved_to_another_column_is_found(drawn, ledger, kit, edit, moved, settled):
    """Its line, and so its hash, are what they were: SQLite keeps text in a column of numbers."""
    for period, first_step in (("day 0", 0), ("day 1", 40)):
        plan = [replace(spend, stage="feature 40 1 y") for spend in kit.plan(first_step, "1/8")]
        drawn(period, plan, outcome=() if settled else plan)
    assert ledger.verify() == []
    edit(f"UPDATE spends SET {moved} WHERE first_step = 40 AND generation = 1")
    assert any(re.search("day 1.*spends are not those", found) for found in ledger.verify())


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE spends SET document = replace(document, '"first_step"\\:', '"first_step"\\:9999999999')""",
        f"UPDATE spends SET document = '{'[' * 100_000}'",
        f"UPDATE streams SET model = '{'[' * 100_000}'",
        f"UPDATE streams SET document = '{'[' * 100_000}'",
        'UPDATE streams SET model = replace(model, \'"epsilon": "1"\', \'"epsilon": "1e400000000"\')',
        "UPDATE grants SET epsilon = '1e400000000'",
        "UPDATE streams SET n_events = 9223372036854775807",
    ],
    ids=["far steps", "deep spend", "deep model", "deep document", "exponent", "grant's exponent", "events"],
)
def test_what_would_fill_memory_or_time_is_only_reported(tamper, statement):
    assert tamper(statement)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_event_that_names_no_stream_is_a_stray_too(ledger, publish, kit, round_the_library):
    """In a table that was made again, without its constraints."""
    publish()
    with round_the_library() as connection:
        for change in (
            "CREATE TABLE copied AS SELECT * FROM events",
            "DROP TABLE events",
            "ALTER TABLE copied RENAME TO events",
            "INSERT INTO events (id, number, kind, body, hash) VALUES (99, 1, 'b', '{}', 'forged')",
        ):
            connection.execute(text(change))
    assert any("1 events belong to no row of streams" in found for found in ledger.verify())
    assert ledger.missing_heads(["forged"])


UNSEEN = {"id", "lease_until", "release_id"}
"""A row's own number is nowhere named but by other rows; a renewed lease leaves no event."""


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "table", ["grants", "amendments", "streams", "releases", "spends", "events", "vintages"]
)
def test_a_value_of_another_kind_is_found_in_every_column(tamper, ledger, round_the_library, table):
    """SQLite keeps any kind of value in any column, and text whose bytes its driver refuses to read."""
    for column in sorted(set(metadata.tables[table].columns.keys()) - UNSEEN):
        with round_the_library() as connection:
            kept = connection.execute(text(f"SELECT {column} FROM {table} ORDER BY id DESC")).first()[0]
        newest = f"UPDATE {table} SET {column} = %s WHERE id = (SELECT max(id) FROM {table})"
        for strange in ("'strange'", "x'00ff'", "-7", "CAST(x'41ff' AS TEXT)"):
            assert tamper("PRAGMA ignore_check_constraints = ON", newest % strange), (column, strange)
        assert tamper(newest % ":kept", kept=kept) == ""


KEPT = ("spends", "events")
CHANGES = [f"UPDATE {one} SET id = id + 1000" for one in KEPT] + [f"DELETE FROM {one}" for one in KEPT]
EMPTY = ("TRUNCATE spends", "TRUNCATE events", "TRUNCATE streams CASCADE")


@pytest.mark.parametrize(
    ("url", "statements"), [("sqlite", CHANGES), ("postgresql", [*CHANGES, *EMPTY])], indirect=["url"]
)
@pytest.mark.slow
def test_the_database_itself_keeps_spends_and_events(ledger, publish, round_the_library, statements):
    def contents():
        with round_the_library() as connection:
            tables = ("spends", "events", "releases")
            return [connection.execute(text(f"SELECT * FROM {table} ORDER BY id")).all() for table in tables]

    publish()
    before = contents()
    for statement in statements:
        with pytest.raises(DBAPIError, match="only appends"), round_the_library() as connection:
            connection.execute(text(statement))
        assert contents() == before
    assert ledger.verify() == []


@BOTH
@pytest.mark.parametrize("n_rows", [1, 1000])
@pytest.mark.slow
def test_batches_of_any_size_hold_the_same_rows(ledger, drawn, reserve, kit, n_rows):
    drawn("day 0", outcome=kit.plan(0, "1/8"))
    reserve("day 4", kit.plan(4, "1/8"))
    tables = {}
    for table, columns in ledger.batches(n_rows):
        (size,) = {len(values) for values in columns.values()}
        assert size <= n_rows
        known = tables.setdefault(table, {name: [] for name in columns})
        for name, values in columns.items():
            known[name] += values
    assert list(tables) == ["streams", "releases", "spends", "events"]
    assert tables["streams"]["epsilon"] == ["1"]
    assert tables["releases"]["period"] == ["day 0", "day 4"]
    assert (tables["spends"]["generation"], tables["spends"]["in_force"]) == ([1, 2, 1], [0, 1, 1])
    assert tables["events"]["number"] == list(range(len(tables["events"]["number"])))
    assert tables["events"]["hash"][-1] == ledger.head("load")


@BOTH
def test_what_is_written_meanwhile_is_not_in_it(ledger, reserve, kit):
    reserve("day 0")
    batches = ledger.batches(1)
    next(batches)
    reserve("day 4", kit.plan(4, "1/8"))
    rest = [columns for table, columns in batches if table == "releases"]
    assert [period for columns in rest for period in columns["period"]] == ["day 0"]


STORED = json.loads(Path(__file__).with_name("stored_events.json").read_text(encoding="utf-8"))
"""One event of each kind, columns of terms and spends, and the head of the chain, as of 2026-11-22."""


def life(ledger, url, kit):
    """Everything that can happen to a ledger, step by step; yields after each."""
    now, quarter, eighth = kit.now, kit.plan(0, "1/4"), kit.plan(0, "1/8")
    key = Key("load", "day 0")
    ledger.enrol(kit.terms(document='{"code": "2"}'), now)
    yield
    first = ledger.reserve(key, quarter, "first", now, kit.lease)
    yield
    now += timedelta(hours=1)
    second = ledger.reserve(key, eighth, "second", now, kit.lease)  # another plan: a second generation
    yield
    with pytest.raises(LedgerError):
        ledger.begin_draw(first, now)
    ledger.begin_draw(second, now)
    yield
    now += timedelta(hours=1)
    third = ledger.reserve(key, eighth, "third", now, kit.lease)  # the second died in its draw
    ledger.renew(third, now, 2 * kit.lease)
    ledger.begin_draw(third, now)
    ledger.record_drawn(third, "measured", kit.plan(0, "1/16"), now)  # settled: a third generation
    yield
    ledger.end_lease(third, now)
    fourth = ledger.adopt(key, "fourth", now + timedelta(hours=1), kit.lease)
    ledger.record_staged(key, "staged", "release-1.parquet", now, fourth)
    ledger.record_published(key, now, fourth)
    yield
    restated = ledger.reserve(Key("load", "day 0", 1), eighth, "fourth", now, kit.lease)
    ledger.void(Key("load", "day 0", 1), "a person said so", now, restated)
    yield
    with pytest.raises(BudgetError):
        ledger.reserve(Key("load", "day 1"), kit.plan(1, "1"), "fourth", now, kit.lease)
    dearer = ledger.reserve(Key("load", "day 1"), kit.plan(4, "1/8"), "fourth", now, kit.lease)
    ledger.begin_draw(dearer, now)
    with pytest.raises(LedgerError, match="VOID"):
        ledger.record_drawn(dearer, "measured", kit.plan(4, "1/4"), now)
    yield
    for owner in ("a", "b", "c"):
        ledger.begin_draw(
            ledger.reserve(Key("load", "day 2"), kit.plan(8, "1/8"), owner, now, kit.lease), now
        )
        now += timedelta(hours=1)
    with pytest.raises(LedgerError, match="VOID"):
        ledger.reserve(Key("load", "day 2"), kit.plan(8, "1/8"), "d", now, kit.lease)
    yield
    ledger.withdraw(key, "the supplier erred", now)
    ledger.compromise(Key("load", "day 2"), "a seeded sampler", now)
    ledger.amend(kit.terms(epsilon="2"), "a person said so", now)
    yield
    now, key = kit.now + timedelta(days=1), Key("load", "day 9")
    held = ledger.reserve(key, kit.plan(36, "1/3"), "night", now, kit.lease)
    ledger.begin_draw(held, now)
    ledger.call_off_draw(held, now)
    ledger.begin_draw(held, now)
    ledger.record_drawn(held, "measured", kit.plan(36, "1/3"), now)
    ledger.record_staged(key, "staged", "release-2.parquet", now, held)
    ledger.record_published(key, now, held)
    revising = ledger.revise(key, "next night", now, kit.lease)
    ledger.record_vintage(revising, Vintage(2, "basis", "bytes", "release-3.parquet", False), now)
    ledger.record_vintage_published(revising, 2, now)
    ledger.revise(key, "third night", now, kit.lease)
    ledger.release_lease(key, "the machine is gone", now)
    yield
    reopened = open_ledger(url)
    assert reopened.verify() == []
    reopened.worst("customers")
    states = [record.state.value for record in reopened.releases("load")]
    assert states == ["PUBLISHED", "VOID", "VOID", "VOID", "PUBLISHED"]


def stored(connection):
    """What the ledger's rows hold of each kind of event, of the terms and of the spends."""
    columns = "period, revision, number, at, kind, body, previous"
    events = connection.execute(text(f"SELECT {columns} FROM events ORDER BY id")).all()
    head, model = connection.execute(text("SELECT head, model FROM streams")).one()
    spends = connection.execute(text("SELECT DISTINCT document FROM spends ORDER BY document")).scalars()
    hashes = connection.execute(text("SELECT spends_hash FROM releases ORDER BY id")).scalars()
    return {
        "events": {event.kind: list(event) for event in events},
        "head": head,
        "model": model,
        "spends": list(spends),
        "spends_hashes": sha256("".join(hashes).encode()).hexdigest(),
    }


@pytest.mark.slow
def test_no_step_changes_what_is_stored_and_each_kind_is_as_ever(ledger, url, kit, round_the_library, edit):
    """With the triggers gone, so that only the library keeps the guarantee."""

    def rows():
        with round_the_library() as connection:
            return [
                connection.execute(text(f"SELECT * FROM {table} ORDER BY id")).all()
                for table in ("spends", "events", "amendments")
            ]

    edit()
    before = rows()
    for _ in life(ledger, url, kit):
        after = rows()
        assert [new[: len(old)] for old, new in zip(before, after, strict=True)] == before
        before = after
    with round_the_library() as connection:
        assert stored(connection) == STORED

"""Several processes find what one finds, of one moment, whatever becomes of them."""

import re
from multiprocessing import get_context

import pytest

from optstream.ledger import open_ledger
from optstream.ledger import verify as parallel
from optstream.ledger.database import reading

SPENDS = "grant_id, release_id, generation, position, first_step, n_steps, document"
STRAY = SPENDS.replace("release_id", "release_id + 9999")
TAMPERING = [
    "UPDATE events SET at = '2020' WHERE number = 2",
    "DELETE FROM events WHERE number = 3",
    "UPDATE spends SET document = replace(document, '1/8', '1/9') WHERE first_step = 4",
    "UPDATE spends SET document = 'nothing' WHERE first_step = 0",
    "DELETE FROM spends WHERE first_step = 4",
    "UPDATE releases SET state = 'VOID' WHERE revision = 0",
    "DELETE FROM releases WHERE period = 'day 0'",
    "UPDATE grants SET epsilon = '1/8'",
    "UPDATE grants SET longest_spend = 0",
    "UPDATE streams SET head = 'x'",
    "DELETE FROM grants WHERE name = 'alone'",
]


@pytest.fixture(autouse=True)
def begun(request, monkeypatch):
    """Processes are forked from one that imported the ledger; where they are the point, they are spawned."""
    if "spawned" not in request.fixturenames:
        context = get_context("forkserver")
        context.set_forkserver_preload([parallel.__name__])
        monkeypatch.setattr(parallel, "get_context", lambda _: context)


@pytest.fixture
def town(ledger, publish, kit, monkeypatch):
    """Two streams that share a grant and two that have one each; a few events are worth a process."""
    monkeypatch.setattr(parallel, "WORTH_A_PROCESS", 5)
    for stream, grant in (("second", "customers"), ("third", "alone"), ("fourth", "also alone")):
        ledger.enrol(kit.terms(stream, grant), kit.now)
    for stream in ("load", "second", "third", "fourth"):
        publish("day 0", kit.plan(0, "1/8"), stream=stream)
        publish("day 1", kit.plan(4, "1/8"), stream=stream)
    return ledger


@pytest.fixture
def spawned(monkeypatch):
    """How many processes were asked for, each time."""
    asked, spawn = [], parallel._spawned

    def note(engine, n_processes):
        asked.append(n_processes)
        return spawn(engine, n_processes)

    monkeypatch.setattr(parallel, "_spawned", note)
    return asked


@pytest.mark.slow
def test_shares_find_what_the_whole_does(town, edit):
    for statement in TAMPERING:
        edit(statement)
        found = town.verify()
        assert found
        with reading(town._engine) as connection:
            reports = [parallel._read(connection, share) for share in parallel._shares(connection, 3)]
            assert parallel._joined(connection, reports) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)], indirect=True
)
def test_processes_find_what_one_finds(town, spawned, edit):
    assert town.verify(processes=2) == []
    edit("UPDATE events SET at = '2020' WHERE number = 2")
    found = town.verify()
    assert len(found) == 4
    assert town.verify(processes=2) == found
    assert spawned == [2, 2]


@pytest.mark.slow
def test_an_overspend_of_streams_that_different_processes_read_is_found(town, kit, publish, let_through):
    """Each by itself is within the grant."""
    for stream in ("load", "second"):
        assert town.verify(processes=2) == []
        publish("day 9", kit.plan(100, "3/16"), stream=stream)
    with reading(town._engine) as connection:
        shares = parallel._shares(connection, 2)
    customers = {part.stream_ids for share in shares for part in share if not part.whole}
    assert len(customers) == 2
    assert "more than 1" in " ".join(town.verify(processes=2))


def test_every_stream_is_read_once_and_the_work_is_even(town, publish, kit):
    with reading(town._engine) as connection:
        shares = parallel._shares(connection, 2)
    read = [stream for share in shares for part in share for stream in part.stream_ids]
    assert sorted(read) == [1, 2, 3, 4]
    assert [sum(len(part.stream_ids) for part in share) for share in shares] == [2, 2]


@pytest.mark.slow
def test_processes_see_one_moment(town, url, kit, monkeypatch):
    """Somebody writes between the snapshots of two: on SQLite they are opened again."""
    writer, told, looked = open_ledger(url), [], []
    tell, moment = parallel._tell, parallel._moment

    def write_in_between(ends, words):
        told.append(words)
        if len(told) > 1:
            return tell(ends, words)
        ends[0].send(words[0])
        assert ends[0].poll(60)  # its snapshot is open
        writer.enrol(kit.terms(document='{"later": true}'), kit.now)
        return tell(ends[1:], words[1:])

    def look(connection):
        looked.append(connection)
        return moment(connection)

    monkeypatch.setattr(parallel, "_tell", write_in_between)
    monkeypatch.setattr(parallel, "_moment", look)
    assert town.verify(processes=2) == []
    writer.close()
    # PostgreSQL's second process was given the snapshot of the first
    assert len(looked) == (2 if url.startswith("sqlite") else 1)


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_process_that_dies_leaves_the_work_to_the_one_that_asked(town, spawned, monkeypatch):
    monkeypatch.setattr(parallel, "_serve", dies)
    assert town.verify(processes=2) == []
    assert spawned == [2]


def dies(url, end):
    """In the place of a process's work."""
    raise SystemExit(1)


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_writer_that_never_rests_leaves_it_to_one(town, monkeypatch):
    monkeypatch.setattr(parallel, "_moment", lambda connection: object())
    assert town.verify(processes=2) == []


def test_spends_of_no_release_are_found(town, edit):
    edit(f"INSERT INTO spends ({SPENDS}) SELECT {STRAY} FROM spends WHERE first_step = 4")
    assert re.search("4 spends belong to no release", " ".join(town.verify()))


def test_a_small_ledger_is_read_by_one(ledger, publish, spawned):
    publish()
    assert ledger.verify(processes=2) == []
    assert spawned == []

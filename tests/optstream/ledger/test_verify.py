"""Every edit of a ledger of several streams and budgets is found."""

import pytest

SPENDS = "grant_id, release_id, generation, position, first_step, n_steps, document"
STRAY = SPENDS.replace("release_id", "release_id + 9999")
TAMPERING = {
    "UPDATE events SET at = '2020' WHERE number = 2": "was changed after it was written",
    "DELETE FROM events WHERE number = 3": "events are missing",
    "UPDATE spends SET document = replace(document, '1/8', '1/9') WHERE first_step = 4": "its spends are not",
    "UPDATE spends SET document = 'nothing' WHERE first_step = 0": "its spends are not",
    "DELETE FROM spends WHERE first_step = 4": "its spends are gone",
    f"INSERT INTO spends ({SPENDS}) SELECT {STRAY} FROM spends WHERE first_step = 4": "4 spends belong to no",
    "UPDATE releases SET state = 'VOID' WHERE revision = 0": "differs from what its events record in state",
    "DELETE FROM releases WHERE period = 'day 0'": "its row is gone",
    "UPDATE grants SET epsilon = '1/8'": "differs from stream",
    "UPDATE grants SET longest_spend = 0": "its longest spend",
    "UPDATE streams SET head = 'x'": "its last event is not",
    "DELETE FROM grants WHERE name = 'alone'": "stream 'third': its privacy budget is missing",
}


@pytest.fixture
def town(ledger, publish, kit):
    """Two streams that share a budget and two that have one each."""
    for stream, grant in (("second", "customers"), ("third", "alone"), ("fourth", "also alone")):
        ledger.enrol(kit.terms(stream, grant), kit.now)
    for stream in ("load", "second", "third", "fourth"):
        publish("day 0", kit.plan(0, "1/8"), stream=stream)
        publish("day 1", kit.plan(4, "1/8"), stream=stream)
    return ledger


@pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)], indirect=True
)
@pytest.mark.parametrize("statement", TAMPERING)
def test_an_edit_is_found(town, edit, statement):
    assert town.verify() == []
    edit(statement)
    assert TAMPERING[statement] in " ".join(town.verify())


def test_an_overspend_of_two_streams_is_found(town, kit, publish, let_through):
    """Each by itself is within the budget."""
    for stream in ("load", "second"):
        assert town.verify() == []
        publish("day 9", kit.plan(100, "3/16"), stream=stream)
    assert "more than 1" in " ".join(town.verify())

"""The page of a day: in order, complete, and with the command that helps."""

from datetime import date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from optstream.ledger import ReleaseEvent, ReleaseState
from tasks.monitor.days import State
from tasks.pages.day import KINDS, DayFacts, day_page, read_day
from tasks.trusted.verdicts import ResultFile
from tests.tasks.pages.snapshots import AT, FIRST


def shown(*arguments):
    found = day_page(*arguments)
    assert found is not None
    return SimpleNamespace(**found)


def detail_of(snapshot, facts=None, state=State.PUBLISHED, **changes):
    return shown(snapshot(states=[state] * 3, **changes), facts or DayFacts(), FIRST)


def test_what_happened_is_told_in_order_from_all_sources(snapshot):
    result = ResultFile(Path("x.json"), FIRST, FIRST, AT - timedelta(minutes=1), "raw")
    events = (ReleaseEvent(AT, "reserved", 0), ReleaseEvent(AT + timedelta(seconds=1), "something new", 0))
    found = detail_of(snapshot, DayFacts(results=(result,), events=events))
    assert [one.words for one in found.happened] == [
        "The suite raw judged it",
        KINDS["reserved"],
        "Something new",
    ]
    assert [one.at for one in found.happened] == sorted(one.at for one in found.happened)


COMMANDS = {
    State.PUBLISHED: "",
    State.RESTATED: "",
    State.LOST: "optstream publish --config two-regions.toml 2016-06-01",
    State.WITHDRAWN: "optstream run --config two-regions.toml --date 2016-06-01 --restate",
    State.VOID: "optstream run --config two-regions.toml --date 2016-06-01 --restate",
    State.MISSING: "optstream run --config two-regions.toml --date 2016-06-01",
    State.FAILED: "optstream run",
    State.LATE: "optstream run",
    State.HELD: "",
    State.WAITING: "",
    State.RUNNING: "",
}


@pytest.mark.parametrize("state", State)
def test_every_state_has_something_to_do(snapshot, state):
    (words, command), *_, (_, last) = detail_of(snapshot, state=state).actions
    assert command.startswith(COMMANDS[state])
    assert bool(command) == bool(COMMANDS[state])
    assert words
    assert last.endswith("--dry-run")


def test_a_released_day_is_read_from_ledger_and_folders(installation):
    day = date(2016, 6, 1)
    installation.released(day)
    found = read_day(installation.settings, day)
    assert [one.kind for one in found.events][-1] == "published"
    assert [one.state for one in found.records] == [ReleaseState.PUBLISHED]
    assert {one.suite for one in found.results} >= {"raw"}
    assert found.objected == frozenset()
    raw = next(one for one in found.results if one.suite == "raw")
    for said, objects in (
        (b'{"success": false}', True),
        (b'{"success": true}', False),
        (b"[]", False),
        (b"{", False),
    ):
        raw.path.write_bytes(said)
        assert (raw.path.name in read_day(installation.settings, day).objected) is objects, said
    assert found.curve["spans"][0]["lines"][0][0]["label"] == "FR"
    assert found.arrival is not None
    assert set(found.arrival.files) == {"84", "11"}
    assert all(one.size > 0 and one.written for own in found.files.values() for one in own)
    assert set(found.files) == {"84", "11"}
    assert all(isinstance(one.at, datetime) for one in found.events)
    assert read_day(installation.settings, day + timedelta(days=9)).records == ()

"""The page of a day: in order, complete, and with the command that helps."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest

from optstream.ledger import ReleaseEvent, ReleaseRecord, ReleaseState
from optstream.privacy import StepSpend
from tasks.ingest import Arrival
from tasks.ingest.formats import FileFacts
from tasks.monitor.view import Kind, State
from tasks.reports.operator import DataDoc
from tasks.trusted.verdicts import ResultFile
from tasks.ui.day_facts import DayFacts, read_day
from tasks.ui.runs import RunLink, StreamRun
from tasks.ui.views.day_page import day_page
from tasks.ui.views.happenings import KINDS
from tests.tasks.conftest import DAY
from tests.tasks.ui.conftest import AT, FIRST, alarm


def record(revision=0, state=ReleaseState.PUBLISHED, **changes):
    spends = (StepSpend(0, "samples", 0, (Fraction(1, 4),) * 2, Fraction(1), 1),)
    known = {
        "measurements_hash": "m", "staged_hash": "s", "published_name": "n", "reason": None,
        "withdrawn": None, "compromised": None, **changes,
    }  # fmt: skip
    return ReleaseRecord(
        "2016-06-01", revision, state, 0, 2, **known, amendment=0, stream="two-regions", owner="o",
        lease_until=AT, fencing_token=1, drawing=False, redraws=0, spends=spends,
    )  # fmt: skip


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


def test_a_suite_leads_to_its_page_where_there_is_one(snapshot):
    results = tuple(ResultFile(Path(f"{name}.json"), FIRST, FIRST, AT, name) for name in ("raw", "release"))
    docs = (DataDoc(FIRST, FIRST, AT, "raw", "raw.html"),)
    found = detail_of(snapshot, DayFacts(results=results), docs=docs)
    assert {one.words: one.doc for one in found.happened} == {
        "The suite raw judged it": "raw.html",
        "The suite release judged it": "",
    }


def test_a_suite_that_objects_is_told_to(snapshot, tmp_path):
    one, several = (
        ResultFile(Path(f"{name}.json"), FIRST, FIRST + timedelta(days=more), AT, name)
        for name, more in (("raw", 0), ("release", 1))
    )
    found = detail_of(
        snapshot, DayFacts(results=(several, one), objected=frozenset({"raw.json", "release.json"}))
    )
    assert [happening.words for happening in found.happened] == [
        "The suite raw judged it, and objects to it",
        "The suite release judged it, and objects to it or to another day of its run",
    ]


def test_dumps_and_runs_are_told_among_the_rest(snapshot):
    parent = RunLink("night", "http://p/2")
    done = StreamRun("day", "Completed", AT, AT + timedelta(minutes=2), (), "http://p/1", parent)
    begun = StreamRun("again", "Running", AT + timedelta(minutes=4), None, (), "http://p/3")
    file = FileFacts(1000, AT + timedelta(minutes=1))
    found = shown(
        snapshot(),
        DayFacts(arrival=Arrival(FIRST, (), {}, {}, {}), files={"84": (file,)}),
        FIRST,
        (begun, done),
    )
    assert [(one.words, one.runs) for one in found.happened] == [
        ("A run of it began", (done.link, parent)),
        ("The file of its dump was written, of 84: 1 file, 1.0 kB", ()),
        ("A run of it ended, completed", (done.link,)),
        ("A run of it began", (begun.link,)),
    ]


def test_restatements_stand_side_by_side(snapshot):
    records = (record(state=ReleaseState.VOID, reason="a full disk"), record(1, compromised="a stolen disk"))
    events = tuple(ReleaseEvent(AT, "reserved", number) for number in (0, 1))
    found = detail_of(snapshot, DayFacts(records=records, events=events, vintages={1: (object(),)}))
    rows = [(one.revision, one.state, one.epsilon, one.n_estimates, one.note) for one in found.revisions]
    assert rows == [(0, "void", Fraction(1, 2), 1, "a full disk"), (1, "published", inf, 2, "a stolen disk")]
    assert [one.words for one in found.happened][-1] == f"{KINDS['reserved']} (revision 1)"


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
    first, *more = detail_of(snapshot, state=state).actions
    assert first.command.startswith(COMMANDS[state])
    assert bool(first.command) == bool(COMMANDS[state])
    assert first.words
    assert more[-1].command.endswith("--dry-run")


def test_what_readers_have_can_be_taken_back_first_of_all_where_it_has_an_alarm(snapshot):
    taken_back = "optstream withdraw --config two-regions.toml --date 2016-06-01 --reason"
    quiet, told = detail_of(snapshot), detail_of(snapshot, alarms=[alarm(Kind.FAR)])
    assert quiet.actions[0].words == "Nothing needs to be done: readers have it"
    for first, *_ in (quiet.actions[1:], told.actions):
        assert first.command.startswith(taken_back)


def test_a_day_is_measured_again_only_where_something_was_kept_back(snapshot, settings):
    budget = settings.budget.model_copy(update={"restatement_share": Fraction(0)})
    none = replace(snapshot(states=[State.VOID]), settings=settings.model_copy(update={"budget": budget}))
    found = shown(none, DayFacts(), FIRST)
    assert [one.command.endswith("--restate") for one in found.actions] == [False, False]
    assert "`[budget] restatement_share` keeps nothing back" in found.actions[0].words


def test_figures_of_a_published_day_are_one_click_away(snapshot):
    assert detail_of(snapshot).root == "FR"
    assert detail_of(snapshot, state=State.LATE).root == ""


def test_a_configuration_s_name_is_quoted(snapshot):
    hostile = "$(rm -rf ~); 'x'"
    for action in detail_of(snapshot, name=hostile).actions[1:]:
        assert "--config '$(rm -rf ~); '\"'\"'x'\"'\"'.toml'" in action.command


def test_the_lineage_goes_as_far_as_the_day_came(snapshot):
    arrival = Arrival(FIRST, (), {"84": (), "11": ()}, {}, {})
    partly = Arrival(FIRST, (), {"84": (Path("a"), Path("b"))}, {"11": "no marker"}, {})

    def names(*records, dump=arrival):
        return [name for name, _ in detail_of(snapshot, DayFacts(arrival=dump, records=records)).lineage]

    assert names() == ["Dumps"]
    undrawn = record(state=ReleaseState.RESERVED, measurements_hash=None, staged_hash=None)
    assert names(undrawn) == ["Dumps", "Charged"]
    assert names(record(state=ReleaseState.DRAWN, staged_hash=None)) == ["Dumps", "Charged", "Measured"]
    assert names(record()) == ["Dumps", "Charged", "Measured", "Estimated"]
    dumps = detail_of(snapshot, DayFacts(arrival=partly)).dumps
    assert {one.region: one.words for one in dumps} == {"84": "complete, 2 files", "11": "no marker"}


def test_days_beside_it_and_days_that_are_not_there(snapshot):
    stream = snapshot(
        states=[State.PUBLISHED] * 2, alarms=[alarm(), alarm(Kind.VOID, FIRST + timedelta(days=1))]
    )
    first = shown(stream, DayFacts(), FIRST)
    assert (first.before, first.after) == (None, FIRST + timedelta(days=1))
    assert [one.kind for one in first.alarms] == [Kind.LATE]
    assert day_page(stream, DayFacts(), FIRST - timedelta(days=1)) is None


def test_a_day_without_a_ledger_can_be_read(small):
    stream = small()
    found = read_day(stream.settings, DAY)
    assert (found.records, found.events, found.results) == ((), (), ())


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
    assert found.arrival is not None
    assert set(found.arrival.files) == {"84", "11"}
    assert all(one.size > 0 and one.written for own in found.files.values() for one in own)
    assert set(found.files) == {"84", "11"}
    assert all(isinstance(one.at, datetime) for one in found.events)
    assert read_day(installation.settings, day + timedelta(days=9)).records == ()

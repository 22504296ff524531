"""The page of a day, complete and with the command that helps; the deployment card that a night leaves."""

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from optstream.catalogue import check_files
from optstream.ledger import ReleaseEvent, ReleaseState
from tasks.monitor.days import State
from tasks.operate.keys import new_key
from tasks.pages.day import KINDS, DayFacts, day_page, read_day
from tasks.pages.node import Span, node_page, read_nodes
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


DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
NAMES = ("deployment-card.json", "deployment-card.html")


def card_of(installation):
    return json.loads((installation.folder / "published/deployment-card.json").read_text())["deployment"]


def test_a_night_leaves_it_signed_and_the_same_whenever_it_runs(installation):
    path = installation.folder / "optstream.toml"
    keyed = '[published]\nsigning_key = "trusted/signing.pem"'
    path.write_text(path.read_text().replace("[published]", keyed))
    public = new_key(installation.settings.signing_key_file)
    installation.release(DAY)
    installation.write_pages()
    published = installation.folder / "published"
    first = {name: (published / name).read_bytes() for name in NAMES}
    assert check_files(published, public) == []
    installation.later(days=3)
    installation.write_pages()
    assert {name: (published / name).read_bytes() for name in NAMES} == first
    (published / NAMES[1]).write_bytes(first[NAMES[1]].replace(b"Pure DP", b"No DP"))
    (line,) = check_files(published, public)
    assert line.startswith(NAMES[1])


def test_days_keep_what_they_were_drawn_under(installation):
    """Bounds and schema of each day are its statement's, whatever the configuration says by now."""
    path = installation.folder / "optstream.toml"
    before = installation.settings.privacy.bounds
    installation.release(DAY)
    text = path.read_text()
    path.write_text(text.replace('bounds = ["0", "20000"]', 'bounds = ["0", "77"]'))
    assert installation.settings.privacy.bounds != before
    installation.write_pages()
    card, page = str(card_of(installation)), (installation.folder / "published/index.html").read_text()
    assert "0 to 20,000" in card
    assert "0 to 77" not in card
    assert "'77'" not in card
    installation.release(NEXT)
    installation.write_pages()
    card, page = str(card_of(installation)), (installation.folder / "published/index.html").read_text()
    privacy = page.partition('id="privacy"')[2].partition("</section>")[0]
    for said in (card, privacy):
        assert "clamped to 0 to 20,000" in said
        assert "clamped to 0 to 77" in said
    assert "2016-06-01 to 2016-06-01 (1 day(s)): epsilon at most" in card


def lines_of(installation, node, *days):
    page = node_page(installation.settings, node, Span(*days))
    return page, page["curve"]["spans"][0]["at"], page["curve"]["spans"][0]["lines"][0]


def test_what_is_shown_is_what_readers_have(installation):
    installation.released(FIRST, date(2016, 6, 2))
    second = date(2016, 6, 2)
    page, at, lines = lines_of(installation, "FR", second, second)
    by_kind = {one["kind"]: one["values"] for one in lines}
    assert at[0] == 1_464_818_400  # 2016-06-02 00:00 in Paris
    assert len(at) == 48
    both = zip(*(one["values"] for one in lines if one["kind"] == "child"), strict=True)
    assert [sum(pair) for pair in both] == pytest.approx(by_kind["value"], rel=1e-5)
    assert None not in by_kind["day-before"]
    assert "week-before" not in by_kind
    published = read_nodes(installation.settings, {"FR"}, [second])
    assert by_kind["value"] == pytest.approx(published["value"].to_list(), rel=1e-5)
    assert (page["parent"], page["children"], page["curve"]["zone"]) == (None, ("84", "11"), "Europe/Paris")
    reasons = {kind: why for kind, _, _, why in page["shown"]}
    assert {kind for kind, why in reasons.items() if why} == {"week-before", "replaced"}
    page, _, _ = lines_of(installation, "84", second, second)
    assert page["parent"] == "FR"
    assert "child" in {kind for kind, _, _, why in page["shown"] if why}


def test_a_restatement_is_shown_with_what_it_replaced_as_that_was_published(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.release(FIRST)
    before = read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    installation.release(FIRST, restate=True)
    _, _, lines = lines_of(installation, "FR", FIRST, FIRST)
    (old,) = [one for one in lines if one["kind"] == "replaced"]
    assert old["label"] == "revision 0, vintage 0"
    assert old["values"] == pytest.approx(before, rel=1e-5)
    assert before != read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    (file,) = (installation.folder / "published/superseded").glob("*/*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    assert not [one for one in lines_of(installation, "FR", FIRST, FIRST)[2] if one["kind"] == "replaced"]

"""The operators' pages, metrics and card, by looks at real streams, and the assets that pages load."""

import re
from datetime import date, timedelta
from fractions import Fraction
from hashlib import sha256
from math import inf
from pathlib import Path

import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from flows.web.poll import METRICS, metrics_text
from optstream.catalogue import check_files
from optstream.ledger import ReleaseState
from tasks.monitor.alarms import Kind
from tasks.monitor.days import State
from tasks.operate.keys import new_key
from tasks.pages.day import DayFacts, day_page, read_day
from tasks.pages.node import Span, node_page, read_nodes
from tasks.pages.render import ASSETS, asset, page
from tasks.pages.snapshot import Snapshot, take_snapshot
from tasks.pages.stream import Need, overview, stream_page
from tests.failing import raising
from tests.tasks.conftest import NOW
from tests.tasks.pages.conftest import AT, FIRST, alarm

SECOND = date(2016, 6, 2)


def test_trouble_is_a_value_and_the_look_before_stays(small):
    file = small().settings.file
    before = take_snapshot(file, NOW)
    file.write_text("[stream\n")
    after = take_snapshot(file, NOW + timedelta(minutes=1), before)
    assert (after.view, after.at) == (before.view, NOW)
    assert "optstream.toml" in (after.problem or "")
    never = take_snapshot(file, NOW)
    assert (never.stream, never.view) == ("optstream", None)
    assert take_snapshot(file.with_name("absent.toml"), NOW).problem


@pytest.mark.parametrize("part", ["read_memory", "watch", "result_files"])
def test_a_defect_is_a_value_too(small, monkeypatch, part):
    """Raised, it would end the loop that looks at all streams."""
    monkeypatch.setattr(f"tasks.pages.snapshot.{part}", raising(NotADirectoryError("a place")))
    assert "NotADirectoryError" in (take_snapshot(small().settings.file, NOW).problem or "")


def test_streams_are_sorted_by_what_needs_a_person(snapshot):
    warning = alarm(Kind.EXPIRING)
    streams = [
        snapshot("calm"),
        snapshot("b-late", alarms=[alarm()]),
        snapshot("warned", alarms=[warning]),
        snapshot("a-late", alarms=[warning, alarm()]),
        snapshot("gone", problem="the ledger refuses"),
    ]
    found = overview(streams, AT + timedelta(minutes=12))
    assert [row.name for row in found] == ["gone", "a-late", "b-late", "warned", "calm"]
    assert [row.need for row in found] == [Need.BLIND, Need.ALARM, Need.ALARM, Need.WARNING, Need.NOTHING]


def metrics_of(*snapshots):
    families = text_string_to_metric_families(metrics_text(snapshots, AT).decode())
    found = {}
    for sample in (one for family in families for one in family.samples):
        others = [value for name, value in sorted(sample.labels.items()) if name != "stream"]
        found[(sample.name, sample.labels["stream"], *others)] = sample.value
    return found


def test_the_metrics_of_a_stream_that_is_seen(snapshot):
    states = [State.PUBLISHED] * 69 + [State.LATE, State.VOID]
    found = metrics_of(snapshot(states=states, alarms=[alarm(), alarm(day=None)]))
    assert {name for name, *_ in found} == {f"optstream_{name}" for name in METRICS if name != "step_seconds"}
    for name, *labels, value in (
        ("look_success", 1),
        ("days", "published", 69),
        ("days", "late", 1),
        ("days", "void", 1),
        ("days", "failed", 0),
        ("alarms", "late", "alarm", 2),
        ("alarms", "late", "warning", 0),
        ("window_epsilon_headroom", 0.5),
        ("run_seconds", 300),
        # the 69th day, 8 August, ended at 22:00 UTC
        ("newest_day_age_seconds", (23 * 24 + 8) * 3600),
    ):
        assert found[f"optstream_{name}", "two-regions", *labels] == value


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.depends_on_readings])
def test_no_metric_depends_on_readings(snapshot, kind):
    assert metrics_text([snapshot(alarms=[alarm(kind)])], AT) == metrics_text([snapshot()], AT)
    assert metrics_text([snapshot(alarms=[alarm()])], AT) != metrics_text([snapshot()], AT)


def test_the_metrics_of_trouble_and_of_hostile_names(snapshot):
    name = 'a"} 1\nb\\'
    new = Snapshot(Path("new.toml"), "new", AT, problem="no")
    found = metrics_of(new, snapshot("other", problem="no"), snapshot(name, spent=inf))
    assert [key for key in found if key[1] == "new"] == [("optstream_look_success", "new")]
    assert found["optstream_look_success", "new"] == found["optstream_look_success", "other"] == 0
    assert found["optstream_days", "other", "published"] == 70
    assert found["optstream_window_epsilon_charged", name] == inf
    assert found["optstream_window_epsilon_headroom", name] == -inf
    assert metrics_of(snapshot(spent=Fraction(0)))["optstream_window_epsilon_headroom", "two-regions"] == 1


def drawn(document):
    """Values by label of the first span and node."""
    return {one["label"]: one["values"] for one in document["spans"][0]["lines"][0]}


@pytest.fixture
def watched(installation):
    installation.configure("[trusted]", "[watch]\nfirst_day = 2016-06-01\n[trusted]")
    installation.release(FIRST, SECOND)
    installation.write_pages()
    installation.now = installation.settings.calendar.ends_at(SECOND) + timedelta(hours=40)
    return installation


def test_series_errors_arrivals_run_times_and_windows_are_plots(watched):
    snapshot = take_snapshot(watched.settings.file, watched.now)
    shown = stream_page(snapshot, watched.now)
    rows = pl.read_parquet(watched.folder / "published/data", hive_partitioning=True).sort("date", "step")
    root = rows.filter(pl.col("node") == "FR")
    assert shown["curves"]["nodes"][0] == "FR"
    assert drawn(shown["curves"])["FR"] == pytest.approx(root["load_mw"].to_list(), rel=1e-5)
    (row,) = overview([snapshot], watched.now)
    means = root.group_by("date", maintain_order=True).agg(pl.col("load_mw").mean())["load_mw"]
    assert drawn(row.curve)["FR"] == pytest.approx(means.to_list(), rel=1e-5)
    plots = {title: drawn(document) for title, _, document in shown["plots"]}
    assert set(plots) == {"Error by level", "Arrival by region", "Run time"}
    assert list(plots["Error by level"]) == ["level 0", "level 1"]
    kept = snapshot.view.facts.figures.filter(pl.col("node") == "FR")["model"]
    assert sorted(plots["Error by level"]["level 0"]) == pytest.approx(sorted(kept), rel=1e-5)
    assert set(plots["Arrival by region"]) == {"84", "11"}
    assert len(plots["Run time"]["run time"]) == 2
    windows = drawn(shown["windows"])
    assert 0 < max(windows["charged"]) <= windows["may be charged"][0] == watched.settings.model.epsilon


def test_the_written_page_is_the_live_one_and_says_when_its_curves_are_old(watched):
    def values():
        return stream_page(take_snapshot(watched.settings.file, watched.now), watched.now)

    watched.write_pages()
    written = watched.settings.report_file.read_text()
    where = {"home": "/s", "links": None, "contracts": "/s/contracts/"}
    live = page("stream", **where, now=watched.now, refresh_seconds=30, **values()).decode()
    for said in ("was not complete by", "Charged to the worst window", ">late</b>", "Error by level"):
        assert said in written
        assert said in live
    assert "/static/" in live
    assert "/static/" not in written
    assert "Loss over longer spans" in written, "a night composes it"
    assert not values()["curves_are_old"]
    watched.withdraw(SECOND)
    assert values()["curves_are_old"]
    watched.write_pages()
    assert not values()["curves_are_old"]


RUN = "optstream run --config two-regions.toml --date 2016-06-01"
COMMANDS = {
    State.LOST: "optstream publish --config two-regions.toml 2016-06-01",
    State.WITHDRAWN: f"{RUN} --restate",
    State.VOID: f"{RUN} --restate",
    State.MISSING: RUN,
    State.FAILED: RUN,
    State.LATE: RUN,
}


@pytest.mark.parametrize("state", State)
def test_every_state_has_something_to_do(snapshot, state):
    (words, command), *_, (_, last) = day_page(snapshot(states=[state] * 3), DayFacts(), FIRST)["actions"]
    assert words
    assert command == COMMANDS.get(state, "")
    assert last == f"{RUN} --dry-run"


def test_a_released_day_is_read_from_ledger_and_folders(installation):
    installation.released(FIRST)
    found = read_day(installation.settings, FIRST)
    assert [one.kind for one in found.events][-1] == "published"
    assert [one.state for one in found.records] == [ReleaseState.PUBLISHED]
    assert found.curve["spans"][0]["lines"][0][0]["label"] == "FR"
    assert set(found.arrival.files) == set(found.files) == {"84", "11"}
    assert all(one.size > 0 and one.written for own in found.files.values() for one in own)
    assert read_day(installation.settings, FIRST + timedelta(days=9)).records == ()
    assert found.objected == frozenset()
    raw = next(one for one in found.results if one.suite == "raw")
    for said in (b'{"success": false}', b'{"success": true}', b"[]", b"{"):
        raw.path.write_bytes(said)
        assert (raw.path.name in read_day(installation.settings, FIRST).objected) is (b"false" in said), said


def lines_of(installation, node, day):
    shown = node_page(installation.settings, node, Span(day, day))
    return shown, shown["curve"]["spans"][0]["at"], shown["curve"]["spans"][0]["lines"][0]


def test_the_curve_of_a_node_is_what_readers_have(installation):
    installation.released(FIRST, SECOND)
    shown, at, lines = lines_of(installation, "FR", SECOND)
    by_kind = {one["kind"]: one["values"] for one in lines}
    assert at[0] == 1_464_818_400  # 2016-06-02 00:00 in Paris
    assert len(at) == 48
    both = zip(*(one["values"] for one in lines if one["kind"] == "child"), strict=True)
    assert [sum(pair) for pair in both] == pytest.approx(by_kind["value"], rel=1e-5)
    assert None not in by_kind["day-before"]
    assert "week-before" not in by_kind
    published = read_nodes(installation.settings, {"FR"}, [SECOND])
    assert by_kind["value"] == pytest.approx(published["value"].to_list(), rel=1e-5)
    assert (shown["parent"], shown["children"]) == (None, ("84", "11"))
    assert shown["curve"]["zone"] == "Europe/Paris"
    assert {kind for kind, _, _, why in shown["shown"] if why} == {"week-before", "replaced"}
    shown, _, _ = lines_of(installation, "84", SECOND)
    assert shown["parent"] == "FR"
    assert "child" in {kind for kind, _, _, why in shown["shown"] if why}


def test_a_restatement_is_shown_with_what_it_replaced_as_that_was_published(installation):
    def replaced():
        return [one for one in lines_of(installation, "FR", FIRST)[2] if one["kind"] == "replaced"]

    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.release(FIRST)
    before = read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    installation.release(FIRST, restate=True)
    (old,) = replaced()
    assert old["label"] == "revision 0, vintage 0"
    assert old["values"] == pytest.approx(before, rel=1e-5)
    assert before != read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    (file,) = (installation.folder / "published/superseded").glob("*/*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    assert replaced() == []


CARDS = ("deployment-card.json", "deployment-card.html")


def test_a_night_leaves_a_card_signed_and_the_same_whenever_it_runs(installation):
    installation.configure("[published]", '[published]\nsigning_key = "trusted/signing.pem"')
    public = new_key(installation.settings.signing_key_file)
    installation.release(FIRST)
    published = installation.folder / "published"

    def cards():
        installation.write_pages()
        return {name: (published / name).read_bytes() for name in CARDS}

    first = cards()
    assert check_files(published, public) == []
    installation.later(days=3)
    assert cards() == first
    (published / CARDS[1]).write_bytes(first[CARDS[1]].replace(b"Pure DP", b"No DP"))
    (line,) = check_files(published, public)
    assert line.startswith(CARDS[1])


TEMPLATES = Path(__file__).parents[3] / "tasks/pages/templates"
RELEASED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot-LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def test_vendored_files_are_the_released_ones_with_their_licence():
    folder = TEMPLATES.parent / "static/vendored"
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} == RELEASED
    assert "MIT" in (folder / "uPlot-LICENSE.txt").read_text()


def test_templates_load_what_is_served_and_hold_no_script_or_style_of_their_own():
    for template in TEMPLATES.iterdir():
        text = template.read_text()
        assert set(re.findall(r"/static/([\w.-]+)", text)) <= set(ASSETS), template.name
        assert not re.search(r"style=|\|safe|\son\w+=", text), template.name
        inline = re.findall(r"<script(?![^>]* src=)(?![^>]*application/json)[^>]*>(.*)", text)
        assert inline == (["{{ script }}</script>{% endif %}"] if template.name == "base.html.jinja" else [])
    assert not re.search(rb"url\(|@import", asset("page.css")[1])

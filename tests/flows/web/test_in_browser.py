"""Every page in a real browser: each width and scheme, by keyboard, by axe-core; nothing is fetched."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe
from starlette.testclient import TestClient

from flows.web.app import DATA_DOCS, application
from flows.web.poll import Looks
from tasks.monitor.alarms import Kind
from tasks.monitor.days import State
from tasks.monitor.facts import Comparison, Surprises
from tasks.pages.public import public_page, published_chart
from tasks.pages.snapshot import RunLink, RunStep, StreamRun
from tasks.pages.stream import static_page
from tasks.trusted.verdicts import ResultFile
from tests.browser import BUT_CONTRAST, visit
from tests.by_night import few
from tests.failing import raising
from tests.flows.web.test_app import SECRET, basic
from tests.tasks.pages.conftest import AT, FIRST, N_DAYS, alarm, facts_of, many_days, settings, snapshot
from tests.tasks.two_regions import CONFIGURATION, Installation, in_another_unit

__all__ = ["many_days", "settings", "snapshot"]
LOOKS = (Path(__file__).parents[2] / "tasks/pages/looks.js").read_text(encoding="utf-8")
BY_DAY = ((360, "light"), (1440, "dark"))
SIZES = few([BY_DAY, ((360, "dark"), (768, "light"), (768, "dark"), (1440, "light"))], 1)
"""Widths and schemes in which a page is looked at in one visit."""
SIDEWAYS = """() => [...document.querySelectorAll(".scroll, pre")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.getAttribute("aria-label"))"""
"""What scrolls sideways."""


@contextmanager
def served(app) -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # a browser may ask before the thread does
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def opened(chromium, looks, path="/", **size):
    """What a browser sees at a path of the application over these looks, with the password."""
    with (
        served(application(looks, SECRET, looks.clock)) as origin,
        visit(chromium, allowed=(origin,), **size) as seen,
    ):
        seen.origin = origin
        seen.page.set_extra_http_headers(basic())
        seen.page.goto(origin + path)
        yield seen


def in_each(seen, sizes) -> Iterator[str]:
    for width, scheme in sizes:
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.reload()
        yield scheme


def assert_readable(seen, *, wide=False):
    """Unfold and judge the page that is open; return what `LOOKS` found. wide: whether parts may scroll."""
    for details in seen.page.locator("details").all():
        details.evaluate("e => { e.open = true }")
    looks, sideways = seen.page.evaluate(LOOKS), seen.page.evaluate(SIDEWAYS)
    assert (seen.errors, seen.refused) == ([], [])
    for fault in ("dangling", "faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    assert wide or sideways == []
    assert looks["landmarks"] == [1, 1, 1, 1]
    return looks


class Shown(Looks):
    def __init__(self, *snapshots, seconds=30):
        super().__init__([], seconds, lambda: AT, runs=lambda *_: (RUN,))
        self._found = dict(enumerate(snapshots))


RUN = StreamRun(
    "two-regions 2016-07-31",
    "Completed",
    AT - timedelta(minutes=9),
    AT - timedelta(minutes=4),
    (
        RunStep("ingest", AT - timedelta(minutes=9), AT - timedelta(minutes=7)),
        RunStep("draw", AT - timedelta(minutes=7), AT - timedelta(minutes=4)),
    ),
    "http://127.0.0.1:4200/runs/flow-run/1",
    RunLink("two-regions night", "http://127.0.0.1:4200/runs/flow-run/2"),
)


NEWEST = FIRST + timedelta(days=49)
USUAL, FAR = Comparison(NEWEST, "84", 6543.2, 6789.1, 3.0), Comparison(NEWEST, "11", 6.5, 6789.1, 3.0)


@pytest.fixture
def streams(snapshot):
    late = alarm(day=FIRST + timedelta(days=55), node="84")
    budget = [alarm(Kind.BUDGET, FIRST + timedelta(days=number)) for number in range(50, 60)]
    return (
        snapshot("calm"),
        snapshot(
            "every-state", [*[State.PUBLISHED] * 50, *State], [late, *budget], Fraction(1),
            since={late.key: AT - timedelta(hours=7)}, runs=(RUN,),
            docs=(ResultFile(Path("2016-06-01-raw.html"), FIRST, FIRST, AT, "raw"),),
            surprises=Surprises((USUAL, FAR), (FAR,)),
        ),
        snapshot("warned", alarms=[alarm(Kind.EXPIRING)]),
        snapshot("blind", problem="the ledger's database refuses: see that it runs, then look again"),
    )  # fmt: skip


REACHED_BY_TAB = LOOKS.replace("a[href], summary", "a[href]:not([tabindex='-1']), summary")
LIVE = [
    "/",
    "/streams/every-state",
    "/streams/every-state/days/2016-07-30",
    "/streams/every-state/nodes?find=8",
]
STREAM = "<img src=x onerror='window.hit = 1'>&lt;b\"'"


@pytest.fixture
def written(many_days, tmp_path, snapshot):
    """`written(name)`: the file of a page with curves; of the operators', with every state."""

    def write(name):
        file, facts = tmp_path / f"{name}.html", facts_of(many_days)
        if name == "public":
            file.write_bytes(public_page(facts))
            return file
        found = snapshot(
            "simulated-load", tuple(State), [alarm(node="84")], unwritten="a disk is full",
            curves={"catalogue": "", "chart": published_chart(facts), "faint": ["a level is so"]},
            docs=(ResultFile(Path("a.html"), FIRST, FIRST, AT, "raw"),),
        )  # fmt: skip
        file.write_bytes(static_page(found))
        return file

    return write


def assert_accessible(seen, sizes):
    """Assert that axe-core finds nothing; by day the contrasts are `assert_readable`'s."""
    found = Axe().run(seen.page, options=BUT_CONTRAST if sizes == BY_DAY else DEFAULT_OPTIONS)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("path", LIVE)
def test_a_live_page_can_be_read(chromium, streams, path, sizes):
    with opened(chromium, Shown(*streams), path) as seen:
        for _ in in_each(seen, sizes):
            assert_readable(seen)
        assert_accessible(seen, sizes)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", ["public", "trusted"])
def test_a_static_page_can_be_read(chromium, written, name, sizes):
    uri = written(name).as_uri()
    with visit(chromium, allowed=(uri,)) as seen:
        seen.page.goto(uri)
        for scheme in in_each(seen, sizes):
            looks = assert_readable(seen, wide=True)
            shown = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (shown != "rgb(255, 255, 255)") == (scheme == "dark")
        assert_accessible(seen, sizes)
        text = seen.page.inner_text("body")
    assert {*seen.requests} == {uri}
    assert (looks["language"], looks["title"].split(":")[0]) == ("en", "simulated-load")
    assert (f"{N_DAYS - 1} days are published" in text) == (name == "public")
    assert ("a disk is full" in text) == (name == "trusted")


IMAGE = "document.body.append(Object.assign(new Image(), {src: 'https://example.org/x.png'}))"
SCRIPT = """() => {
  const script = document.createElement('script');
  script.textContent = 'document.title = "broken in"';
  document.body.append(script);
}"""


def assert_forbids(seen):
    """Were an image of another host, or a script, ever to come onto the page, its policy would refuse it."""
    for planted in (IMAGE, SCRIPT):
        with seen.page.expect_console_message(lambda said: "Content Security Policy" in said.text):
            seen.page.evaluate(planted)
    assert "broken in" not in seen.page.title()
    assert not [one for one in seen.requests if "example.org" in one]


def test_pages_forbid_themselves_to_fetch_and_to_run_what_is_planted(chromium, streams, written):
    with opened(chromium, Shown(*streams)) as seen:
        assert_forbids(seen)
    file = written("public")
    with visit(chromium, allowed=(file.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        assert_forbids(seen)
    file.write_text(file.read_text().replace("</body>", "<script>window.hit = 1</script></body>"))
    with visit(chromium, allowed=(file.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        assert seen.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in error for error in seen.errors)


@pytest.mark.parametrize("path", few(LIVE, 2))
def test_a_keyboard_reaches_everything_in_order_and_shows_where_it_is(chromium, streams, path):
    with opened(chromium, Shown(*streams), path) as seen:
        looks = seen.page.evaluate(REACHED_BY_TAB)
        reached, outlines = [], set()
        for _ in looks["order"]:
            seen.page.keyboard.press("Tab")
            reached.append(seen.page.evaluate("Number(document.activeElement.dataset.order)"))
            outlines.add(seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
    assert reached == looks["order"]
    assert outlines == {"solid"}


def test_it_refreshes_itself_and_says_when_it_cannot(chromium, snapshot):
    shown = Shown(snapshot("calm"), seconds=1)
    with visit(chromium, allowed=("http://127.0.0.1",)) as seen:
        with served(application(shown, SECRET, lambda: AT)) as origin:
            seen.page.set_extra_http_headers(basic())
            seen.page.goto(origin)
            assert "None of 1 stream needs a person" in seen.page.inner_text("main")
            shown._found[0] = snapshot("calm", alarms=[alarm()])
            seen.page.get_by_text("1 of 1 stream needs a person").wait_for()
            assert seen.page.title() == "1 of 1 need a person: OptStream"
            assert "old" not in seen.page.get_attribute("#fresh", "class")
        seen.page.get_by_text("Could not refresh since").wait_for()
        assert "old" in seen.page.get_attribute("#fresh", "class")
        assert "late" in seen.page.inner_text("main"), "what was seen last stays"


@pytest.mark.parametrize(
    "path", ["/", "/streams/{}", "/streams/{}/days/2016-06-01", "/streams/{}/nodes?find={}"]
)
def test_hostile_names_are_shown_as_text(chromium, snapshot, path):
    stream = snapshot(STREAM, alarms=[alarm(node=STREAM)], runs_problem=STREAM)
    with opened(chromium, Shown(stream), path.format(*[quote(STREAM, safe="")] * 2)) as seen:
        assert STREAM in seen.page.inner_text("body")
        assert seen.page.locator("img").count() == 0
        assert seen.page.evaluate("window.hit") is None
    assert seen.errors == []


HOME = "/streams/two-regions"
DAYS = (date(2016, 6, 1), date(2016, 6, 2))


@pytest.fixture(scope="module")
def looks(tmp_path_factory):
    """Of two published days; on the first, region 84's load is in another unit."""
    folder = tmp_path_factory.mktemp("released")
    (folder / "optstream.toml").write_text(CONFIGURATION + "[watch]\nfirst_day = 2016-06-01\n")
    installation = Installation(folder)
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.simulate(*DAYS)
    in_another_unit(installation, "84", DAYS[0], 1000)
    installation.release(*DAYS)
    installation.release(DAYS[1], restate=True)
    found = Looks([folder / "optstream.toml"], 30, lambda: datetime(2016, 6, 3, 3, tzinfo=UTC))
    found.look()
    return found


@pytest.fixture
def client(looks):
    return TestClient(application(looks, SECRET, looks.clock), base_url="http://127.0.0.1", headers=basic())


def test_two_clicks_lead_from_the_overview_to_a_day_and_its_contract_pages(client, looks):
    assert f'href="{HOME}"' in client.get("/").text
    assert f'href="{HOME}/days/2016-06-02"' in client.get(HOME).text
    (snapshot,) = looks.snapshots
    text = client.get(f"{HOME}/days/2016-06-02").text
    link = f'href="{HOME}/contracts/{snapshot.docs[0].path.name}">'
    for said in ("optstream withdraw --config", "All 2 regions are complete", link):
        assert said in text, said
    none = client.get(f"{HOME}/nodes/84?from=2015-06-01&to=2015-06-01").text
    assert "Nothing is published on these days" in none
    # contract pages open in a sandbox, and no other file does
    for one in snapshot.docs:
        answer = client.get(f"{HOME}/contracts/{one.path.name}")
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == DATA_DOCS["Content-Security-Policy"]
    for file in ("..%2F..%2Finput.key", "x.html", snapshot.docs[0].path.with_suffix(".json").name):
        assert client.get(f"{HOME}/contracts/{file}").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/streams/other",
        f"{HOME}/days/2016-07-01",
        f"{HOME}/days/x",
        f"{HOME}/nodes/75",
        f"{HOME}/nodes/FR?from=2016-06-02&to=2016-06-01",
        f"{HOME}/nodes/FR?from=2016-01-01&to=2016-06-01",
        f"{HOME}/nodes/FR?from=x",
        f"{HOME}/nodes/FR?from=0001-01-01&to=0001-01-01",
    ],
)
def test_what_is_not_there_is_not_found(client, path):
    assert client.get(path).status_code == 404


def test_a_ledger_that_is_gone_is_said_and_hides_nothing_else(client, monkeypatch):
    denied = OSError(13, "Permission denied", "/a/private/place")
    monkeypatch.setattr("flows.web.app.read_day", raising(denied))
    answer = client.get(f"{HOME}/days/2016-06-02")
    assert (answer.status_code, answer.text) == (503, "it cannot be read now\n")
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("size", few(product((360, 1440), ("light", "dark")), 1))
def test_a_curve_is_drawn_read_out_and_zoomed_by_keyboard(looks, chromium, size):
    (width, scheme), path = size, f"{HOME}/nodes/FR"
    with opened(chromium, looks, path, width=width, scheme=scheme) as seen:
        page = seen.page
        page.wait_for_selector(".plot[data-drawn] canvas")
        assert page.get_by_label("band of the total error").is_checked()
        assert not page.get_by_label("band of the noise alone").is_checked()
        for also in ("children, stacked", "the day before", "earlier vintages"):
            page.get_by_label(also).check()
        page.locator(".plot").focus()
        for _ in range(2):
            page.keyboard.press("ArrowLeft")
        said = page.inner_text(".readout")
        assert said.startswith("2016-06-02 23:00 +02:00: FR "), said
        assert all(one in said for one in ("84 ", "the day before ", "revision 0, vintage 0 ")), said
        page.get_by_text("The figures as a table").click()
        first_row = page.locator("tbody th").first.text_content()
        assert first_row == "2016-06-02 23:30 +02:00", "a row is read in the stream's own time, too"
        for key in "+0":
            page.keyboard.press(key)
        found = Axe().run(page)
        for name, place in (("node", path), ("stream", HOME), ("day", f"{HOME}/days/2016-06-02")):
            if name != "node":
                page.goto(seen.origin + place)
            assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), name
            assert page.evaluate(SIDEWAYS) == [], name
    assert found.violations_count == 0, found.generate_report()
    assert (seen.errors, seen.refused) == ([], [])

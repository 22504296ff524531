"""Every page in a real browser: each width and scheme, by keyboard, by axe-core; nothing is fetched."""

from pathlib import Path
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe

from flows.web.app import application
from tasks.monitor.alarms import Kind, alarm
from tasks.monitor.days import State
from tasks.pages.public import public_page, published_chart
from tasks.pages.stream import static_page
from tasks.trusted.verdicts import ResultFile
from tests.browser import BUT_CONTRAST, visit
from tests.by_night import few
from tests.flows.web.conftest import (
    AUTHORIZED,
    BY_DAY,
    LOOKS,
    SECRET,
    SIZES,
    Shown,
    assert_readable,
    in_each,
    opened,
    served,
)
from tests.tasks.pages.conftest import AT, FIRST, N_DAYS, facts_of, many_days
from tests.tasks.pages.conftest import alarm as an_alarm

__all__ = ["many_days"]
REACHED_BY_TAB = LOOKS.replace("a[href], summary", "a[href]:not([tabindex='-1']), summary")
LIVE = [
    "/",
    "/streams/every-state",
    "/streams/every-state/days/2016-07-30",
    "/streams/every-state/nodes?find=8",
]
STATIC = ["public", "trusted"]
STREAM = "<img src=x onerror='window.hit = 1'>&lt;b\"'"


@pytest.fixture
def written(many_days, tmp_path, snapshot):
    """`written(name, facts)`: the file of a page with these curves; of the operators', with every state."""

    def write(name, facts):
        file = tmp_path / f"{name}.html"
        if name == "public":
            file.write_bytes(public_page(facts))
            return file
        late = alarm(Kind.LATE, "simulated-load", "region=84 is late; ask its supplier", FIRST, "84")
        found = snapshot(
            "simulated-load", tuple(State), [late], unwritten="a disk is full",
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
    name = path.strip("/").partition("?")[0].replace("/", "-") or "overview"
    with opened(chromium, Shown(*streams), path) as seen:
        for width, scheme in in_each(seen, sizes):
            assert_readable(seen, f"{name}-{width}-{scheme}")
        assert_accessible(seen, sizes)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", STATIC)
def test_a_static_page_can_be_read(chromium, written, many_days, name, sizes):
    uri = written(name, facts_of(many_days)).as_uri()
    with visit(chromium, allowed=(uri,)) as seen:
        seen.page.goto(uri)
        for width, scheme in in_each(seen, sizes):
            looks = assert_readable(seen, f"{name}-{width}-{scheme}", wide=True)
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


def test_pages_forbid_themselves_to_fetch_and_to_run_what_is_planted(chromium, streams, written, many_days):
    with opened(chromium, Shown(*streams)) as seen:
        assert_forbids(seen)
    file = written("public", facts_of(many_days))
    with visit(chromium, allowed=(file.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        assert_forbids(seen)
    text = file.read_text()
    file.write_text(text.replace("</body>", "<script>window.hit = 1</script></body>"))
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
            seen.page.set_extra_http_headers(AUTHORIZED)
            seen.page.goto(origin)
            assert "None of 1 stream needs a person" in seen.page.inner_text("main")
            shown._found[0] = snapshot("calm", alarms=[an_alarm()])
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
    stream = snapshot(STREAM, alarms=[an_alarm(node=STREAM)], runs_problem=STREAM)
    with opened(chromium, Shown(stream), path.format(*[quote(STREAM, safe="")] * 2)) as seen:
        assert STREAM in seen.page.inner_text("body")
        assert seen.page.locator("img").count() == 0
        assert seen.page.evaluate("window.hit") is None
    assert seen.errors == []

"""The operators' pages in Chromium: each width and scheme, by keyboard, by axe-core, without a server."""

import os
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe

from flows.web.app import application
from tasks.pages.render import _environment
from tests.browser import BUT_CONTRAST, visit
from tests.by_night import few
from tests.flows.web.conftest import AUTHORIZED, LOOKS, SECRET, SIDEWAYS, SIZES, Shown, opened, served
from tests.tasks.pages.snapshots import AT, alarm

REACHED_BY_TAB = LOOKS.replace("a[href], summary", "a[href]:not([tabindex='-1']), summary")
PAGES = [
    "/",
    "/streams/every-state",
    "/streams/every-state/days/2016-07-30",
    "/streams/every-state/nodes?find=8",
]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_read(chromium, streams, path, width, scheme):
    with opened(chromium, Shown(*streams), path, width=width, scheme=scheme) as seen:
        for details in seen.page.locator("details").all():
            details.evaluate("e => { e.open = true }")
        looks, sideways = seen.page.evaluate(LOOKS), seen.page.evaluate(SIDEWAYS)
        if into := os.environ.get("OPTSTREAM_PICTURES"):
            name = path.strip("/").partition("?")[0].replace("/", "-") or "overview"
            seen.page.screenshot(path=f"{into}/{name}-{width}-{scheme}.png", full_page=True)
        found = Axe().run(seen.page, options=BUT_CONTRAST if (width, scheme) in SIZES else DEFAULT_OPTIONS)
    assert found.violations_count == 0, found.generate_report()
    assert seen.errors == []
    assert seen.refused == []
    for fault in ("faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    assert sideways == []
    assert looks["landmarks"] == [1, 1, 1, 1]


def test_control_axe_finds_violations_on_a_bad_page(chromium, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text('<body><img src="data:,"><input><p style="color:#aaa;background:#fff">faint</p>')
    with visit(chromium, allowed=(bad.as_uri(), "data:")) as seen:
        seen.page.goto(bad.as_uri())
        assert Axe().run(seen.page).violations_count >= 4


@pytest.mark.parametrize("path", few(PAGES, 2))
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


def test_it_refreshes_itself_and_says_when_it_cannot(chromium, snapshot, monkeypatch):
    shown = Shown(snapshot("calm"), seconds=1)
    with visit(chromium, allowed=("http://127.0.0.1",)) as seen:
        with served(application(shown, SECRET, lambda: AT)) as origin:
            seen.page.set_extra_http_headers(AUTHORIZED)
            seen.page.goto(origin)
            assert "None of 1 stream needs a person" in seen.page.inner_text("main")
            shown._found[0] = snapshot("calm", alarms=[alarm()])
            seen.page.get_by_text("1 of 1 stream needs a person").wait_for()
            assert seen.page.title() == "1 of 1 need a person: OptStream"
            assert "old" not in seen.page.get_attribute("#fresh", "class")
        seen.page.get_by_text("Could not refresh since").wait_for()
        assert "old" in seen.page.get_attribute("#fresh", "class")
        assert "late" in seen.page.inner_text("main"), "what was seen last stays"


HOSTILE = "<img src=x onerror='window.hit = 1'>&lt;b\"'"


@pytest.mark.parametrize(
    "path", ["/", "/streams/{}", "/streams/{}/days/2016-06-01", "/streams/{}/nodes?find={}"]
)
def test_hostile_names_are_shown_as_text(chromium, snapshot, path):
    stream = snapshot(HOSTILE, alarms=[alarm(node=HOSTILE)], runs_problem=HOSTILE)
    with opened(chromium, Shown(stream), path.format(*[quote(HOSTILE, safe="")] * 2)) as seen:
        assert HOSTILE in seen.page.inner_text("body")
        assert seen.page.locator("img").count() == 0
        assert seen.page.evaluate("window.hit") is None
    assert seen.errors == []


def test_control_a_hostile_name_that_is_taken_for_html_is_an_image(chromium, snapshot, monkeypatch):
    """And even then the page's policy lets it run nothing."""
    monkeypatch.setattr(_environment(), "autoescape", False)
    _environment().cache.clear()
    try:
        with opened(chromium, Shown(snapshot(HOSTILE))) as seen:
            assert seen.page.locator("img").count() > 0
            assert seen.page.evaluate("window.hit") is None
        assert any("Content Security Policy" in error for error in seen.errors)
    finally:
        _environment().cache.clear()


def test_control_a_page_that_asks_elsewhere_is_refused(chromium, streams):
    """Were an image of another host ever to come onto a page, its policy would refuse it before a request."""
    with opened(chromium, Shown(*streams)) as seen:
        policy = "Content Security Policy"
        with seen.page.expect_console_message(lambda message: policy in message.text):
            seen.page.evaluate(
                "document.body.append(Object.assign(new Image(), {src: 'https://example.org/x'}))"
            )
        with seen.page.expect_console_message(lambda message: policy in message.text):
            seen.page.evaluate("""() => {
                const script = document.createElement('script');
                script.textContent = 'document.title = "broken in"';
                document.body.append(script);
            }""")
        assert "broken in" not in seen.page.title()
    assert all(url.startswith(seen.origin) for url in seen.requests)

"""The operators' pages in Chromium: every width and scheme, by keyboard, and while the server is gone."""

import base64
import os
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from flows.ui.application import application
from flows.ui.looking import Looks
from tasks.monitoring import Kind, Severity, State
from tasks.reports.operator import DataDoc
from tasks.ui.runs import RunStep, StreamRun
from tests.browser import visit
from tests.flows.ui.conftest import served
from tests.tasks.ui.conftest import AT, FIRST, alarm, settings, snapshot

__all__ = ["settings", "snapshot"]
LOOKS = (Path(__file__).parents[2] / "tasks/reports/looks.js").read_text(encoding="utf-8")
REACHED_BY_TAB = LOOKS.replace("a[href], summary", "a[href]:not([tabindex='-1']), summary")
SECRET = "optstream:secret"
SIZES = [
    (360, "light"),
    (768, "dark"),
    (1440, "light"),
    pytest.param(360, "dark", marks=pytest.mark.nightly),
    pytest.param(768, "light", marks=pytest.mark.nightly),
    pytest.param(1440, "dark", marks=pytest.mark.nightly),
]
PAGES = ["/", "/streams/every-state", "/streams/every-state/days/2016-07-30"]


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
)


class Shown(Looks):
    """Snapshots that are there already."""

    def __init__(self, *snapshots, seconds=30):
        super().__init__([], seconds, lambda: AT)
        self._found = dict(enumerate(snapshots))


@pytest.fixture
def streams(snapshot):
    """One of each need."""
    late = alarm(day=FIRST + timedelta(days=69), node="84")
    budget = [alarm(Kind.BUDGET, FIRST + timedelta(days=number)) for number in range(60, 70)]
    return (
        snapshot("calm"),
        snapshot(
            "every-state", [*[State.PUBLISHED] * 50, *State], [late, *budget], Fraction(1),
            since={late.key: AT - timedelta(hours=7)}, runs=(RUN,),
            docs=(DataDoc(FIRST, FIRST, AT, "raw", "2016-06-01-raw.html"),),
        ),
        snapshot("warned", alarms=[alarm(Kind.EXPIRING, severity=Severity.WARNING)]),
        snapshot("blind", problem="the ledger's database refuses: see that it runs, then look again"),
    )  # fmt: skip


def opened(seen, origin, path):
    """Go there with the password, in a header as a browser sends it."""
    token = base64.b64encode(SECRET.encode()).decode()
    seen.page.set_extra_http_headers({"Authorization": f"Basic {token}"})
    seen.page.goto(origin + path)


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_read(chromium, streams, path, width, scheme):
    with (
        served(application(Shown(*streams), SECRET, lambda: AT)) as origin,
        visit(chromium, allowed=(origin,), width=width, scheme=scheme) as seen,
    ):
        opened(seen, origin, path)
        for details in seen.page.locator("details").all():
            details.evaluate("e => { e.open = true }")
        looks = seen.page.evaluate(LOOKS)
        if into := os.environ.get("OPTSTREAM_PICTURES"):
            name = path.strip("/").replace("/", "-") or "overview"
            seen.page.screenshot(path=f"{into}/{name}-{width}-{scheme}.png", full_page=True)
    assert seen.errors == []
    assert seen.refused == []
    for fault in ("faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    assert looks["landmarks"] == [1, 1, 1, 1]


@pytest.mark.parametrize("path", PAGES)
def test_a_keyboard_reaches_everything_in_order_and_shows_where_it_is(chromium, streams, path):
    with (
        served(application(Shown(*streams), SECRET, lambda: AT)) as origin,
        visit(chromium, allowed=(origin,)) as seen,
    ):
        opened(seen, origin, path)
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
            opened(seen, origin, "/")
            assert "None of 1 stream needs a person" in seen.page.inner_text("main")
            shown._found[0] = snapshot("calm", alarms=[alarm()])
            seen.page.get_by_text("1 of 1 stream needs a person").wait_for()
            assert seen.page.title() == "1 of 1 need a person: OptStream"
            assert "old" not in seen.page.get_attribute("#fresh", "class")
        seen.page.get_by_text("Could not refresh since").wait_for()
        assert "old" in seen.page.get_attribute("#fresh", "class")
        assert "late" in seen.page.inner_text("main"), "what was seen last stays"


def test_a_keyboard_goes_through_the_calendar(chromium, streams):
    with (
        served(application(Shown(*streams), SECRET, lambda: AT)) as origin,
        visit(chromium, allowed=(origin,)) as seen,
    ):
        opened(seen, origin, "/streams/every-state")
        assert seen.page.locator("[data-day][tabindex='0']").get_attribute("id") == "d-2016-07-31"
        seen.page.locator("#d-2016-07-31").focus()
        for key, day in (
            ("ArrowLeft", "07-30"),
            ("ArrowUp", "06-30"),
            ("Home", "06-01"),
            ("ArrowLeft", "06-01"),  # there is no day before it
            ("ArrowDown", "07-01"),
            ("End", "07-31"),
            ("ArrowUp", "06-30"),  # June has no 31st
            ("PageUp", "06-30"),
        ):
            seen.page.keyboard.press(key)
            assert seen.page.evaluate("document.activeElement.id") == f"d-2016-{day}", key
            assert seen.page.locator("[data-day][tabindex='0']").count() == 1
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**/days/2016-06-30")


def test_control_a_page_that_asks_elsewhere_is_refused(chromium, streams):
    """Were an image of another host ever to come onto a page, its policy would refuse it before a request."""
    with (
        served(application(Shown(*streams), SECRET, lambda: AT)) as origin,
        visit(chromium, allowed=(origin,)) as seen,
    ):
        opened(seen, origin, "/")
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
    assert all(url.startswith(origin) for url in seen.requests)

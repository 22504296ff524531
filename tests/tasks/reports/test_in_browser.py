"""Both pages in a real browser: nothing is fetched, nothing complains, and they can be read in every way.

Narrow and wide, light and dark. Contrast is computed as WCAG 2.2 says (4.5 for text, 3 for lines); what a
keyboard reaches is reached with a keyboard.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe

from optstream.catalogue import Entry
from optstream.ledger import ReleaseState
from optstream.privacy import PrivacyModel
from tasks.ledger.show import ChargedRelease
from tasks.monitor.view import Alarm, DayState, Facts, Kind, State, StreamView
from tasks.release.outcomes import Budget
from tasks.reports import Daily, OperatorFacts, public_page, trusted_page
from tests.browser import BUT_CONTRAST, visit
from tests.tasks.reports.conftest import FIRST, facts_of

LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
SIZES = [
    (360, "light"),
    (1440, "dark"),  # by night, which judges contrast twice:
    pytest.param(360, "dark", marks=pytest.mark.nightly),
    pytest.param(1440, "light", marks=pytest.mark.nightly),
]
AT = datetime(2016, 2, 10, 6, tzinfo=UTC)


def operators(facts):
    """One day of every state, and an alarm."""
    days = [
        DayState(FIRST + timedelta(days=number), state, "why it is so", waiting_for=("84",), levels=(1, 1))
        for number, state in enumerate(State)
    ]
    alarms = (Alarm(Kind.LATE, "simulated-load", "region=84 is late; ask its supplier", FIRST, "84"),)
    nothing = Facts(
        live=True, first=FIRST, last=days[-1].day, releases={}, holds={}, catalogue=facts.catalogue,
        catalogue_error=None, is_own_ledger=True, arrivals={}, refused=frozenset(),
        budget=Budget(PrivacyModel(1, 48, 10), Fraction(1, 2)), page=None, audit=None,
    )  # fmt: skip
    view = StreamView("simulated-load", AT, nothing, tuple(days), alarms)
    charges = (ChargedRelease("2016-02-09", 0, ReleaseState.PUBLISHED, Fraction(1, 2)),)
    return OperatorFacts(view, (1, 12), charges, "../published/", "a disk is full")


@pytest.fixture(scope="module")
def pages(forty_days, tmp_path_factory):
    """The address of each page."""
    facts, folder = facts_of(forty_days), tmp_path_factory.mktemp("pages")
    for name, page in (("public", public_page(facts)), ("trusted", trusted_page(facts, operators(facts)))):
        (folder / f"{name}.html").write_bytes(page)
    return {name: (folder / f"{name}.html").as_uri() for name in ("public", "trusted")}


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("name", ["public", "trusted"])
def test_a_page_can_be_read(chromium, pages, name, width, scheme):
    with visit(chromium, allowed=(pages[name],), width=width, scheme=scheme) as seen:
        seen.page.goto(pages[name])
        for details in seen.page.locator("details").all():
            details.evaluate("e => { e.open = true }")
        looks = seen.page.evaluate(LOOKS)
        judged = Axe().run(seen.page, options=BUT_CONTRAST if (width, scheme) in SIZES else DEFAULT_OPTIONS)
        dark = seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        text = seen.page.inner_text("body")
    assert judged.violations_count == 0, judged.generate_report()
    assert seen.requests == [pages[name]]
    assert seen.errors == []
    assert dark == (scheme == "dark")
    for fault in ("faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    assert looks["landmarks"] == [1, 1, 1, 1]
    assert (looks["language"], looks["title"].split(":")[0]) == ("en", "simulated-load")
    assert "39 days are published" in text
    assert ("1 alarm." in text) == (name == "trusted")


@pytest.mark.parametrize("name", ["public", pytest.param("trusted", marks=pytest.mark.nightly)])
def test_a_keyboard_reaches_everything_in_order_and_shows_where_it_is(chromium, pages, name):
    with visit(chromium, allowed=(pages[name],), width=1440) as seen:
        seen.page.goto(pages[name])
        looks = seen.page.evaluate(LOOKS)
        reached, outlines = [], set()
        for _ in range(3 * len(looks["order"])):  # a field for a date takes Tab three or four times
            seen.page.keyboard.press("Tab")
            at = seen.page.evaluate("document.activeElement.dataset.order")
            if at is None:
                break
            if int(at) not in reached:
                reached.append(int(at))
            outlines.add(seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
        assert reached == looks["order"]
        assert outlines == {"solid"}
        seen.page.reload()
        seen.page.keyboard.press("Tab")
        assert seen.page.inner_text(":focus") == "Skip to the content"
        seen.page.keyboard.press("Enter")
        assert seen.page.evaluate("document.activeElement.id") == "content"
        seen.page.locator("details:not([open]) > summary").first.focus()
        seen.page.keyboard.press("Enter")
        assert seen.page.evaluate("document.activeElement.parentElement.open")


def test_operators_learn_that_a_full_window_is_no_alarm(forty_days):
    """Every window of a stream that runs as planned is full: 0 left must not look like trouble."""
    facts = facts_of(forty_days)
    assert b"A full window is as planned" in trusted_page(facts, operators(facts))
    assert b"A full window" not in public_page(facts)


def test_what_a_screen_reader_is_told(chromium, pages):
    with visit(chromium, allowed=(pages["public"],)) as seen:
        seen.page.goto(pages["public"])
        told = seen.page.locator("body").aria_snapshot()
    assert '- heading "simulated-load" [level=1]' in told
    assert "- navigation" in told
    assert "- main" in told
    assert 'region "Calendar of 2016"' in told
    assert '"Step by step of load. FR: from ' in told
    assert 'combobox "Find a node by name"' in told
    assert 'combobox "Show"' in told
    assert 'list "Plotted nodes"' in told
    assert 'cell "31 Jan 2016: withdrawn"' in told or "31 Jan 2016" in told


def test_control_faults_are_seen(chromium, tmp_path):
    """A page that does everything wrong is found wrong in every way."""
    wrong = tmp_path / "wrong.html"
    wrong.write_text(
        '<body style="background:#fff"><p style="color:#999;font-size:9px">faint</p><div tabindex="0"></div>'
        '<table><tr><td>1</td></tr></table><div style="width:3000px">wide</div>'
        '<div role="region" aria-label="a">x</div><div role="region" aria-label="a">y</div>'
        '<img src="https://example.org/x.png"><script>nothing()</script>'
    )
    with visit(chromium, allowed=(wrong.as_uri(),)) as seen:
        seen.page.goto(wrong.as_uri())
        looks = seen.page.evaluate(LOOKS)
    for fault in ("faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault], fault
    assert looks["overflow"]
    assert seen.refused == ["https://example.org/x.png"]
    assert any("nothing is not defined" in error for error in seen.errors)


def test_the_page_forbids_itself_to_fetch(chromium, pages, tmp_path):
    """Were an image ever to come onto it, its own policy would refuse it before a request is made."""
    page = Path(pages["public"].removeprefix("file://")).read_text()
    planted = tmp_path / "planted.html"
    planted.write_text(page.replace("</main>", '<img src="https://example.org/x.png"></main>'))
    with visit(chromium, allowed=(planted.as_uri(),)) as seen:
        policy = "Content Security Policy"
        with seen.page.expect_console_message(lambda message: policy in message.text):
            seen.page.goto(planted.as_uri())
    assert seen.requests == [planted.as_uri()]
    assert any(policy in error for error in seen.errors)


@pytest.mark.nightly
def test_ten_years_stay_small_and_are_painted(chromium, forty_days, tmp_path):
    """Under 2 MB with thirteen nodes."""
    facts, n_days = facts_of(forty_days), 3650
    rng = np.random.default_rng(0)
    mean = 5000 + np.cumsum(rng.normal(size=(13, n_days)), axis=1) * 50
    first = facts.listed[-1].period - timedelta(days=n_days - 1)
    entries = tuple(
        Entry(first + timedelta(days=number), 0, 0, f"{number:064x}", f"{number:064x}", "h")
        for number in range(n_days)
    )
    noise, unknown = np.full_like(mean, 300.0), np.full_like(mean, np.nan)
    daily = Daily(first, mean, mean - 900, mean + 900, noise, unknown, [48] * n_days)
    page = public_page(replace(facts, daily=daily, catalogue=replace(facts.catalogue, entries=entries)))
    assert len(page) < 2_000_000
    file = tmp_path / "ten.html"
    file.write_bytes(page)
    with visit(chromium, allowed=(file.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        seen.page.select_option("#measure", "means")
        seen.page.click("#all")
        assert "FR: from " in seen.page.get_attribute("#plot", "aria-label")
        assert "3,650 days are published" in seen.page.inner_text(".lead")
    assert seen.errors == []

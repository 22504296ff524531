"""Both pages in a real browser: nothing is fetched, nothing complains, and they can be read in every way.

Narrow and wide, light and dark. Contrast is computed as WCAG 2.2 says (4.5 for text, 3 for lines); what a
keyboard reaches is reached with a keyboard.
"""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe

from optstream.ledger import ReleaseState
from optstream.privacy import PrivacyModel
from tasks.ledger.show import ChargedRelease
from tasks.monitor.view import Alarm, DayState, Facts, Kind, State, StreamView
from tasks.release.outcomes import Budget
from tasks.reports import OperatorFacts, public_page, trusted_page
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

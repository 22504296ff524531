"""Both pages in a real browser: nothing is fetched, nothing complains, and they can be read in every way.

Narrow and wide, light and dark. Contrast is computed as WCAG 2.2 says (4.5 for text, 3 for lines); what a
keyboard reaches is reached with a keyboard.
"""

import re
from dataclasses import replace
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
from tests.tasks.reports.conftest import FIRST, HOSTILE, NAMES, facts_of

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
    charges = (
        ChargedRelease(period="2016-02-09", revision=0, state=ReleaseState.PUBLISHED, epsilon=Fraction(1, 2)),
    )
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


BAND = """() => {
  const canvas = document.querySelector("#chart canvas"), pen = canvas.getContext("2d");
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data, found = { band: 0, line: 0 };
  for (let n = 0; n < pixels.length; n += 4) {
    const colour = pixels.slice(n, n + 4).join();
    if (colour === "195,219,243,255") found.band += 1;
    if (colour === "11,92,173,255") found.line += 1;
  }
  return found;
}"""


@pytest.fixture(scope="module")
def banded(forty_days):
    """Facts whose errors are stated, and with names, one of them hostile."""
    facts = facts_of(forty_days)
    recent, daily = facts.recent, facts.daily
    return replace(
        facts,
        recent=replace(recent, model=tuple(10 * one for one in recent.noise)),
        daily=replace(daily, model=daily.noise),
        about=replace(facts.about, nodes=NAMES),
    )


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["public", "trusted"])
def test_the_series_and_its_band_are_drawn(chromium, banded, tmp_path, name, width):
    file = tmp_path / "page.html"
    file.write_bytes(public_page(banded) if name == "public" else trusted_page(banded, operators(banded)))
    with visit(chromium, allowed=(file.as_uri(),), width=width) as seen:
        page = seen.page
        page.goto(file.as_uri())
        inked = page.evaluate(BAND)
        assert min(inked.values()) > 300, inked
        assert "Load of France (FR): from" in page.get_attribute("#chart", "aria-label")
        page.select_option("#chart-node", label=f"{HOSTILE} (24)")
        page.select_option("#chart-span", "days")
        assert page.get_attribute("#chart", "data-drawn").startswith("days ")
        assert HOSTILE in page.get_attribute("#chart", "aria-label")
        page.focus("#chart")
        page.keyboard.press("ArrowLeft")
        mean = banded.daily.mean[[node.name for node in banded.nodes].index("24"), -2]
        expected = f"2016-02-08: {float(f'{mean:.4g}'):,g} MW ± "
        assert page.inner_text("#chart-readout").startswith(expected)
        assert page.evaluate("window.hit") is None
    assert (seen.requests, seen.errors) == ([file.as_uri()], [])


def test_control_what_a_name_or_a_stranger_adds_would_be_seen(chromium, banded, tmp_path):
    """Names set as markup run; a script that the policy does not name does not."""
    text, file = public_page(banded).decode(), tmp_path / "page.html"
    assert text.count("node.add(new Option(name, number))") == 1
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    as_markup = "place.insertAdjacentHTML('afterend', name)"
    file.write_text(open_page.replace("node.add(new Option(name, number))", as_markup), encoding="utf-8")
    with visit(chromium, allowed=(tmp_path.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        seen.page.wait_for_function("window.hit === 1")
    file.write_text(text.replace("</body>", "<script>window.hit = 1</script></body>"), encoding="utf-8")
    with visit(chromium, allowed=(file.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        assert seen.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in error for error in seen.errors)

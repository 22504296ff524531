"""Both pages in a real browser: nothing is fetched, nothing complains, and contrast is WCAG 2.2's."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe

from tasks.monitor.alarms import Kind, alarm
from tasks.monitor.days import State
from tasks.pages.public import public_page, published_chart
from tasks.pages.stream import static_page
from tasks.trusted.verdicts import ResultFile
from tests.browser import BUT_CONTRAST, visit
from tests.tasks.pages.conftest import FIRST, HOSTILE, NAMES, facts_of
from tests.tasks.pages.snapshots import AT

LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
SIZES = [
    (360, "light"),
    (1440, "dark"),  # by night, which judges contrast twice:
    pytest.param(360, "dark", marks=pytest.mark.nightly),
    pytest.param(1440, "light", marks=pytest.mark.nightly),
]


@pytest.fixture
def operators(snapshot):
    """`operators(facts)`: the operators' page of one day of every state, with an alarm and these curves."""

    def make(facts):
        late = alarm(Kind.LATE, "simulated-load", "region=84 is late; ask its supplier", FIRST, "84")
        curves = {"catalogue": "", "chart": published_chart(facts), "faint": ["a level is so"]}
        found = snapshot(
            "simulated-load", tuple(State), [late], curves=curves, unwritten="a disk is full",
            docs=(ResultFile(Path("a.html"), FIRST, FIRST, AT, "raw"),),
        )  # fmt: skip
        return static_page(found)

    return make


@pytest.fixture
def pages(forty_days, tmp_path, operators):
    """The address of each page."""
    facts = facts_of(forty_days)
    for name, page in (("public", public_page(facts)), ("trusted", operators(facts))):
        (tmp_path / f"{name}.html").write_bytes(page)
    return {name: (tmp_path / f"{name}.html").as_uri() for name in ("public", "trusted")}


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
    assert ("39 days are published" in text) == (name == "public")
    assert ("a disk is full" in text) == (name == "trusted")


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
  const canvas = document.querySelector(".chart canvas"), pen = canvas.getContext("2d");
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
    return replace(
        facts,
        recent=facts.recent.with_columns(error=10_000.0),
        daily=facts.daily.with_columns(error=1000.0),
        about=facts.about.changed(nodes=NAMES),
    )


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["public", "trusted"])
def test_the_series_and_its_band_are_drawn(chromium, banded, operators, tmp_path, name, width):
    file = tmp_path / "page.html"
    file.write_bytes(public_page(banded) if name == "public" else operators(banded))
    with visit(chromium, allowed=(file.as_uri(),), width=width) as seen:
        page = seen.page
        page.goto(file.as_uri())
        inked = page.evaluate(BAND)
        assert min(inked.values()) > 300, inked
        plot = page.locator(".plot").first
        assert "Load of France (FR): from" in plot.get_attribute("aria-label")
        page.locator("[data-chooses=node]").first.select_option(label=f"{HOSTILE} (24)")
        page.locator("[data-chooses=span]").first.select_option(label="daily means of all days")
        assert plot.get_attribute("data-drawn").startswith("1 ")
        assert HOSTILE in plot.get_attribute("aria-label")
        plot.focus()
        for _ in range(2):
            page.keyboard.press("ArrowLeft")
        mean = banded.daily.filter(pl.col("node") == "24")["value"][-2]
        figure = f"{float(f'{mean:.4g}'):,g}"
        assert page.locator(".readout").first.inner_text().startswith(f"2016-02-08: {figure} MW ± ")
        page.get_by_text("The figures as a table").first.click()
        row = page.locator(".figures tr", has=page.get_by_text("2016-02-08")).first
        assert row.inner_text().split()[1:] == [figure, "1,960"]
        assert HOSTILE in page.locator(".figures thead").first.inner_text()
        assert page.evaluate("window.hit") is None
    assert (seen.requests, seen.errors) == ([file.as_uri()], [])


def test_control_what_a_name_or_a_stranger_adds_would_be_seen(chromium, banded, tmp_path):
    """Names set as markup run; a script that the policy does not name does not."""
    text, file = public_page(banded).decode(), tmp_path / "page.html"
    assert text.count("made.textContent = text") == 1
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    file.write_text(open_page.replace("made.textContent = text", "made.innerHTML = text"), encoding="utf-8")
    with visit(chromium, allowed=(tmp_path.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        seen.page.locator("[data-chooses=node]").first.select_option(label=f"{HOSTILE} (24)")
        seen.page.get_by_text("The figures as a table").click()
        seen.page.wait_for_function("window.hit === 1")
    file.write_text(text.replace("</body>", "<script>window.hit = 1</script></body>"), encoding="utf-8")
    with visit(chromium, allowed=(file.as_uri(),)) as seen:
        seen.page.goto(file.as_uri())
        assert seen.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in error for error in seen.errors)

"""The data users' page as people use it: mouse, keyboard, address, downloads; as a file and from a server."""

import re
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from tasks.reports.numbers import shown
from tests.browser import visit
from tests.tasks.reports.conftest import FIRST, HOSTILE, INKED, label_has, until

LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
SIZES = [
    (360, "light"),
    (1440, "dark"),
    *(
        pytest.param(width, scheme, marks=pytest.mark.nightly)
        for width, scheme in [(360, "dark"), (768, "light"), (768, "dark"), (1440, "light")]
    ),
]


def month(page, first, last):
    """Type two days into the fields."""
    page.fill("#from", first)
    page.fill("#to", last)
    page.locator("#to").press("Tab")


"""Width over height of what the two places span."""


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_page_can_be_read_and_used_at_every_size(chromium, served, width, scheme):
    with visit(chromium, allowed=(served,), width=width, scheme=scheme) as seen:
        seen.page.goto(served)
        seen.page.get_by_role("combobox", name="Find a node").fill("24")
        seen.page.keyboard.press("Enter")
        seen.page.click("#table summary")
        seen.page.wait_for_selector("#rows tr")
        looks = seen.page.evaluate(LOOKS)
        assert seen.page.evaluate(INKED) > 5
        assert seen.page.evaluate("window.hit") is None
        assert HOSTILE in seen.page.inner_text("#chosen")
        contrasts = seen.page.evaluate(
            "() => [0, 1, 2, 3, 4, 5, 6, 7].map("
            "(n) => getComputedStyle(document.body).getPropertyValue(`--c${n}`))"
        )
    for fault in ("faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    ground = (255, 255, 255) if scheme == "light" else (20, 24, 28)
    assert [colour for colour in contrasts if ratio(rgb(colour), ground) < 3] == []
    assert seen.errors == []
    assert seen.refused == []


def rgb(text):
    return tuple(int(text.strip()[start : start + 2], 16) for start in (1, 3, 5))


def ratio(one, other):
    """As WCAG 2.2 says."""

    def luminance(colour):
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_only_what_is_looked_at_is_loaded_and_only_from_its_own_folder(chromium, served, published):
    rows = pl.read_parquet(published / "data", hive_partitioning=True)
    own = rows.filter(
        (pl.col("node") == "FR") & pl.col("date").is_between(date(2016, 1, 4), date(2016, 1, 6))
    )
    with visit(chromium, allowed=(served,)) as seen:
        seen.page.goto(served)
        label_has(seen.page, "France (FR): from")
        assert seen.requests == [served]
        with seen.page.expect_response(re.compile("curves/")):
            month(seen.page, "2016-01-04", "2016-01-06")
        label_has(seen.page, f"to {shown(own['load_mw'].max())} MW")
    assert [request for request in seen.requests if not request.startswith(served)] == []
    (name,) = [request.removeprefix(served) for request in seen.requests[1:]]
    assert (published / name).is_file()
    assert seen.errors == []


def test_the_keyboard_alone_is_enough_and_the_address_restores_what_it_did(chromium, served):
    with visit(chromium, allowed=(served,)) as seen:
        page = seen.page
        page.goto(served)
        while page.evaluate("document.activeElement.id") != "find":
            page.keyboard.press("Tab")
        page.keyboard.type("bret")
        page.keyboard.press("ArrowDown")
        assert page.get_attribute("#find", "aria-activedescendant") == "found-0"
        page.keyboard.press("Enter")
        assert page.locator("#chosen li").count() == 2
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")  # the next measure
        assert page.input_value("#measure") == "means"
        while page.evaluate("document.activeElement.id") != "plot":
            page.keyboard.press("Tab")
        for key in ("0", "+", "ArrowRight", ",", "."):
            page.keyboard.press(key)
        until(page, "document.getElementById('reading').textContent.includes('Bretagne (53): ')")
        assert "MW" in page.inner_text("#reading")
        ends = f"d={page.input_value('#from')}..{page.input_value('#to')}"
        until(page, "ends => location.hash.endsWith(ends)", arg=ends)
        before = {name: page.input_value(name) for name in ("#from", "#to", "#measure", "#band")}
        page.reload()
        assert {name: page.input_value(name) for name in before} == before
        assert page.locator("#chosen li").count() == 2
        while not page.evaluate(
            "(document.activeElement.getAttribute('aria-label') || '').startsWith('Remove')"
        ):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator("#chosen li").count() == 1
    assert seen.errors == []


def test_the_csv_is_what_was_published(chromium, served, published):
    with visit(chromium, allowed=(served, "blob:")) as seen:
        seen.page.goto(served + "#n=84&m=steps&b=noise&d=2016-01-04..2016-01-05")
        until(seen.page, "document.getElementById('status').textContent === ''")
        with seen.page.expect_download() as caught:
            seen.page.click("#csv")
        found = pl.read_csv(caught.value.path(), schema_overrides={"node": pl.String, "se": pl.Float64})
    rows = pl.read_parquet(published / "data", hive_partitioning=True)
    days = pl.col("date").is_between(date(2016, 1, 4), date(2016, 1, 5))
    own = rows.filter((pl.col("node") == "84") & days).sort("date", "step")
    assert found["load_mw"].to_list() == own["load_mw"].to_list()
    assert found["noise_se"].to_list() == own["load_mw_noise_se"].to_list()
    assert found["name"].unique().to_list() == ["'=1+1"]
    assert date(2016, 1, 4) > FIRST


def test_control_a_page_that_sets_names_as_markup_is_seen(chromium, published, tmp_path):
    """The same page with one word changed, its policy gone: the hostile name runs."""
    text = (published / "index.html").read_text(encoding="utf-8")
    assert text.count("element.textContent = text;") == 1
    wrong = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    planted = tmp_path / "wrong.html"
    planted.write_text(
        wrong.replace("element.textContent = text;", "element.innerHTML = text;"), encoding="utf-8"
    )
    with visit(chromium, allowed=(tmp_path.as_uri(),)) as seen:
        seen.page.goto(planted.as_uri() + "#n=24")
        until(seen.page, "window.hit === 1")


def test_control_a_changed_script_does_not_run(chromium, published, tmp_path):
    """The policy names the script by its hash: what somebody plants is refused."""
    text = (published / "index.html").read_text(encoding="utf-8")
    planted = tmp_path / "planted.html"
    planted.write_text(text.replace("</body>", "<script>window.hit = 1</script></body>"), encoding="utf-8")
    with visit(chromium, allowed=(planted.as_uri(),)) as seen:
        seen.page.goto(planted.as_uri())
        assert seen.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in error for error in seen.errors)

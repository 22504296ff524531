"""A stream that was really released: every page of it in the application, and its curve in Chromium."""

import json
import os
import re
from datetime import UTC, date, datetime

import pytest
from axe_playwright_python.sync_playwright import Axe
from starlette.testclient import TestClient

from flows.web.app import DATA_DOCS, application
from flows.web.poll import Looks
from tests.failing import raising
from tests.flows.web.conftest import AUTHORIZED, SECRET, SIDEWAYS, SIZES, opened
from tests.tasks.two_regions import CONFIGURATION, Installation, in_another_unit

pytestmark = pytest.mark.slow
HOME = "/streams/two-regions"
DAYS = (date(2016, 6, 1), date(2016, 6, 2))


def now():
    return datetime(2016, 6, 3, 3, tzinfo=UTC)


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
    found = Looks([folder / "optstream.toml"], 30, now)
    found.look()
    return found


@pytest.fixture
def client(looks):
    return TestClient(application(looks, SECRET, now), base_url="http://127.0.0.1", headers=AUTHORIZED)


def test_two_clicks_lead_from_the_overview_to_a_day(client, looks):
    assert 'href="/streams/two-regions"' in client.get("/").text
    assert 'href="/streams/two-regions/days/2016-06-02"' in client.get("/streams/two-regions").text
    text = client.get("/streams/two-regions/days/2016-06-02").text
    for said in (
        "Its plan was charged to the privacy budget",
        "It was measured with noise, once",
        "It was published",
        "The suite raw judged it",
        "optstream withdraw --config",
        "complete, 1 file",
        "The last file of its dump was written, of ",
    ):
        assert said in text, said
    (snapshot,) = looks.snapshots
    assert f'href="/streams/two-regions/contracts/{snapshot.docs[0].path.name}">its findings</a>' in text


def test_contract_pages_open_in_a_sandbox_and_no_other_file_does(client, looks):
    (snapshot,) = looks.snapshots
    assert snapshot.docs
    for one in snapshot.docs:
        answer = client.get(f"/streams/two-regions/contracts/{one.path.name}")
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == DATA_DOCS["Content-Security-Policy"]
    for file in ("..%2F..%2Finput.key", "x.html", snapshot.docs[0].path.with_suffix(".json").name):
        assert client.get(f"/streams/two-regions/contracts/{file}").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/streams/other",
        "/streams/two-regions/days/2016-07-01",
        "/streams/two-regions/days/x",
        "/streams/two-regions/nodes/75",
        "/streams/two-regions/nodes/FR?from=2016-06-02&to=2016-06-01",
        "/streams/two-regions/nodes/FR?from=2016-01-01&to=2016-06-01",
        "/streams/two-regions/nodes/FR?from=x",
        "/streams/two-regions/nodes/FR?from=0001-01-01&to=0001-01-01",
    ],
)
def test_what_is_not_there_is_not_found(client, path):
    assert client.get(path).status_code == 404


def test_figures_are_published_ones(client):
    text = client.get("/streams/two-regions/nodes/84").text
    (span,) = json.loads(re.search(r'application/json">(.*)</script>', text)[1])["spans"]
    assert len(span["at"]) == 48
    assert {one["kind"] for one in span["lines"][0]} >= {"value", "day-before"}
    assert "noise" in span["lines"][0][0]
    none = client.get("/streams/two-regions/nodes/84?from=2015-06-01&to=2015-06-01").text
    assert "Nothing is published on these days" in none


def test_a_ledger_that_is_gone_is_said_and_hides_nothing_else(client, looks, monkeypatch):
    monkeypatch.setattr(
        "flows.web.app.read_day", raising(OSError(13, "Permission denied", "/a/private/place"))
    )
    answer = client.get("/streams/two-regions/days/2016-06-02")
    assert (answer.status_code, answer.text) == (503, "it cannot be read now\n")
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_curve_is_drawn_read_out_and_zoomed_by_keyboard(looks, chromium, width, scheme):
    path = f"{HOME}/nodes/FR"
    with opened(chromium, looks, path, width=width, scheme=scheme) as seen:
        seen.page.wait_for_selector(".plot[data-drawn] canvas")
        assert seen.page.get_by_label("band of the total error").is_checked()
        assert not seen.page.get_by_label("band of the noise alone").is_checked()
        seen.page.get_by_label("children, stacked").check()
        seen.page.get_by_label("the day before").check()
        seen.page.get_by_label("earlier vintages").check()
        seen.page.locator(".plot").focus()
        for _ in range(2):
            seen.page.keyboard.press("ArrowLeft")
        said = seen.page.inner_text(".readout")
        assert said.startswith("2016-06-02 23:00 +02:00: FR "), said
        assert "84 " in said
        seen.page.get_by_text("The figures as a table").click()
        first_row = seen.page.locator("tbody th").first.text_content()
        assert first_row == "2016-06-02 23:30 +02:00", "a row is read in the stream's own time, too"
        assert "the day before " in said
        assert "revision 0, vintage 0 " in said
        seen.page.keyboard.press("+")
        seen.page.keyboard.press("0")
        found = Axe().run(seen.page)
        for name, place in (("node", path), ("stream", HOME), ("day", f"{HOME}/days/2016-06-02")):
            if name != "node":
                seen.page.goto(seen.origin + place)
            if into := os.environ.get("OPTSTREAM_PICTURES"):
                seen.page.screenshot(path=f"{into}/released-{name}-{width}-{scheme}.png", full_page=True)
            assert not seen.page.evaluate("document.documentElement.scrollWidth > innerWidth"), name
            assert seen.page.evaluate(SIDEWAYS) == [], name
    assert found.violations_count == 0, found.generate_report()
    assert seen.errors == []
    assert seen.refused == []

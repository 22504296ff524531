"""A stream that was really released: every page of it in the application, and its curve in Chromium."""

import os
from datetime import UTC, date, datetime
from itertools import product

import pytest
from axe_playwright_python.sync_playwright import Axe
from starlette.testclient import TestClient

from flows.web.app import DATA_DOCS, application
from flows.web.poll import Looks
from tests.by_night import few
from tests.failing import raising
from tests.flows.web.conftest import AUTHORIZED, SECRET, SIDEWAYS, opened
from tests.tasks.two_regions import CONFIGURATION, Installation, in_another_unit

pytestmark = pytest.mark.slow
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
    app = application(looks, SECRET, looks.clock)
    return TestClient(app, base_url="http://127.0.0.1", headers=AUTHORIZED)


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
    width, scheme = size
    path = f"{HOME}/nodes/FR"
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
            if into := os.environ.get("OPTSTREAM_PICTURES"):
                page.screenshot(path=f"{into}/released-{name}-{width}-{scheme}.png", full_page=True)
            assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), name
            assert page.evaluate(SIDEWAYS) == [], name
    assert found.violations_count == 0, found.generate_report()
    assert (seen.errors, seen.refused) == ([], [])

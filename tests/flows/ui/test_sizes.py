"""The operators' pages at sizes: twenty streams on one screen, ten years of days, hundreds of alarms."""

import os
from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from starlette.testclient import TestClient

from flows.ui.application import application
from flows.ui.looking import Looks
from tasks.monitor.view import Kind, State
from tests.flows.ui.conftest import LOOKS, SIDEWAYS, Shown, opened
from tests.flows.ui.test_application import PLAIN, basic
from tests.tasks.conftest import CONFIGURATION
from tests.tasks.ui.conftest import AT, FIRST, alarm

WIDTHS = [360, pytest.param(768, marks=pytest.mark.nightly), pytest.param(1440, marks=pytest.mark.nightly)]


def streams_of(snapshot, n_streams, n_days=3650):
    """Ten years each; every third stream has an alarm a day of the last year."""
    days = [FIRST + timedelta(days=number) for number in range(n_days)]
    alarms = [[], [alarm(Kind.BUDGET, day) for day in days[-365:]], []]
    states = (*[State.PUBLISHED] * (n_days - len(State)), *State)
    return [snapshot(f"stream {n}", states, alarms[n % 3]) for n in range(n_streams)]


@pytest.mark.parametrize("width", WIDTHS)
def test_twenty_streams_of_ten_years_are_one_screen(chromium, snapshot, width):
    with opened(chromium, Shown(*streams_of(snapshot, 20)), width=width) as seen:
        looks, sideways = seen.page.evaluate(LOOKS), seen.page.evaluate(SIDEWAYS)
        rows = seen.page.locator("tbody tr").count()
        tall = seen.page.evaluate("document.documentElement.scrollHeight")
        if into := os.environ.get("OPTSTREAM_PICTURES"):
            seen.page.screenshot(path=f"{into}/twenty-{width}.png", full_page=True)
    assert rows == 20
    assert width < 1440 or tall <= 900
    for fault in ("faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    assert sideways == []
    assert seen.errors == []


@pytest.mark.slow
def test_pages_of_ten_years_stay_small(snapshot):
    """What a browser takes each time that it refreshes: an alarm a day is a line, not one each."""
    client = TestClient(application(Shown(*streams_of(snapshot, 20)), "optstream:grün", lambda: AT))
    overview = client.get("/", headers=basic())
    stream = client.get("/streams/stream%201", headers=basic())
    assert (overview.status_code, stream.status_code) == (200, 200)
    assert len(overview.content) < 20 * 15_000
    assert len(stream.content) < 1_200_000
    assert overview.text.count("budget × 365") == 7


def test_one_of_many_nodes_is_found_and_a_refresh_leaves_what_is_typed(chromium, tmp_path):
    leaves = "".join(f'r{number} = "FR"\n' for number in range(300))
    names = "".join(f'r{number} = "Région {number}"\n' for number in range(300))
    text = CONFIGURATION.format(**PLAIN).replace('84 = "FR"\n11 = "FR"\n', leaves)
    (tmp_path / "many.toml").write_text(f"{text}[hierarchy.names]\n{names}")
    looks = Looks([tmp_path / "many.toml"], 1, lambda: datetime(2025, 1, 16, 3, tzinfo=UTC))
    looks.look()
    with opened(chromium, looks, "/streams/small", width=360) as seen:
        with seen.page.expect_response(seen.origin + "/streams/small"):
            seen.page.locator("#find").fill("region 29")
        seen.page.evaluate("document.getElementById('fresh').textContent = 'before'")
        seen.page.get_by_text("Shown as of").wait_for()
        assert seen.page.input_value("#find") == "region 29"
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**/nodes?find=*")
        assert seen.page.locator(".nodes a").count() == 11
        found = Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()
    assert seen.errors == []


@pytest.mark.nightly
def test_twenty_configurations_are_looked_at_one_after_the_other(tmp_path):
    files = [tmp_path / f"{number}" / "optstream.toml" for number in range(20)]
    for file in files:
        file.parent.mkdir()
        file.write_text(CONFIGURATION.format(**PLAIN).replace('"small"', f'"small-{file.parent.name}"'))
    looks = Looks(files, 30, lambda: datetime(2025, 1, 16, 3, tzinfo=UTC))
    looks.look()
    assert {(one.stream, one.problem) for one in looks.snapshots} == {
        (f"small-{number}", None) for number in range(20)
    }

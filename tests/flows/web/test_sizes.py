"""The operators' pages at sizes: twenty streams on one screen, ten years of days, hundreds of alarms."""

import os
from datetime import timedelta

import pytest

from tasks.monitor.alarms import Kind
from tasks.monitor.days import State
from tests.flows.web.conftest import LOOKS, SIDEWAYS, Shown, opened
from tests.tasks.pages.snapshots import FIRST, alarm

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


def test_days_before_the_last_sixty_are_shown_when_asked(chromium, snapshot):
    old = f"#d-{FIRST}"
    with opened(chromium, Shown(snapshot("long", [State.PUBLISHED] * 100)), "/streams/long") as seen:
        assert (seen.page.locator("[data-day]").count(), seen.page.locator(old).count()) == (60, 0)
        seen.page.get_by_text("Show 40 earlier days").click()
        assert (seen.page.locator("[data-day]").count(), seen.page.locator(old).count()) == (100, 1)

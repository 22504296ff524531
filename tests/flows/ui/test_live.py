"""One day watched on the page as it happens: late, there, begun, its run killed, taken over, published."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import pytest

from flows.ui.looking import Looks
from tasks.release.pipeline import reserve_budget
from tests.flows.ui.conftest import opened
from tests.tasks.two_regions import CONFIGURATION, READING, Installation

pytestmark = pytest.mark.slow
DAY = date(2016, 6, 1)


def test_a_day_is_watched_from_late_to_published(chromium, tmp_path):
    (tmp_path / "optstream.toml").write_text(CONFIGURATION + "[watch]\nfirst_day = 2016-06-01\n")
    installation = Installation(tmp_path, datetime(2016, 6, 2, 11, tzinfo=UTC))

    def clock():
        return installation.now

    looks = Looks([tmp_path / "optstream.toml"], 1, clock)
    looks.look()
    with (
        opened(chromium, looks, "/streams/two-regions") as seen,
        ThreadPoolExecutor(1) as apart,  # this thread has the browser's event loop
    ):

        def look(act=None, *given, **named):
            if act is not None:
                apart.submit(act, *given, **named).result()
            apart.submit(looks.look).result()

        def shows(state, alarms):
            seen.page.locator(f"#d-{DAY}.s-{state}").wait_for()
            seen.page.locator("section[aria-labelledby=alarms]").get_by_text(alarms).first.wait_for()

        shows("late", "was not complete by 2016-06-02 12:00")
        look(installation.simulate, DAY)
        shows("missing", "its dump is complete and no run released it")
        look(installation.release, DAY, steps=(*READING, reserve_budget))
        shows("running", "None.")
        installation.later(minutes=20)
        look()
        shows("failed", "its run died or failed")
        look(installation.release, DAY)
        shows("published", "None.")
        seen.page.locator(f"#d-{DAY}").click()
        for said in ("Its plan was charged", "Another run took it over", "It was published"):
            seen.page.get_by_text(said).first.wait_for()
    assert seen.errors == []
    assert seen.refused == []

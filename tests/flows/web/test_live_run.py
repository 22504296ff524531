"""A day on its stream's page with a real server and clock: late, killed, taken over, published."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from flows.orchestration.environment import api_of_settings
from flows.web.poll import Looks, runs_of
from tests.browser import visit
from tests.flows.served import CHECKOUT, kill_all, stand_still_once, stream_of, until
from tests.flows.web.conftest import opened

pytestmark = pytest.mark.nightly
STREAM, LEASE_SECONDS = "watched", 20
RUN = """
import sys
from pathlib import Path
from flows.orchestration.environment import connect
connect(Path(sys.argv[1]).parent / "trusted")
from prefect import tags
from flows.orchestration.release import release_days
from flows.orchestration.environment import tags_of
with tags(*tags_of(sys.argv[3])):
    release_days(sys.argv[1], [sys.argv[2]], lease_minutes=float(sys.argv[4]) / 60)
"""


def now():
    return datetime.now(UTC)


@contextmanager
def looked_at(settings):
    """Looks at the stream, one a second, as `optstream ui` takes them."""
    looks, stop = Looks([settings.file], 1, now, runs=partial(runs_of, api_of_settings())), Event()
    thread = Thread(target=looks.run, args=(stop,))
    thread.start()
    try:
        until("the first look", lambda: looks.snapshots, 60)
        yield looks
    finally:
        stop.set()
        thread.join(60)


@contextmanager
def standing_still(settings, api):
    """A run of the stream's day that has charged it and now stands still; gone on leaving."""
    variables = stand_still_once(settings.folder, STREAM) | {"PREFECT_API_URL": api}
    command = [sys.executable, "-c", RUN, str(settings.file), str(settings.watching.first_day), STREAM]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with (settings.folder / "run.txt").open("ab") as said:
        process = subprocess.Popen(
            [*command, str(LEASE_SECONDS)],
            env=inherited | variables,
            cwd=CHECKOUT,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        flag = Path(variables["STAND_STILL"]).with_suffix(f".{process.pid}")
        until("the run has charged the day", lambda: flag.exists() or process.poll() is not None, 120)
        assert process.poll() is None, (settings.folder / "run.txt").read_text()
        yield process
    finally:
        if process.poll() is None:
            kill_all([process.pid])
        process.wait()


def test_a_day_of_two_runs_is_watched_until_it_is_published(chromium, prefect_api, tmp_path):
    begun = time.monotonic()
    settings = stream_of(tmp_path / "here", STREAM)
    day, dumps = settings.watching.first_day, Path(str(settings.input_folder))
    dumps.rename(tmp_path / "not yet")
    dumps.mkdir()
    path = f"/streams/{STREAM}"
    with looked_at(settings) as looks, opened(chromium, looks, path) as seen:

        def shows(state, alarms, runs=None):
            seen.page.locator(f'#d-{day}[aria-label*=": {state}"]').wait_for(timeout=60_000)
            seen.page.locator("section[aria-labelledby=alarms]").get_by_text(alarms).first.wait_for()
            for words in runs or ():
                listed = seen.page.locator("section[aria-labelledby=runs] tbody tr")
                listed.filter(has_text=words).first.wait_for(timeout=60_000)

        shows("late", "was not complete by")
        dumps.rmdir()
        (tmp_path / "not yet").rename(dumps)
        shows("missing", "its dump is complete and no run released it")
        with standing_still(settings, prefect_api) as process:
            shows("running", "None.", ["Running"])
            process.send_signal(signal.SIGKILL)
            shows("failed", "its run died or failed")
        with standing_still(settings, prefect_api) as process:
            shows("running", "None.")
            process.send_signal(signal.SIGCONT)
            shows("published", "None.", ["Completed", "publish "])
        assert seen.page.evaluate("performance.getEntriesByType('navigation').length") == 1, "no reload"
        link = seen.page.locator("section[aria-labelledby=runs] tbody a").first.get_attribute("href")
        seen.page.locator(f"#d-{day}").click()
        for said in ("Its plan was charged", "Another run took it over", "It was published"):
            seen.page.get_by_text(said).first.wait_for()
    assert seen.errors == []
    assert seen.refused == []
    site = prefect_api.removesuffix("/api")
    with visit(chromium, allowed=(f"{site}/", "data:")) as prefect:
        prefect.page.goto(link)
        prefect.page.get_by_text(f"{STREAM} {day}").first.wait_for()
    print(f"\nwatched for {time.monotonic() - begun:.0f} s")

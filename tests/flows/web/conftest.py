"""The application as a browser meets it: a server of the tests' own on loopback, over snapshots by hand."""

import base64
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from threading import Thread

import pytest
import uvicorn

from flows.web.app import application
from flows.web.poll import Looks
from tasks.monitor.alarms import Kind
from tasks.monitor.days import State
from tasks.monitor.facts import Comparison, Surprises
from tasks.pages.snapshot import RunLink, RunStep, StreamRun
from tasks.trusted.verdicts import ResultFile
from tests.browser import visit
from tests.by_night import few
from tests.tasks.pages.conftest import AT, FIRST, alarm, settings, snapshot

__all__ = ["settings", "snapshot"]
LOOPBACK = "127.0.0.1"
SECRET = "optstream:secret"
AUTHORIZED = {"Authorization": "Basic " + base64.b64encode(SECRET.encode()).decode()}
LOOKS = (Path(__file__).parents[2] / "tasks/pages/looks.js").read_text(encoding="utf-8")
BY_DAY = ((360, "light"), (1440, "dark"))
SIZES = few([BY_DAY, ((360, "dark"), (768, "light"), (768, "dark"), (1440, "light"))], 1)
"""Widths and schemes in which a page is looked at in one visit."""
SIDEWAYS = """() => [...document.querySelectorAll(".scroll, pre")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.getAttribute("aria-label"))"""
"""What scrolls sideways."""


@contextmanager
def served(app) -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind((LOOPBACK, 0))
        listening.listen()  # a browser may ask before the thread does
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def opened(chromium, looks, path="/", **size):
    """What a browser sees at a path of the application over these looks, with the password."""
    with (
        served(application(looks, SECRET, looks.clock)) as origin,
        visit(chromium, allowed=(origin,), **size) as seen,
    ):
        seen.origin = origin
        seen.page.set_extra_http_headers(AUTHORIZED)
        seen.page.goto(origin + path)
        yield seen


def in_each(seen, sizes) -> Iterator[tuple[int, str]]:
    for width, scheme in sizes:
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.reload()
        yield width, scheme


def assert_readable(seen, name, *, wide=False):
    """Unfold and judge the page that is open; return what `LOOKS` found. wide: whether parts may scroll."""
    for details in seen.page.locator("details").all():
        details.evaluate("e => { e.open = true }")
    looks, sideways = seen.page.evaluate(LOOKS), seen.page.evaluate(SIDEWAYS)
    if into := os.environ.get("OPTSTREAM_PICTURES"):
        seen.page.screenshot(path=f"{into}/{name}.png", full_page=True)
    assert (seen.errors, seen.refused) == ([], [])
    for fault in ("dangling", "faint", "nameless", "headless", "wide", "tiny", "twice"):
        assert looks[fault] == [], fault
    assert not looks["overflow"]
    assert wide or sideways == []
    assert looks["landmarks"] == [1, 1, 1, 1]
    return looks


class Shown(Looks):
    def __init__(self, *snapshots, seconds=30):
        super().__init__([], seconds, lambda: AT, runs=lambda *_: (RUN,))
        self._found = dict(enumerate(snapshots))


RUN = StreamRun(
    "two-regions 2016-07-31",
    "Completed",
    AT - timedelta(minutes=9),
    AT - timedelta(minutes=4),
    (
        RunStep("ingest", AT - timedelta(minutes=9), AT - timedelta(minutes=7)),
        RunStep("draw", AT - timedelta(minutes=7), AT - timedelta(minutes=4)),
    ),
    "http://127.0.0.1:4200/runs/flow-run/1",
    RunLink("two-regions night", "http://127.0.0.1:4200/runs/flow-run/2"),
)


NEWEST = FIRST + timedelta(days=49)
USUAL, FAR = Comparison(NEWEST, "84", 6543.2, 6789.1, 3.0), Comparison(NEWEST, "11", 6.5, 6789.1, 3.0)


@pytest.fixture
def streams(snapshot):
    late = alarm(day=FIRST + timedelta(days=55), node="84")
    budget = [alarm(Kind.BUDGET, FIRST + timedelta(days=number)) for number in range(50, 60)]
    return (
        snapshot("calm"),
        snapshot(
            "every-state", [*[State.PUBLISHED] * 50, *State], [late, *budget], Fraction(1),
            since={late.key: AT - timedelta(hours=7)}, runs=(RUN,),
            docs=(ResultFile(Path("2016-06-01-raw.html"), FIRST, FIRST, AT, "raw"),),
            surprises=Surprises((USUAL, FAR), (FAR,)),
        ),
        snapshot("warned", alarms=[alarm(Kind.EXPIRING)]),
        snapshot("blind", problem="the ledger's database refuses: see that it runs, then look again"),
    )  # fmt: skip

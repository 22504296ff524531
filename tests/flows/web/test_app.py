"""The application by its own client: who is let in, what every answer forbids, and that it only reads."""

import base64
import os
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest
from starlette.testclient import TestClient

from flows.web.app import HEADERS, application
from flows.web.poll import MOST_ROUNDS_LATE, Looks
from tasks.monitor.alarms import Kind
from tasks.monitor.days import State
from tests.flows.web.conftest import LOOKS, SIDEWAYS, Shown, opened
from tests.tasks.conftest import CONFIGURATION, PLAIN
from tests.tasks.pages.snapshots import FIRST, alarm

SECRET = "optstream:grün"


class Clock:
    """A clock that goes by hand."""

    def __init__(self):
        self.now = datetime(2025, 1, 16, 3, tzinfo=UTC)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def looks(tmp_path, clock):
    """Two streams before their first run, of which one cannot be read."""
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(CONFIGURATION.format(**PLAIN))
    bad.write_text("<script>alert(1)</script>")
    return Looks([good, bad], 30, clock, tmp_path / "optstream.prom")


@pytest.fixture
def client(looks, clock):
    return TestClient(application(looks, SECRET, clock), base_url="http://127.0.0.1")


def basic(secret=SECRET):
    return {"Authorization": "Basic " + base64.b64encode(secret.encode()).decode()}


@pytest.mark.parametrize("path", ["/", "/metrics", "/static/page.css", "/nothing"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("optstream:"),
        basic("optstream:grun"),
        {"Authorization": "Basic ?"},
        {"Authorization": "Bearer x"},
    ],
)
def test_without_the_password_nothing_is_said(client, path, headers):
    answer = client.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert "small" not in answer.text


def test_every_answer_forbids_what_it_does_not_need(client, looks):
    looks.look()
    for path, code in (
        ("/", 200),
        ("/metrics", 200),
        ("/healthz", 200),
        ("/static/page.css", 200),
        ("/x", 404),
    ):
        answer = client.get(path, headers=basic())
        assert answer.status_code == code, path
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/", "/metrics", "/static/page.css"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_only_reads(client, path, method):
    assert client.request(method, path, headers=basic()).status_code == 405


def test_streams_are_shown_and_one_that_cannot_be_read_hides_none(client, looks):
    assert "No stream was looked at yet" in client.get("/", headers=basic()).text
    looks.look()
    text = client.get("/", headers=basic()).text
    assert '<a href="/streams/small">small</a>' in text
    assert '<a href="/streams/bad">bad</a>' in text
    assert "cannot look" in text
    assert "<script>alert" not in text
    told = client.get("/metrics", headers=basic()).text
    assert 'optstream_look_success{stream="small"} 1.0' in told
    assert 'optstream_look_success{stream="bad"} 0.0' in told


def test_health_says_whether_the_streams_are_looked_at(client, looks, clock):
    assert client.get("/healthz").status_code == 503
    looks.look()
    assert client.get("/healthz").text == "ok\n"
    clock.now += timedelta(seconds=30 * MOST_ROUNDS_LATE)
    assert client.get("/healthz").status_code == 503


def test_a_text_file_that_cannot_be_written_is_said_once_and_stops_no_look(looks, clock, caplog):
    looks.textfile = looks.textfile.parent / "absent" / "optstream.prom"
    looks.look()
    clock.now += timedelta(seconds=30)
    looks.look()
    assert [snapshot.at for snapshot in looks.snapshots if snapshot.view] == [clock.now]
    assert looks.is_alive
    (said,) = caplog.messages
    assert "cannot be written (No such file or directory): fix its folder or disk" in said
    looks.textfile.parent.mkdir()
    looks.look()
    assert looks.textfile.exists()


def test_the_loop_ends_when_it_is_told(looks):
    stop = Event()
    looks.seconds = 0.01
    loop = Thread(target=looks.run, args=(stop,))
    loop.start()
    while not looks.snapshots:
        pass
    stop.set()
    loop.join(30)
    assert not loop.is_alive()


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

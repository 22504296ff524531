"""The application by its own client: who is let in, what every answer forbids, and that it only reads."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from flows.web.app import HEADERS, application
from flows.web.poll import IDLE, MOST_ROUNDS_LATE, Looks
from tests.tasks.conftest import CONFIGURATION, PLAIN

SECRET = "optstream:grün"
START = datetime(2025, 1, 16, 3, tzinfo=UTC)


@pytest.fixture
def looks(tmp_path):
    """Two streams before their first run, of which one cannot be read."""
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(CONFIGURATION.format(**PLAIN))
    bad.write_text("<script>alert(1)</script>")
    return Looks([good, bad], 30, lambda: START, tmp_path / "optstream.prom")


@pytest.fixture
def client(looks):
    return TestClient(application(looks, SECRET, looks.clock), base_url="http://127.0.0.1")


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
    assert answer.text == "user and password are needed\n"


@pytest.mark.parametrize(
    ("path", "code"),
    [("/", 200), ("/metrics", 200), ("/healthz", 200), ("/static/page.css", 200), ("/x", 404)],
)
def test_every_answer_forbids_what_it_does_not_need_and_only_reads(client, looks, path, code):
    looks.look()
    answer = client.get(path, headers=basic())
    assert answer.status_code == code
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client.request(method, path, headers=basic()).status_code == (405 if code == 200 else code)


def test_streams_are_shown_and_one_that_cannot_be_read_hides_none(client, looks):
    assert "No stream was looked at yet" in client.get("/", headers=basic()).text
    looks.look()
    text = client.get("/", headers=basic()).text
    assert '<a href="/streams/small">small</a>' in text
    assert '<a href="/streams/bad">bad</a>' in text
    assert "cannot look" in text
    assert "<script>alert" not in text
    page = client.get("/streams/bad", headers=basic()).text
    assert "Cannot look since" in page
    assert "<script>alert" not in page
    metrics = client.get("/metrics", headers=basic()).text
    assert 'optstream_look_success{stream="small"} 1.0' in metrics
    assert 'optstream_look_success{stream="bad"} 0.0' in metrics


def test_health_says_whether_the_streams_are_looked_at_and_pages_rest(client, looks):
    assert client.get("/healthz").status_code == 503
    looks.look()
    assert client.get("/healthz").text == "ok\n"
    looks.clock = lambda: START + timedelta(seconds=30 * MOST_ROUNDS_LATE)
    assert client.get("/healthz").status_code == 503
    # the pages of `serve` rest once nobody asked for a while
    looks.clock = lambda: START + IDLE
    assert not looks.is_idle
    looks.clock = lambda: START + 2 * IDLE
    assert looks.is_idle
    client.get("/static/page.css")
    assert not looks.is_idle


def test_a_text_file_that_cannot_be_written_is_said_once_and_stops_no_look(looks, caplog):
    looks.textfile = looks.textfile.parent / "absent" / "optstream.prom"
    looks.look()
    looks.clock = lambda: START + timedelta(seconds=30)
    looks.look()
    assert [snapshot.at for snapshot in looks.snapshots if snapshot.view] == [looks.clock()]
    assert looks.is_alive
    (said,) = caplog.messages
    assert "cannot be written (No such file or directory): fix its folder or disk" in said
    looks.textfile.parent.mkdir()
    looks.look()
    assert looks.textfile.exists()

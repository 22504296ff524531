"""The watch against a real server: what it finds, whom it tells, and that nothing silences it."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.notifications import CustomWebhookNotificationBlock

from flows.orchestration.serve import watches_of
from flows.orchestration.supervise import watching
from flows.orchestration.watch import AppriseUrl, Block, _look_and_send, _send, watch_here
from tasks.config import load_settings
from tasks.monitor import facts
from tasks.monitor.alarms import Kind, alarm
from tasks.monitor.facts import last_end, last_ended, note_end
from tasks.monitor.notify import Notification
from tasks.trusted.files import exclusive_in
from tests.faults.world import configure, configured, deliver
from tests.flows.served import descendants, optstream, until
from tests.tasks.two_regions import CONFIGURATION, Installation


@dataclass
class Heard:
    """The JSON bodies that were posted. status: what it answers from now on."""

    port: int
    status: int = 200
    messages: list[Any] = field(default_factory=list)


@contextmanager
def webhook() -> Iterator[Heard]:
    """It takes messages in a thread until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if heard.status == 200:
                heard.messages.append(json.loads(body))
            self.send_response(heard.status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    heard = Heard(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


STREAM = "two-regions"
HASTY = """
from flows.orchestration import environment
environment.ANSWER_SECONDS = 0.5
from flows.cli.main import main
main()
"""


@pytest.fixture
def settings(tmp_path, monkeypatch, prefect_api):
    """Three days up to yesterday, watched, with a dump each; midnight of UTC is when a day is late."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    days = last_three(configure(tmp_path, configured()))
    watching = f'[watch]\nfirst_day = {days[0]}\nlate_after = "00:00"\n'
    settings = configure(tmp_path, configured() + watching + 'notify = ["custom-webhook/watch-test"]\n')
    deliver(settings, days)
    return settings


def last_three(settings):
    last = last_ended(settings, datetime.now(UTC))
    return [last - timedelta(days=2), last - timedelta(days=1), last]


@pytest.fixture
def receiver(prefect_api):
    """A webhook, and the block by which the watch finds it."""
    with webhook() as heard:
        CustomWebhookNotificationBlock(
            name="optstream",
            url=f"http://127.0.0.1:{heard.port}/secret-token",
            json_data={"subject": "{{subject}}", "body": "{{body}}"},
        ).save("watch-test", overwrite=True)
        yield heard


@pytest.fixture
def missing(settings):
    release(settings, *last_three(settings)[:2])
    return settings


def watch(settings):
    return watch_here(load_settings(settings.file))


def release(settings, *days):
    """Release as a run without a server does: these tests are about the watch."""
    Installation(settings.folder, datetime.now(UTC)).release(*days)


@pytest.mark.nightly
def test_a_webhook_that_does_not_answer_is_reported_by_the_next_watch_and_its_address_is_no_secret_lost(
    missing, receiver
):
    receiver.status = 500
    watched = watch(missing)
    (why,) = watched.failed
    assert "custom-webhook/watch-test (HTTPStatusError)" in why
    assert "secret-token" not in why
    assert (list(watched.sent), receiver.messages) == (["events"], [])
    receiver.status = 200
    assert list(watch(missing).sent) == ["custom-webhook/watch-test"]
    assert len(receiver.messages) == 1


@pytest.mark.nightly
def test_an_alarm_arrives_through_apprise(missing, receiver):
    """By mail and by others alike; here as it posts JSON."""
    AppriseUrl(url=f"json://127.0.0.1:{receiver.port}").save("watch-json", overwrite=True)
    slug = "apprise-url/watch-json"
    missing.file.write_text(missing.file.read_text().replace("custom-webhook/watch-test", slug))
    assert list(watch(missing).sent) == ["events", slug]
    (said,) = receiver.messages
    assert said["title"] == f"optstream {STREAM}: 1 alarm"
    assert "missing" in said["message"]


@pytest.mark.nightly
def test_a_watch_that_cannot_look_says_so_and_calls_nothing_over(missing, receiver):
    watch(missing)
    ledger, away = (missing.trusted_folder / name for name in ("ledger.sqlite", "away"))
    ledger.rename(away)
    assert [alarm.kind.value for alarm in watch(missing).alarms] == ["missing", "blind"]
    away.rename(ledger)
    watch(missing)
    subjects = [one["subject"].rpartition(": ")[2] for one in receiver.messages]
    assert subjects == ["1 alarm", "1 alarm", "1 over"]


def test_what_depends_on_readings_reaches_no_channel(settings, receiver, monkeypatch):
    """Operators see it in `status` and on their page; events, notifications and artifacts leave the zone."""
    from tasks.monitor.facts import Verdicts

    days = last_three(settings)
    release(settings, *days)
    clamped = {"84": facts.Suspect(1.0, 0.0, 0.0)}
    verdicts = Verdicts(frozenset(), dict.fromkeys(days, clamped), {})
    monkeypatch.setattr(facts, "read_verdicts", lambda _settings, _days: verdicts)
    watched = watch(settings)
    assert {alarm.kind for alarm in watched.view.alarms} == {"suspect-readings"}
    assert (watched.alarms, watched.sent) == ((), {})
    assert receiver.messages == []
    assert "clamped" not in (settings.watch_folder / "told.json").read_text()


def test_an_error_that_nobody_planned_blinds_the_watch_and_does_not_silence_it(settings, receiver):
    """A file of the trusted folder that nests too deep for Python's reader: no OptStreamError."""
    release(settings, *last_three(settings))
    settings.audits_folder.mkdir(parents=True)
    (settings.audits_folder / "spoilt.json").write_text("[" * 100_000)
    assert [alarm.kind.value for alarm in watch(settings).alarms] == ["blind"]
    assert receiver.messages[0]["subject"] == f"optstream {STREAM}: 1 alarm"


@pytest.mark.nightly
def test_a_watch_that_cannot_record_receivers_notifies_all_the_same(missing, receiver):
    """As on a full disk: better twice than never."""
    folder = missing.watch_folder
    (folder / "told.json").mkdir(parents=True)
    for times in (1, 2):
        (why,) = watch(missing).failed
        assert "told.json (Is a directory)" in why
        assert len(receiver.messages) == times
    (folder / "told.json").rmdir()
    (folder / ".lock").unlink()
    (folder / ".lock").mkdir()  # nor can it have the lock
    assert "custom-webhook/watch-test" in watch(missing).sent
    assert watch(missing).sent == {}


@pytest.mark.nightly
def test_a_watch_that_hangs_ends_before_the_next_one_and_that_one_tells(settings, receiver):
    """By a cron of every minute, in processes as `serve` starts them; the first one is made up for."""
    text = settings.file.read_text()
    text += '[schedule]\ncron = "* * * * *"\nwatch_cron = "* * * * *"\n'
    settings = configure(settings.folder, text)
    release(settings, *last_three(settings)[:2])
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    note_end(settings, "watch", long_ago)
    with exclusive_in(settings.watch_folder):
        with watching([watches_of(settings, timedelta(seconds=20))]):
            until("it begins", lambda: processes_of_watches(settings), 30)
            until("it is killed", lambda: not processes_of_watches(settings), 60)
        assert (last_end(settings, "watch"), receiver.messages) == (long_ago, [])
    with watching([watches_of(settings)]):
        until("the next one ends", lambda: last_end(settings, "watch") > long_ago, 120)
    assert len(receiver.messages) == 1


def processes_of_watches(settings):
    words, found = b"watch\0--config\0" + bytes(settings.file), []
    for one in descendants(os.getpid()):
        with suppress(OSError):  # it ended
            found += [one] if words in Path(f"/proc/{one}/cmdline").read_bytes() else []
    return found


def test_a_server_that_is_stopped_keeps_no_watch_from_looking(missing, receiver):
    """It notes what it found, says that no server answers, and the next watch tells."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        done = optstream("watch", cwd=missing.folder, program=("-c", HASTY), PREFECT_API_URL=address)
    assert done.returncode == 2
    assert "alarm: missing:" in done.stdout
    assert "error: no server answers at PREFECT_API_URL" in done.stderr
    assert last_end(missing, "watch") is not None
    assert set(watch(missing).sent) == {"events", "custom-webhook/watch-test"}


def test_a_block_whose_notify_is_a_coroutine_is_heard(monkeypatch):
    said = []

    class Pager(NotificationBlock):
        """Written as the base class says."""

        async def notify(self, body: str, subject: str | None = None) -> None:
            said.append((subject, body))

    monkeypatch.setattr(Block, "load", lambda channel: Pager())
    settings = SimpleNamespace(stream=SimpleNamespace(name="two-regions"))
    _send(settings, "pager/night", Notification((alarm(Kind.MISSING, "two-regions", "no dump came"),), ()))
    ((subject, body),) = said
    assert subject == "optstream two-regions: 1 alarm"
    assert "no dump came" in body


def test_the_event_log_has_a_line_a_transition_and_says_when_it_cannot(tmp_path):
    settings = configure(tmp_path, CONFIGURATION + '[watch]\nlog = "trusted/log/events.jsonl"\n')
    for _ in range(2):
        assert _look_and_send(settings, ()).failed == ()
    (line,) = settings.event_log_file.read_text().splitlines()
    (record,) = json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert record["eventName"] == "optstream.alarm.not-begun"
    settings.event_log_file.unlink()
    settings.event_log_file.mkdir()
    settings.watch_folder.joinpath("told.json").unlink()
    (failed,) = _look_and_send(settings, ()).failed
    assert failed.startswith("[watch] log cannot be written (Is a directory)")

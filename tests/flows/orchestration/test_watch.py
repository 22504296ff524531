"""The watch against a real server: a renamed region and a skipped day are told the same night."""

import json
import os
import shutil
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email import message_from_string
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request, urlopen

import pytest
from prefect.blocks.abstract import NotificationBlock

from flows.orchestration.release import released
from flows.orchestration.serve import watching
from flows.orchestration.watch import Block, _look_and_send, _send
from optstream.ledger import open_ledger
from optstream.noise import secure_noise
from tasks.config import load_settings
from tasks.monitor.alarms import Kind, alarm
from tasks.monitor.facts import last_end, last_ended, note_end
from tasks.monitor.notify import Notification
from tasks.release.run import Requested, Run, enrol
from tasks.trusted.files import exclusive_in
from tests.faults.world import configured, deliver
from tests.flows.listeners import mail_server, webhook
from tests.flows.served import descendants, optstream, until
from tests.tasks.two_regions import CONFIGURATION

STREAM = "two-regions"
HASTY = """
from flows.orchestration import environment
environment.ANSWER_SECONDS = 2
from flows.cli.main import main
main()
"""


@pytest.fixture
def here(tmp_path, monkeypatch, prefect_api):
    """Three days up to yesterday, watched, with a dump each; midnight of UTC is when a day is late."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    text = configured()
    (tmp_path / "optstream.toml").write_text(text)
    settings = load_settings(tmp_path / "optstream.toml")
    days = last_three(settings)
    watching = f'[watch]\nfirst_day = {days[0]}\nlate_after = "00:00"\n'
    (tmp_path / "optstream.toml").write_text(text + watching + 'notify = ["custom-webhook/watch-test"]\n')
    deliver(settings, days)
    return tmp_path


def last_three(settings):
    last = last_ended(settings, datetime.now(UTC))
    return [last - timedelta(days=2), last - timedelta(days=1), last]


@pytest.fixture
def told(prefect_api):
    """A webhook, and the block by which the watch finds it."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    with webhook() as heard:
        CustomWebhookNotificationBlock(
            name="optstream",
            url=f"http://127.0.0.1:{heard.port}/secret-token",
            json_data={"subject": "{{subject}}", "body": "{{body}}"},
        ).save("watch-test", overwrite=True)
        yield heard


def watch(settings):
    from flows.orchestration.watch import watch_here

    return watch_here(load_settings(settings.file))


def release(settings, *days):
    """Release as a run without a server does: these tests are about the watch."""
    run = Run(settings, open_ledger(settings.ledger_url), secure_noise(), "owner", lambda: datetime.now(UTC))
    enrol(run)
    return released(run, [Requested(day) for day in days])


def events_of(api, prefix, since, n_events, seconds=20):
    """The events whose names begin so, once there are so many since then: they are sent aside."""
    query = {"filter": {"event": {"prefix": [prefix]}, "occurred": {"since": since.isoformat()}}, "limit": 50}
    request = Request(
        f"{api}/events/filter", json.dumps(query).encode(), {"content-type": "application/json"}
    )
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with urlopen(request) as answer:
            found = json.load(answer)["events"]
        if len(found) >= n_events:
            break
        time.sleep(0.2)
    return found


@pytest.mark.nightly
def test_a_renamed_region_and_a_skipped_day_are_told_once_and_then_over(here, told, prefect_api):
    settings = load_settings(here / "optstream.toml")
    first, skipped, renamed = last_three(settings)
    dumps = here / "dumps"
    (dumps / "region=FR-AURA").mkdir()
    (dumps / f"region=84/date={renamed}").rename(dumps / f"region=FR-AURA/date={renamed}")
    works = release(settings, first, renamed)
    assert [work.outcome.status.value for work in works] == ["published", "refused"]

    started, since = time.monotonic(), datetime.now(UTC)
    watched = watch(settings)
    ((message,), (at,)) = (told.messages, told.at)
    print(f"\ntime to alarm, renamed region and skipped day: {at - started:.2f} s from the watch's start")
    found = {(alarm.kind.value, alarm.day, alarm.node, alarm.suggestion) for alarm in watched.alarms}
    assert found == {
        ("missing", skipped, None, None),
        ("unknown-region", renamed, "FR-AURA", "84"),
    }
    assert message["subject"] == f"optstream {STREAM}: 2 alarms"
    assert "region=FR-AURA" in message["body"]
    assert "region=84" in message["body"]
    assert f"missing: {skipped}" in message["body"]
    assert str(here) not in message["body"]
    emitted = events_of(prefect_api, "optstream.alarm.", since, 2)
    assert sorted(event["event"] for event in emitted) == [
        "optstream.alarm.missing",
        "optstream.alarm.unknown-region",
    ]
    for event in emitted:
        assert event["resource"]["prefect.resource.id"] == f"optstream.stream.{STREAM}"
    (renaming,) = (event for event in emitted if event["event"].endswith("region"))
    assert renaming["payload"]["suggestion"] == "84"

    # an hour later nothing is new, and nobody is told again
    assert watch(settings).sent == {}
    assert len(told.messages) == 1

    shutil.rmtree(dumps / f"region=84/date={renamed}", ignore_errors=True)
    (dumps / f"region=FR-AURA/date={renamed}").rename(dumps / f"region=84/date={renamed}")
    release(settings, skipped, renamed)
    assert watch(settings).alarms == ()
    assert told.messages[1]["subject"] == f"optstream {STREAM}: 2 over"
    assert len(told.messages) == 2
    assert len(events_of(prefect_api, "optstream.resolved.", since, 2)) == 2


@pytest.mark.nightly
def test_a_webhook_that_does_not_answer_is_told_by_the_next_watch_and_its_address_is_no_secret_lost(
    here, told
):
    settings = load_settings(here / "optstream.toml")
    release(settings, *last_three(settings)[:2])
    told.status = 500
    watched = watch(settings)
    (why,) = watched.failed
    assert "custom-webhook/watch-test (HTTPStatusError)" in why
    assert "secret-token" not in why
    assert list(watched.sent) == ["events"]
    assert told.messages == []
    told.status = 200
    assert list(watch(settings).sent) == ["custom-webhook/watch-test"]
    assert len(told.messages) == 1


@pytest.mark.nightly
def test_an_alarm_arrives_by_mail_through_apprise(here, prefect_api):
    from flows.orchestration.watch import AppriseUrl

    settings = load_settings(here / "optstream.toml")
    release(settings, *last_three(settings)[:2])
    with mail_server() as mail:
        url = f"mailto://127.0.0.1:{mail.port}?from=optstream@example.org&to=night@example.org&mode=insecure"
        AppriseUrl(url=url).save("watch-mail", overwrite=True)
        text = (here / "optstream.toml").read_text()
        slug = "apprise-url/watch-mail"
        (here / "optstream.toml").write_text(text.replace("custom-webhook/watch-test", slug))
        assert list(watch(settings).sent) == ["events", slug]
    (mail_text,) = mail.messages
    mail = message_from_string(mail_text)
    assert mail["subject"] == f"optstream {STREAM}: 1 alarm"
    parts = [part.get_payload(decode=True).decode() for part in mail.walk() if not part.is_multipart()]
    assert any("missing" in part for part in parts)


@pytest.mark.nightly
def test_a_watch_that_cannot_look_says_so_and_calls_nothing_over(here, told):
    settings = load_settings(here / "optstream.toml")
    release(settings, *last_three(settings)[:2])
    watch(settings)
    ledger = here / "trusted/ledger.sqlite"
    ledger.rename(here / "trusted/away")
    blind = watch(settings)
    assert [alarm.kind.value for alarm in blind.alarms] == ["missing", "blind"]
    assert told.messages[1]["subject"] == f"optstream {STREAM}: 1 alarm"
    (here / "trusted/away").rename(ledger)
    watch(settings)
    assert told.messages[2]["subject"] == f"optstream {STREAM}: 1 over"


def test_what_depends_on_readings_reaches_no_channel(here, told, monkeypatch):
    """Operators see it in `status` and on their page; events, notifications and artifacts leave the zone."""
    from tasks.monitor import facts
    from tasks.monitor.facts import Suspect, Verdicts

    settings = load_settings(here / "optstream.toml")
    days = last_three(settings)
    release(settings, *days)
    clamped = {"84": Suspect(1.0, 0.0, 0.0)}
    verdicts = Verdicts(frozenset(), dict.fromkeys(days, clamped), {})
    monkeypatch.setattr(facts, "read_verdicts", lambda _settings, _days: verdicts)
    watched = watch(settings)
    assert {alarm.kind for alarm in watched.view.alarms} == {"suspect-readings"}
    assert (watched.alarms, watched.sent) == ((), {})
    assert told.messages == []
    kept = (settings.watch_folder / "told.json").read_text()
    assert "clamped" not in kept


def test_an_error_that_nobody_planned_blinds_the_watch_and_does_not_silence_it(here, told):
    """A file of the trusted folder that nests too deep for Python's reader: no OptStreamError."""
    settings = load_settings(here / "optstream.toml")
    release(settings, *last_three(settings))
    settings.audits_folder.mkdir(parents=True)
    (settings.audits_folder / "spoilt.json").write_text("[" * 100_000)
    assert [alarm.kind.value for alarm in watch(settings).alarms] == ["blind"]
    assert told.messages[0]["subject"] == f"optstream {STREAM}: 1 alarm"


@pytest.mark.nightly
def test_who_cannot_note_who_was_told_tells_all_the_same(here, told):
    """As on a full disk: better twice than never."""
    settings = load_settings(here / "optstream.toml")
    release(settings, *last_three(settings)[:2])
    (settings.watch_folder / "told.json").mkdir(parents=True)
    for times in (1, 2):
        (why,) = watch(settings).failed
        assert "told.json (Is a directory)" in why
        assert len(told.messages) == times
    (settings.watch_folder / "told.json").rmdir()
    (settings.watch_folder / ".lock").unlink()
    (settings.watch_folder / ".lock").mkdir()  # nor can it have the lock
    assert "custom-webhook/watch-test" in watch(settings).sent
    assert watch(settings).sent == {}


@pytest.mark.nightly
def test_a_watch_that_hangs_ends_before_the_next_one_and_that_one_tells(here, told):
    """By a cron of every minute, in processes as `serve` starts them; the first one is made up for."""
    settings = load_settings(here / "optstream.toml")
    text = settings.file.read_text()
    settings.file.write_text(f'{text}[schedule]\ncron = "* * * * *"\nwatch_cron = "* * * * *"\n')
    settings = load_settings(settings.file)
    release(settings, *last_three(settings)[:2])
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    note_end(settings, "watch", long_ago)
    with exclusive_in(settings.watch_folder):
        with watching([settings], timedelta(seconds=20)):
            until("it begins", lambda: watches_of(settings), 30)
            until("it is killed", lambda: not watches_of(settings), 60)
        assert (last_end(settings, "watch"), told.messages) == (long_ago, [])
    with watching([settings]):
        until("the next one ends", lambda: last_end(settings, "watch") > long_ago, 120)
    assert len(told.messages) == 1


def watches_of(settings):
    """The processes that watch a stream."""
    words, found = b"watch\0--config\0" + bytes(settings.file), []
    for one in descendants(os.getpid()):
        with suppress(OSError):  # it ended
            found += [one] if words in Path(f"/proc/{one}/cmdline").read_bytes() else []
    return found


def test_a_server_that_is_stopped_keeps_no_watch_from_looking(here, told, monkeypatch):
    """It notes what it found, says that no server answers, and the next watch tells."""
    settings = load_settings(here / "optstream.toml")
    release(settings, *last_three(settings)[:2])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        done = optstream("watch", cwd=here, program=("-c", HASTY), PREFECT_API_URL=address)
    assert done.returncode == 2
    assert "alarm: missing:" in done.stdout
    assert "error: no server answers at PREFECT_API_URL" in done.stderr
    assert last_end(settings, "watch") is not None
    assert set(watch(settings).sent) == {"events", "custom-webhook/watch-test"}


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
    file = tmp_path / "optstream.toml"
    file.write_text(CONFIGURATION + '[watch]\nlog = "trusted/log/events.jsonl"\n')
    settings = load_settings(file)
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

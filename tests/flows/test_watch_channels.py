"""Channels of the watch: a block that notifies asynchronously, as Prefect's base class has it, is heard."""

import json
from types import SimpleNamespace

from prefect.blocks.abstract import NotificationBlock

from flows.orchestration.watch import Block, _look_and_tell, _tell
from tasks.config import load_settings
from tasks.monitor.alarms import Kind, alarm
from tasks.monitor.notify import Notification
from tests.tasks.two_regions import CONFIGURATION


def test_a_block_whose_notify_is_a_coroutine_is_heard(monkeypatch):
    said = []

    class Pager(NotificationBlock):
        """Written as the base class says."""

        async def notify(self, body: str, subject: str | None = None) -> None:
            said.append((subject, body))

    monkeypatch.setattr(Block, "load", lambda channel: Pager())
    settings = SimpleNamespace(stream=SimpleNamespace(name="two-regions"))
    _tell(settings, "pager/night", Notification((alarm(Kind.MISSING, "two-regions", "no dump came"),), ()))
    ((subject, body),) = said
    assert subject == "optstream two-regions: 1 alarm"
    assert "no dump came" in body


def test_the_event_log_has_a_line_a_transition_and_says_when_it_cannot(tmp_path):
    file = tmp_path / "optstream.toml"
    file.write_text(CONFIGURATION + '[watch]\nlog = "trusted/log/events.jsonl"\n')
    settings = load_settings(file)
    for _ in range(2):
        assert _look_and_tell(settings, ()).failed == ()
    (line,) = settings.event_log_file.read_text().splitlines()
    (record,) = json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert record["eventName"] == "optstream.alarm.not-begun"
    settings.event_log_file.unlink()
    settings.event_log_file.mkdir()
    settings.watch_folder.joinpath("told.json").unlink()
    (failed,) = _look_and_tell(settings, ()).failed
    assert failed.startswith("[watch] log cannot be written (Is a directory)")

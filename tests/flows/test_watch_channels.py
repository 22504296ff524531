"""Channels of the watch: a block that notifies asynchronously, as Prefect's base class has it, is heard."""

from types import SimpleNamespace

from prefect.blocks.abstract import NotificationBlock

from flows.orchestration.watch import Block, _tell
from tasks.monitoring import Alarm, Kind
from tasks.monitoring.told import News


def test_a_block_whose_notify_is_a_coroutine_is_heard(monkeypatch):
    said = []

    class Pager(NotificationBlock):
        """Written as the base class says."""

        async def notify(self, body: str, subject: str | None = None) -> None:
            said.append((subject, body))

    monkeypatch.setattr(Block, "load", lambda channel: Pager())
    settings = SimpleNamespace(stream=SimpleNamespace(name="two-regions"))
    _tell(settings, "pager/night", News((Alarm(Kind.MISSING, "two-regions", "no dump came"),), ()))
    ((subject, body),) = said
    assert subject == "optstream two-regions: 1 alarm"
    assert "no dump came" in body

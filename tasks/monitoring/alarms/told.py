"""Who was told of which alarm: each channel hears of it once, and once more when it is over."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from optstream.stream import period_from
from tasks.config import Settings
from tasks.monitoring.alarms.alarm import Alarm, Key
from tasks.storage.private_files import write_private

FORMAT = "optstream.told/1"
FILE = "told.json"


@dataclass(frozen=True)
class KnownAlarm:
    """An alarm that was seen. lasts: at the last look, too. heard: the channels that know of it."""

    alarm: Alarm
    since: datetime
    lasts: bool = True
    heard: frozenset[str] = frozenset()


_TOLD = TypeAdapter(KnownAlarm)
Memory = Mapping[Key, KnownAlarm]


@dataclass(frozen=True)
class Notification:
    """What one channel has not heard yet."""

    new: tuple[Alarm, ...]
    over: tuple[Alarm, ...]

    def __bool__(self) -> bool:
        return bool(self.new or self.over)


def seen(memory: Memory, alarms: Iterable[Alarm], channels: Iterable[str], now: datetime) -> Memory:
    """The memory after a look that found these alarms.

    An alarm whose suggestion changed is told again. What is over is remembered until every channel that
    heard of it, and is still among `channels`, has heard that, too.
    """
    known = frozenset(channels)
    after: dict[Key, KnownAlarm] = {}
    for alarm in alarms:
        before = memory.get(alarm.key)
        same = before is not None and before.alarm.suggestion == alarm.suggestion
        heard = before.heard & known if before is not None and same else frozenset[str]()
        after[alarm.key] = KnownAlarm(alarm, before.since if before else now, True, heard)
    for key, told in memory.items():
        if key not in after and told.heard & known:
            after[key] = replace(told, lasts=False, heard=told.heard & known)
    return after


def news_for(memory: Memory, channel: str) -> Notification:
    """What a channel is to be told."""
    return Notification(
        tuple(told.alarm for told in memory.values() if told.lasts and channel not in told.heard),
        tuple(told.alarm for told in memory.values() if not told.lasts and channel in told.heard),
    )


def heard(memory: Memory, channel: str) -> Memory:
    """The memory after a channel was told its news."""
    after = {}
    for key, told in memory.items():
        now = told.heard | {channel} if told.lasts else told.heard - {channel}
        if told.lasts or now:
            after[key] = replace(told, heard=now)
    return after


def read_told(settings: Settings) -> Memory:
    """What was told; nothing where the file is gone or spoilt, so that all of it is told again."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        document = json.loads((settings.watch_folder / FILE).read_bytes())
        if document["format"] == FORMAT:
            entries = [_from_document(entry) for entry in document["alarms"]]
            return {told.alarm.key: told for told in entries}
    return {}


def write_told(settings: Settings, memory: Memory) -> None:
    """Keep it, in one step."""
    document = {"format": FORMAT, "alarms": [_to_document(told) for told in memory.values()]}
    write_private(settings.watch_folder / FILE, json.dumps(document, indent=1).encode())


def _from_document(entry: Mapping[str, Any]) -> KnownAlarm:
    day = entry["day"]
    alarm = {**entry, "day": None if day is None else period_from(day)}
    return _TOLD.validate_python({**entry, "alarm": alarm})


def _to_document(told: KnownAlarm) -> dict[str, object]:
    return {
        **told.alarm.to_document(),
        "since": told.since.isoformat(),
        "lasts": told.lasts,
        "heard": sorted(told.heard),
    }

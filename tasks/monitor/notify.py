"""Notifications: each channel gets an alarm once when it begins, and once when it is over."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from optstream.errors import LedgerError
from optstream.ledger import Ledger, ReleaseEvent
from tasks.config import Settings
from tasks.ledger import ledger_if_any
from tasks.monitor.alarms import Alarm, Key, Severity, join_alike
from tasks.trusted.files import append_lines, write_private

FORMAT = "optstream.told/1"
FILE = "told.json"


@dataclass(frozen=True)
class KnownAlarm:
    """An alarm that was seen. lasts: at the last look, too. heard: the channels that know of it."""

    alarm: Alarm
    since: datetime
    lasts: bool = True
    heard: frozenset[str] = frozenset()


Memory = Mapping[Key, KnownAlarm]


@dataclass(frozen=True)
class Notification:
    """What one channel has not heard yet."""

    new: tuple[Alarm, ...]
    over: tuple[Alarm, ...]

    @property
    def joined(self) -> "Notification":
        """The same, with one alarm for alike ones of periods in a row."""
        return Notification(join_alike(self.new), join_alike(self.over))

    def __bool__(self) -> bool:
        return bool(self.new or self.over)


def seen(memory: Memory, alarms: Iterable[Alarm], channels: Iterable[str], now: datetime) -> Memory:
    """Return the memory after a look; an alarm that is over is kept until every channel knows."""
    all_channels = frozenset(channels)
    after: dict[Key, KnownAlarm] = {}
    for alarm in alarms:
        before = memory.get(alarm.key)
        same = before is not None and before.alarm.suggestion == alarm.suggestion
        heard = before.heard & all_channels if before is not None and same else frozenset[str]()
        after[alarm.key] = KnownAlarm(alarm, before.since if before else now, True, heard)
    for key, known in memory.items():
        if key not in after and known.heard & all_channels:
            after[key] = replace(known, lasts=False, heard=known.heard & all_channels)
    return after


def news_for(memory: Memory, channel: str) -> Notification:
    return Notification(
        tuple(known.alarm for known in memory.values() if known.lasts and channel not in known.heard),
        tuple(known.alarm for known in memory.values() if not known.lasts and channel in known.heard),
    )


def heard(memory: Memory, channel: str) -> Memory:
    after = {}
    for key, known in memory.items():
        now = known.heard | {channel} if known.lasts else known.heard - {channel}
        if known.lasts or now:
            after[key] = replace(known, heard=now)
    return after


def read_memory(settings: Settings) -> Memory:
    """The memory; empty where the file is gone or spoilt, so that every channel is notified again."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        document = json.loads((settings.watch_folder / FILE).read_bytes())
        if document["format"] == FORMAT:
            found = [
                KnownAlarm(
                    Alarm.model_validate({name: entry[name] for name in Alarm.model_fields if name in entry}),
                    datetime.fromisoformat(entry["since"]),
                    entry["lasts"],
                    frozenset(entry["heard"]),
                )
                for entry in document["alarms"]
            ]
            return {known.alarm.key: known for known in found}
    return {}


def write_memory(settings: Settings, memory: Memory) -> None:
    """Keep it, in one step."""
    alarms = [
        known.alarm.model_dump(mode="json")
        | {"since": known.since.isoformat(), "lasts": known.lasts, "heard": sorted(known.heard)}
        for known in memory.values()
    ]
    document = {"format": FORMAT, "alarms": alarms}
    write_private(settings.watch_folder / FILE, json.dumps(document, indent=1).encode())


# The event log: an OTLP logs document (`otlpjsonfile`) for each alarm that begins or ends, and for each event
# of the ledger; without an amount of budget, or an alarm that depends on readings.

LOGGED = "logged"  # file of the watch's folder: how many of the ledger's events are behind the log
NUMBERS = {Severity.ALARM: (17, "ERROR"), Severity.WARNING: (13, "WARN")}  # OpenTelemetry's severities
OVER = (9, "INFO")


def line_of(what: str, alarm: Alarm, now: datetime) -> str:
    """Return the line of an alarm's transition, as seen at `now`: one JSON document, without its end."""
    severity = NUMBERS[alarm.severity] if what == "alarm" else OVER
    attributes = {"kind": alarm.kind.value, "day": alarm.day, "last": alarm.last, "node": alarm.node}
    return _line(alarm.stream, f"{what}.{alarm.kind.value}", alarm.words, severity, attributes, now, now)


def _ledger_line_of(stream: str, event: ReleaseEvent, now: datetime) -> str:
    release = {} if event.period is None else {"day": event.period, "revision": event.revision}
    words = ", ".join([f"{name} {value}" for name, value in release.items()] + [event.kind])
    attributes = {"kind": event.kind, **release, "number": event.number}
    return _line(stream, f"ledger.{event.kind.replace(' ', '-')}", words, OVER, attributes, event.at, now)


def _line(
    stream: str,
    event: str,
    words: str,
    severity: tuple[int, str],
    attributes: Mapping[str, object],
    at: datetime,
    now: datetime,
) -> str:
    record = {
        "timeUnixNano": _nanoseconds(at),
        "observedTimeUnixNano": _nanoseconds(now),
        "severityNumber": severity[0],
        "severityText": severity[1],
        "eventName": f"optstream.{event}",
        "body": {"stringValue": words},
        "attributes": _attributes({f"optstream.{key}": value for key, value in attributes.items()}),
    }
    resource = {"attributes": _attributes({"service.name": "optstream", "optstream.stream": stream})}
    logs = {"scope": {"name": "optstream.watch"}, "logRecords": [record]}
    document = {"resourceLogs": [{"resource": resource, "scopeLogs": [logs]}]}
    return json.dumps(document, separators=(",", ":"))


def _nanoseconds(at: datetime) -> str:
    return str(round(at.timestamp() * 1_000_000) * 1000)


def _attributes(values: Mapping[str, object]) -> list[dict[str, Any]]:
    known = {key: str(value) for key, value in values.items() if value is not None}
    return [{"key": key, "value": {"stringValue": value}} for key, value in known.items()]


def log_transitions(settings: Settings, before: Memory, after: Memory, now: datetime) -> str | None:
    """Add what happened since the last look to the event log, if any; return why that cannot be, or None."""
    file = settings.event_log_file
    if file is None:
        return None
    old, new = (
        {key: known.alarm for key, known in memory.items() if known.lasts} for memory in (before, after)
    )
    begun = join_alike(alarm for key, alarm in new.items() if key not in old)
    ended = join_alike(alarm for key, alarm in old.items() if key not in new)
    lines = [line_of("alarm", alarm, now) for alarm in begun]
    lines += [line_of("resolved", alarm, now) for alarm in ended]
    known = settings.watch_folder / LOGGED
    n_events: int | None = None
    try:
        # the watch itself says that the ledger is away
        with suppress(LedgerError), ledger_if_any(settings) as ledger:
            events, n_events = _events_since(ledger, settings.stream.name, known)
            lines = [*(_ledger_line_of(settings.stream.name, one, now) for one in events), *lines]
        append_lines(file, lines)
        if n_events is not None:  # after the lines: a crash between the two leaves them twice, never out
            write_private(known, str(n_events).encode())
    except OSError as error:
        return f"[watch] log cannot be written ({error.strerror}): fix that file, its folder or its disk"
    return None


def _events_since(ledger: Ledger | None, stream: str, known: Path) -> tuple[tuple[ReleaseEvent, ...], int]:
    """The events that are not logged yet, and how many there are in all; the first look begins behind all."""
    if ledger is None:
        return (), 0
    n_events, _ = ledger.heads(stream).get(stream, (0, ""))
    try:
        logged = int(known.read_bytes())  # may be more: a ledger from a backup has fewer events
    except (FileNotFoundError, ValueError):
        logged = n_events
    found = ledger.events_of(stream, first=logged)
    return found, found[-1].number + 1 if found else n_events

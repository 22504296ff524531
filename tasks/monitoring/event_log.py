"""The event log: a JSON line for each alarm that begins or ends, as OpenTelemetry's collectors read them.

Each line is an OTLP logs document (`otlpjsonfile` of the Collector). It has what a notification has: no
reading, no count of rows, and no alarm that depends on readings.
"""

import json
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tasks.monitoring.alarm import Alarm, Severity
from tasks.monitoring.told import Memory
from tasks.storage.private_files import make_private_folder, private_opener

NUMBERS = {Severity.ALARM: (17, "ERROR"), Severity.WARNING: (13, "WARN")}
"""OpenTelemetry's severities."""
OVER = (9, "INFO")


def transitions(before: Memory, after: Memory) -> Iterator[tuple[str, Alarm]]:
    """Yield each alarm that began ("alarm") or ended ("resolved") between two looks. Pure.

    Args:
        before: What the look before this one left.
        after: What this one leaves.

    Yields:
        What happened, and the alarm: as events are named.
    """
    lasting = [{key: told.alarm for key, told in memory.items() if told.lasts} for memory in (before, after)]
    for key, alarm in lasting[1].items():
        if key not in lasting[0]:
            yield "alarm", alarm
    for key, alarm in lasting[0].items():
        if key not in lasting[1]:
            yield "resolved", alarm


def line_of(what: str, alarm: Alarm, now: datetime) -> str:
    """Return the line of a transition, without its end.

    Args:
        what: "alarm" or "resolved".
        alarm: Which.
        now: The instant of the look that saw it.

    Returns:
        One JSON document.
    """
    number, text = NUMBERS[alarm.severity] if what == "alarm" else OVER
    nanoseconds = str(round(now.timestamp() * 1_000_000) * 1000)
    told = {"optstream.kind": alarm.kind.value, "optstream.day": alarm.day, "optstream.node": alarm.node}
    record = {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": number,
        "severityText": text,
        "eventName": f"optstream.{what}.{alarm.kind.value}",
        "body": {"stringValue": alarm.words},
        "attributes": _attributes({name: str(value) for name, value in told.items() if value is not None}),
    }
    resource = {"attributes": _attributes({"service.name": "optstream", "optstream.stream": alarm.stream})}
    document = {
        "resourceLogs": [
            {
                "resource": resource,
                "scopeLogs": [{"scope": {"name": "optstream.watch"}, "logRecords": [record]}],
            }
        ]
    }
    return json.dumps(document, separators=(",", ":"))


def _attributes(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def append_transitions(file: Path, found: Iterable[tuple[str, Alarm]], now: datetime) -> None:
    """Append a line for each transition, in one write; its owner alone may read the file. Raises OSError.

    What a crash left of a line stays a line by itself.
    """
    lines = "".join(f"{line_of(what, alarm, now)}\n" for what, alarm in found)
    if lines:
        make_private_folder(file.parent)
        with open(file, "a+b", opener=private_opener) as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 1))
            begun = log.read(1) not in (b"", b"\n")
            log.write(b"\n" * begun + lines.encode())
            log.flush()
            os.fsync(log.fileno())

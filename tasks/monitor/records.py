"""When the last look and the last watch of a stream ended, whatever they found."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from optstream.errors import OptStreamError
from tasks.config import Settings
from tasks.trusted.files import write_private

Work = Literal["look", "watch"]
"""A look of the night, and the watch."""
LONGEST_WATCH = timedelta(minutes=30)
"""A watch that takes longer is killed, so that the next one can look."""


def note_end(settings: Settings, work: Work, now: datetime) -> None:
    """Keep that it ended now. Raises OSError where it cannot be kept."""
    write_private(settings.watch_folder / f"{work}-ended", now.isoformat().encode())


def last_end(settings: Settings, work: Work) -> datetime | None:
    """Return when the last one ended; None where none has, or where that cannot be read."""
    try:
        at = datetime.fromisoformat((settings.watch_folder / f"{work}-ended").read_text().strip())
    except (OSError, ValueError, OptStreamError):
        return None
    return at if at.tzinfo is not None else None


# What the last audit of the configured mechanism found, kept in the trusted zone.

FORMAT = "optstream.audit-record/1"


@dataclass(frozen=True)
class AuditRecord:
    """How the last audit of the stream ended.

    same: whether the configuration shaped releases then as it does now, and the stream's share of the budget
    was that of now, where files of other streams can move it.
    """

    at: datetime
    passed: bool
    same: bool


def keep_audit(settings: Settings, document: Mapping[str, Any], now: datetime) -> Path:
    """Write an audit's document (`optstream.audit/1`) beside the earlier ones, with what it audited."""
    record = {
        "format": FORMAT,
        "stream": settings.stream.name,
        "at": now.isoformat(),
        "configuration_hash": settings.configuration_hash,
        "audit": document,
    }
    path = settings.audits_folder / f"{now:%Y%m%dT%H%M%S%f}.json"
    write_private(path, json.dumps(record, indent=1).encode())
    return path


def last_audit(settings: Settings) -> AuditRecord | None:
    """The newest record that can be read; None without any."""
    try:
        paths = sorted(settings.audits_folder.glob("*.json"), reverse=True)
    except OSError:
        return None
    for path in paths:
        with suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(path.read_bytes())
            if record["format"] == FORMAT:
                same = record["configuration_hash"] == settings.configuration_hash
                return AuditRecord(
                    datetime.fromisoformat(record["at"]), bool(record["audit"]["passed"]), same
                )
    return None

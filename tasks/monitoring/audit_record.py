"""What the last audit of the configured mechanism found, kept in the trusted zone."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tasks.config import Settings
from tasks.storage.private_files import write_private

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
        **_audited(settings),
        "audit": document,
    }
    path = settings.audits_folder / f"{now:%Y%m%dT%H%M%S%f}.json"
    write_private(path, json.dumps(record, indent=1).encode())
    return path


def _audited(settings: Settings) -> dict[str, str]:
    """The configuration, and the share that it alone does not tell."""
    chosen = settings.budget.stream_share == "model"
    return {
        "configuration_hash": settings.configuration_hash,
        **({"stream_share": str(settings.stream_share)} if chosen else {}),
    }


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
                same = record.items() >= _audited(settings).items()
                return AuditRecord(
                    datetime.fromisoformat(record["at"]), bool(record["audit"]["passed"]), same
                )
    return None

"""Processes that have dumps read, with none of the tests' libraries: those take seconds to import."""

import os
import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from threading import Event
from typing import Any

from tasks.config import load_settings
from tasks.ingest import discover
from tasks.ingest import sandbox as process
from tasks.ingest.sandbox import reading_apart


def read(file: str, day: str, writer: str) -> None:
    """As a run that has read one day and goes on."""
    settings = load_settings(Path(file))
    began: list[Any] = []
    real = subprocess.Popen

    def popen(command: Sequence[str], *, pass_fds: Sequence[int], **more: Any) -> Any:
        began.append(real(command, pass_fds=[*pass_fds, int(writer)], **more))
        return began[0]

    process.subprocess.Popen = popen  # type: ignore[attr-defined]
    with reading_apart() as reading:
        reading(settings, list(discover(settings, [date.fromisoformat(day)]).values()))
        os.write(int(writer), f"{began[0].pid}\n".encode())
        Event().wait()

"""Processes that have dumps read, with none of the tests' libraries: those take seconds to import."""

import os
import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from threading import Event
from typing import Any

from optstream.errors import DumpError
from tasks.config import load_settings
from tasks.ingest import discover
from tasks.ingest import sandbox as process
from tasks.ingest.sandbox import IDLE, fork_reader, reading_apart


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


def fork(file: str, sound: str, broken: str) -> None:
    """Read one day, say who reads and which files that one has, and read the day that ends it."""
    fork_reader()
    (reader,) = IDLE
    settings = load_settings(Path(file))
    sound_day, broken_day = map(date.fromisoformat, (sound, broken))
    with reading_apart() as reading:
        (day,) = reading(settings, list(discover(settings, [sound_day]).values()))
        pid = reader._process.pid
        open_files = sorted(str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in (0, 1, 2))
        print(pid, day.day, day.metrics.height, *open_files, flush=True)
        if input() == "more":
            try:
                reading(settings, list(discover(settings, [broken_day]).values()))
            except DumpError as error:
                print(error)
    assert not any(one is reader for one in IDLE)

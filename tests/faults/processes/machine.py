"""A machine's clock and disk, changed while processes run: a small library put before the system's."""

import mmap
import os
import shutil
import struct
import subprocess
import time
from functools import cached_property
from pathlib import Path

SOURCE = Path(__file__).with_name("machine.c")

A_DAY = 86_400


def why_not() -> str | None:
    """Why there is no such machine here; None if there is."""
    return None if shutil.which("cc") else "no C compiler: install gcc"


class Machine:
    """ahead_seconds: of the true time. folder: everybody who is on this machine may enter it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        library = ["cc", "-O1", "-shared", "-fPIC", "-o", folder / "machine.so"]
        subprocess.run([*library, SOURCE], check=True, timeout=60)
        control = folder / "control"
        control.write_bytes(bytes(24))
        (folder / "machine.so").chmod(0o755)
        control.chmod(0o666)  # PostgreSQL runs as somebody else
        with control.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), 24)
        self.ahead_seconds = 0

    @cached_property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._folder / "machine.so"),
            "OPTSTREAM_MACHINE": str(self._folder / "control"),
        }

    def set_clock(self, ahead_seconds: int) -> None:
        """Jump, for all processes at once."""
        self.ahead_seconds = ahead_seconds
        self._control[:8] = struct.pack("q", ahead_seconds)

    def slow_disk(self, milliseconds: int) -> None:
        """Every write and sync waits for so long before it begins; 0: not any more."""
        self._control[8:16] = struct.pack("q", milliseconds * 1000)

    def let_time_pass(self) -> None:
        """Until those that sleep for long are awake; not those who would sleep for a day or longer."""
        (until,) = struct.unpack("q", self._control[16:])
        self._control[16:] = bytes(8)
        if self.ahead_seconds < until - int(time.time()) + 1 < self.ahead_seconds + A_DAY:
            self.set_clock(until - int(time.time()) + 1)


def without_preload() -> dict[str, str]:
    """This process's environment, for what runs elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}

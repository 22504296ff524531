"""Real command lines, each a process of its own in a session of its own, and what they leave behind."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.temporary_postgresql import die_with_parent

OPTSTREAM = Path(sys.executable).parent / "optstream"
MARK = "OPTSTREAM_FAULTS_WORLD"
"""A variable of the environment that everything started in a world has inherited."""
SECONDS_TO_END = 30
"""For processes whose parent was killed."""


@dataclass
class Command:
    arguments: tuple[str, ...]
    log: Path
    process: "subprocess.Popen[bytes]"
    struck: bool = False

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def strike(self, number: signal.Signals, *, group: bool = False) -> None:
        """A signal to it, or to all of its session's processes that stayed in its group."""
        self.struck = True
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def wait(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return not self.runs

    @property
    def how(self) -> str:
        return f"optstream {' '.join(self.arguments)}: exit code {self.process.poll()}"


def start(folder: Path, log: Path, environment: Mapping[str, str], *arguments: str) -> Command:
    """`optstream ARGUMENTS` in a folder with a configuration. environment: whole."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(OPTSTREAM), *arguments],
            cwd=folder,
            env={**environment, MARK: str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_as_from_a_terminal,
        )
    return Command(arguments, log, process)


def _as_from_a_terminal() -> None:
    """Ctrl-C is heard, also where a shell started the campaign in the background, with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()


def processes_of(folder: Path) -> dict[int, str]:
    """All that live and were started in a world: id and words of the command line."""
    wanted = f"{MARK}={folder}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if words:  # else it is dead, and nobody has asked how it ended
                    found[int(entry.name)] = words
    return found


def kill_one(folder: Path, command: Command, chance: random.Random) -> str | None:
    """SIGKILL for one of the processes that it, or another command, has started; what it was."""
    others = {pid: words for pid, words in processes_of(folder).items() if str(OPTSTREAM) not in words}
    if not others:
        return None
    pid = chance.choice(sorted(others))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        command.struck = True
        return others[pid]
    return None


def leftovers(folder: Path, seconds: float = SECONDS_TO_END) -> list[str]:
    """What still runs so long after all commands have ended; it is killed."""
    deadline = time.monotonic() + seconds
    while (found := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"LEFT BEHIND: a process {words:.160}" for words in found.values()]

"""Start a scheduled run in a process that is forked from a warm one (`flows.orchestration.warm_runs`).

The worker runs this file as a program, in the place of `python -m prefect.engine`: it hands over its
environment, its folder and its standard streams, passes polite stops on, and ends as the run ends. Where no
warm process answers in time, it becomes a fresh one. Imports the standard library alone, which takes no time.
"""

import array
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path

FRESH = ("-m", "prefect.engine")
PATIENCE = 60.0
"""Seconds in which a warm process says who the run is; what it forks later finds nobody here, and ends."""
CRASHED = 128 + signal.SIGKILL
"""Exit code where nobody is left who knows how the run ended."""


def address_of(path: Path) -> str:
    """Return a name of a socket that is short enough for Linux, 107 bytes, however long its folder's is."""
    return f"/proc/self/fd/{os.open(path.parent, os.O_PATH | os.O_CLOEXEC)}/{path.name}"


def ask(path: Path) -> "socket.socket | None":
    """Ask the warm process behind a socket for a run; None where there is none."""
    document = json.dumps({"env": dict(os.environ), "folder": str(Path.cwd())}).encode()
    streams = array.array("i", [0, 1, 2])
    end = socket.socket(socket.AF_UNIX)
    end.settimeout(PATIENCE)
    try:
        end.connect(address_of(path))
        end.sendmsg([f"{len(document):8}".encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        end.sendall(document)
    except OSError:
        end.close()
        return None
    return end


def main(path: Path) -> int:
    """Start a run and wait for its end; return its exit code."""
    end = ask(path)
    said = end.makefile() if end is not None else StringIO()
    pid = ""
    with suppress(OSError):
        pid = said.readline()
    if end is None or not pid:  # nothing was begun, or nothing that goes on
        os.execv(sys.executable, [sys.executable, *FRESH])
    end.settimeout(None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: _pass_on(int(pid), number))
    return int(said.readline() or CRASHED)


def _pass_on(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it is over, and how it ended is on its way
        os.kill(pid, number)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

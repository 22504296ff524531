"""A process that has imported what runs need, from which each scheduled run is forked: it begins at once.

Beside a stream by the hour, whose run would spend most of its time on imports. The warm process does nothing
but import and fork: it opens no ledger, no dump and no connection, so a run finds what a fresh process finds
after its imports. Between it and each run stands a process that knows how the run ended, and ends it at once
if the worker's side is gone (`flows.orchestration.warm_start`); if that process dies, so does the run.
"""

import array
import ctypes
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from data_contracts import judge
from data_contracts.data_docs import page_of
from flows.orchestration.warm_start import address_of
from tasks.ingest.sandbox import fork_reader

IMPORTED = (
    "prefect.engine",
    "prefect.flow_engine",
    "prefect._internal.metrics",
    "flows.orchestration.nightly",
    "prefect.task_engine",
    "tasks.trusted.judging",
    "tasks.ingest.validate",
    "tasks.release.judge_rows",
    "optstream.measurement.grouping",
    "optstream.measurement.sums",
)
SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def serve(path: Path) -> None:
    """Import, then fork a run for whoever asks at a socket, which only its owner can reach; never returns."""
    for name in IMPORTED:
        import_module(name)
    page_of(judge.warm_up(), ())  # which compiles its templates
    address = Path(address_of(path))
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        address.chmod(0o600)
        listening.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever stands between is nobody's to wait for
        while True:
            end, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                return _stand_between(end)
            end.close()


def _stand_between(end: socket.socket) -> None:
    """Fork the run that is asked for, say who it is and how it ended. Returns in the run alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        document, streams = _asked(end)
    except (OSError, ValueError):
        os._exit(1)
    own = os.getpid()
    pid = os.fork()
    if pid == 0:
        end.close()
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != own:
            os._exit(1)
        return _become(document, streams)
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(end, select.POLLRDHUP)
    with suppress(OSError):
        end.sendall(f"{pid}\n".encode())
    if ended not in dict(poll.poll()):
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        end.sendall(f"{code if code >= 0 else 128 - code}\n".encode())
    os._exit(0)


def _asked(end: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return environment and folder of a run, and its standard streams."""
    length, ancillary, _, _ = end.recvmsg(8, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    streams.frombytes(ancillary[0][2] if ancillary else b"")
    with end.makefile("rb") as given:
        return json.loads(given.read(int(length))), list(streams)


def _become(document: dict[str, Any], streams: list[int]) -> None:
    """Be the run: what `python -m prefect.engine` is when its imports are done."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(document["env"])
    os.chdir(document["folder"])
    fork_reader()  # before Prefect begins threads, and asks its server what is to be run
    sys.argv = ["prefect.engine"]
    from prefect.context import refresh_global_settings_context

    refresh_global_settings_context()
    runpy.run_module("prefect.engine", run_name="__main__")


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

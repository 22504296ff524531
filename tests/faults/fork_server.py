"""Processes that fork from one that has imported everything; Polars' threads would not survive the fork."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

from tests.faults.night import LastWords, Night, spend
from tests.temporary_postgresql import die_with_parent

CHECKOUT = Path(__file__).parents[2]
LONGEST_SECONDS = 1800
ENDS = {0: "ended", -signal.SIGKILL: "killed", -signal.SIGTERM: "terminated"}


def warm_up() -> None:
    """Start the process from which others fork, if it does not run."""
    # small days: more threads would only wait for each other
    threads = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    forkserver.set_forkserver_preload([f"{__package__}.warm"])
    with patch.dict(os.environ, threads | {"PYTHONPATH": str(CHECKOUT)}):
        forkserver.ensure_running()


class Started:
    """A process on its way, for these nights, one after the other."""

    def __init__(self, *nights: Night) -> None:
        context = get_context("forkserver")
        self._words: list[LastWords] = []
        self._listener, end = context.Pipe(duplex=False)
        self._process = context.Process(target=_spend, args=(nights, end), daemon=True)
        self._process.start()
        end.close()

    def wait(self) -> str:
        """Until it "stopped" at its point or its end: "killed", "terminated" or "ended"."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while self._process.is_alive():
            if _is_stopped(self._process.pid):
                return "stopped"
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"still running after {LONGEST_SECONDS} s")
            self._listen(0.005)
        self._listen(0)
        return ENDS[self._process.exitcode or 0]

    def _listen(self, seconds: float) -> None:
        if self._listener.poll(seconds):
            try:
                self._words = self._listener.recv()
            except EOFError:  # it is ending
                self._process.join(seconds)

    def kill(self) -> None:
        self._process.kill()

    def go_on(self) -> None:
        os.kill(self._process.pid or 0, signal.SIGCONT)

    def terminate(self) -> None:
        self._process.terminate()

    def all_last_words(self) -> list[LastWords]:
        """Of each of its nights; none if it was killed before it could say any."""
        return self._words

    def last_words(self) -> LastWords | None:
        return (self._words or [None])[-1]


def _is_stopped(pid: int | None) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def _spend(nights: Sequence[Night], end: Connection) -> None:
    die_with_parent()
    end.send(spend(nights))

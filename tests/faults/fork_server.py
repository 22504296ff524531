"""Processes that fork from one that has imported everything; Polars' threads would not survive the fork."""

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from tests.faults.night import LastWords, Night, spend
from tests.warm_libraries import warm_libraries

CHECKOUT = Path(__file__).parents[2]
LONGEST_SECONDS = 1800
SET_PARENT_DEATH_SIGNAL = 1
ENDS = {int(signal.SIGKILL): "killed", int(signal.SIGTERM): "terminated"}


class Started:
    """A process on its way."""

    def __init__(self, fork_server: "ForkServer", pid: int, last_words: Path) -> None:
        self._fork_server, self.pid, self._last_words = fork_server, pid, last_words

    def wait(self) -> str:
        """Until it "stopped" at its point or its end: "killed", "terminated" or "ended"."""
        status = str(self._fork_server.ask(wait=self.pid)["status"])
        assert status in ("stopped", "killed", "terminated", "ended"), status
        return status

    def kill(self) -> None:
        """SIGKILL; nothing happens if it is gone."""
        self._fork_server.ask(signal=int(signal.SIGKILL), pid=self.pid)

    def go_on(self) -> None:
        """After it stopped."""
        self._fork_server.ask(signal=int(signal.SIGCONT), pid=self.pid)

    def terminate(self) -> None:
        """SIGTERM, the polite stop."""
        self._fork_server.ask(signal=int(signal.SIGTERM), pid=self.pid)

    def all_last_words(self) -> list[LastWords]:
        """Of each of its nights; none if it was killed before it could say any."""
        if not self._last_words.exists():
            return []
        return [LastWords(**said) for said in json.loads(self._last_words.read_text())]

    def last_words(self) -> LastWords | None:
        """Of its last night."""
        return (self.all_last_words() or [None])[-1]


class ForkServer:
    """Starts processes. folder: for what they say at their end."""

    def __init__(self, folder: Path, process: "subprocess.Popen[str]") -> None:
        self._folder, self._process, self._numbers = folder, process, count()

    def start(self, *nights: Night) -> Started:
        """A process for these nights, one after the other."""
        last_words = self._folder / f"{next(self._numbers)}.json"
        answer = self.ask(start=[asdict(night) for night in nights], last_words=str(last_words))
        return Started(self, int(answer["pid"]), last_words)

    def run(self, night: Night) -> tuple[str, LastWords | None]:
        """Start it and wait: how it ended, and what it said."""
        started = self.start(night)
        return started.wait(), started.last_words()

    def ask(self, **question: Any) -> dict[str, Any]:
        """One question, one answer."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(question), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def open_fork_server(folder: Path) -> Iterator[ForkServer]:
    """A fork server; it and all that it started are gone afterwards."""
    # small days: more threads would only wait for each other
    threads = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = os.environ | threads | {"PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.fork_server"],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )
    try:
        yield ForkServer(folder, process)
    finally:
        process.kill()
        process.communicate()


def die_with_parent() -> None:
    """In a child: end when the parent does, however it ends."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _import_everything() -> None:
    """Import, compute and compile what each first night would, but for polars' threads."""
    from optstream.stream import days_from
    from tasks.plan import long_spans
    from tests.faults.world import DAYS, make_world

    warm_libraries()
    # no fault is of what is planned for a month and a year
    long_spans.HORIZONS = (2, 5)
    long_spans.days_from = lambda first, _: days_from(first, first + timedelta(days=9))
    with tempfile.TemporaryDirectory() as folder:
        for mechanism in ("OptStream", "HistoryInformed", "PeGaSus"):
            world = make_world(Path(folder, mechanism), Path(folder), mechanism=mechanism)
            long_spans.long_spans_of(world.settings, DAYS[0], 0)


def _serve(answers: Any) -> None:
    for line in sys.stdin:
        question = json.loads(line)
        if "start" in question:
            answer: dict[str, Any] = {"pid": _fork(question)}
        elif "signal" in question:
            os.kill(question["pid"], question["signal"])
            answer = {}
        else:
            answer = {"status": _wait(question["wait"])}
        print(json.dumps(answer), file=answers, flush=True)


def _fork(question: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        die_with_parent()
        spend([Night(**night) for night in question["start"]], Path(question["last_words"]))
        code = 0
    except BaseException as error:  # noqa: BLE001 - whatever it is, the child must not go on as the parent
        print(f"a night ended with {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(code)


def _wait(pid: int) -> str:
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(status):
            return "stopped"
        if found and os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return ENDS.get(number, f"signal {number}")
        if found:
            return "ended" if os.WEXITSTATUS(status) == 0 else "failed"
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"still running after {LONGEST_SECONDS} s"
        time.sleep(0.002)


if __name__ == "__main__":
    spoken = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    _import_everything()
    gc.freeze()  # else each fork copies what its collections look through
    _serve(spoken)

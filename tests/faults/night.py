"""One night's run: the flow's steps in a fork of a process that has imported all, without Polars' threads."""

import os
import signal
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from flows.orchestration import release
from optstream.errors import OptStreamError, PublicationError
from optstream.ledger import open_ledger
from optstream.noise import secure_noise
from optstream.storage import folders
from tasks.operate.withdraw import withdraw
from tasks.pages.public import write_pages
from tasks.release import pipeline
from tasks.release.run import Ahead, Drawn, Ended, Requested, Reserved, Run, each, enrol
from tests.faults.hook import CHECKOUT, Hook, Point, happening
from tests.faults.world import DAYS, World
from tests.servers import die_with_parent

LONGEST_SECONDS, SECONDS_FOR_A_LOCK = 1800, 5.0
ENDS = {0: "ended", -signal.SIGKILL: "killed", -signal.SIGTERM: "terminated"}
FORKS = Lock()
"""Threads that start and poll processes take turns."""


@dataclass(frozen=True)
class Night:
    """A command for some days, and what meets it.

    days: numbers of `DAYS`. verb: "run", "restate" or "withdraw"; of real command lines, one of `VERBS`.
    hours: since the night before. act: "record" all points, or a key of `hook.SIGNALS` or `hook.REFUSALS`, at
    `point`; if it stands still there, `meanwhile` happens, a key of `life.MEANWHILE`. raises: its noise fails
    after the first samples. patience_seconds: for a ledger that is locked or away.
    """

    days: tuple[int, ...] = (0,)
    verb: str = "run"
    hours: float = 0.0
    act: str | None = None
    point: Point = 1
    meanwhile: str = ""
    raises: bool = False
    patience_seconds: float = 30.0

    @property
    def dates(self) -> list[str]:
        return [DAYS[number].isoformat() for number in self.days]


@dataclass
class LastWords:
    """What a process that came to its end says. error: what came out of the flow as a whole, if anything."""

    outcomes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    points: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether the exit code would be 0."""
        return self.error is None and set(self.outcomes.values()) <= {"published", "published already"}


class Forked:
    """A process on its way, for one night."""

    def __init__(self, world: World, night: Night) -> None:
        context = get_context("forkserver")
        self._words: LastWords | None = None
        with FORKS:
            self._listener, end = context.Pipe(duplex=False)
            self._process = context.Process(target=_spend, args=(world, night, end), daemon=True)
            self._process.start()
            end.close()

    def wait(self) -> str:
        """Until it "stopped" at its point or its end: "killed", "terminated" or "ended"."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while self._lives():
            if is_stopped(self._process.pid):
                return "stopped"
            if time.monotonic() > deadline:
                self._process.kill()
                raise AssertionError(f"still running after {LONGEST_SECONDS} s")
            self._listen(0.005)
        self._listen(0)
        return ENDS[self._process.exitcode or 0]

    def _lives(self) -> bool:
        with FORKS:
            return self._process.is_alive()

    def _listen(self, seconds: float) -> None:
        if self._listener.poll(seconds):
            try:
                self._words = self._listener.recv()
            except EOFError:  # it is ending
                time.sleep(seconds)

    def strike(self, number: signal.Signals) -> None:
        with FORKS, suppress(ProcessLookupError):
            if self._process.is_alive():
                os.kill(self._process.pid or 0, number)

    def last_words(self) -> LastWords | None:
        """None if it was killed before it could say any."""
        return self._words


def warm_up() -> None:
    """Start the process from which others fork, if it does not run."""
    # small days: more threads would only wait for each other
    threads = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    forkserver.set_forkserver_preload([f"{__package__}.warm"])
    with patch.dict(os.environ, threads | {"PYTHONPATH": str(CHECKOUT)}):
        forkserver.ensure_running()


def is_stopped(pid: int | None) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


# In the forked process.


class LoggedNoise:
    """Secure noise that says before its first sample, durably and outside of the world, that it begins."""

    simulated = False

    def __init__(self, world: World, raises: bool) -> None:
        self._world, self._raises, self._line, self._calls = world, raises, "", 0

    def begin(self, day: Reserved | Ahead) -> None:
        """The next samples are this release's."""
        self._line, self._calls = f"{day.day.isoformat()} {day.revision}\n", 0

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> Any:
        self._sample()
        return secure_noise().discrete_laplace(scale, size)

    def uniform_below(self, bounds: Any) -> Any:
        self._sample()
        return secure_noise().uniform_below(bounds)

    def _sample(self) -> None:
        self._calls += 1
        # the first of each draw is thrown away before the draw begins
        if self._calls == 2:
            log = os.open(self._world.noise_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(log, self._line.encode())
            os.close(log)
        if self._raises and self._calls > 2:
            raise MemoryError("on purpose")


def _spend(world: World, night: Night, end: Connection) -> None:
    die_with_parent()
    # of no interest here: to repeat at once what failed, long waits for a lock, a process that reads dumps
    release.STEP_PAUSES, folders.LONGEST_WAIT = (), SECONDS_FOR_A_LOCK
    release.read_apart = None
    said = LastWords()
    try:
        with _hooked(night, world, said):
            _walk(night, world, said)
    except (OptStreamError, OSError) as error:
        # as the command line does: one line, exit code 2
        said.error = f"{type(error).__name__}: {error}"
    end.send(said)


def _hooked(night: Night, world: World, said: LastWords) -> AbstractContextManager[None]:
    if night.act is None:
        return nullcontext()
    act = said.points.append if night.act == "record" else happening(night.act, night.point)
    return Hook(world.folder, act).installed()


def _walk(night: Night, world: World, said: LastWords) -> None:
    """What `release_days` does, with our noise and clock."""
    settings = world.settings
    ledger = open_ledger(settings.ledger_url, busy_timeout_seconds=night.patience_seconds)
    noise, patience = LoggedNoise(world, night.raises), timedelta(seconds=night.patience_seconds)

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(hours=night.hours + world.clock_jump)

    def draw(run: Run, days: list[Reserved | Ahead]) -> list[Drawn | Ended]:
        done: list[Drawn | Ended] = []
        for day in days:
            noise.begin(day)
            done += pipeline.draw_measurements(run, [day])
        return done

    restate = night.verb == "restate"
    run = Run(settings, ledger, noise, uuid4().hex, clock, patience=patience, restate=restate)
    days = [Requested(datetime.fromisoformat(day).date()) for day in night.dates]
    if night.verb == "withdraw":
        ended = each(days, Requested, partial(withdraw, run, reason="on purpose"))
    else:
        release.draw = SimpleNamespace(name="draw", fn=draw)
        enrol(run)
        ended = release.released(run, days)
        ended += release.revised(run, [day.day for day in ended])
    for day in ended:
        said.outcomes[day.day.isoformat()] = day.status.value
        said.messages[day.day.isoformat()] = day.message
    with suppress(PublicationError):  # a night reports it, and goes on
        write_pages(settings, ledger, clock())
    ledger.close()

"""One night's run without the orchestrator: the flow's own steps in a plain loop, in a process of its own."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from optstream.errors import OptStreamError, PublicationError
from optstream.ledger import open_ledger
from optstream.noise import secure, secure_noise
from tasks.operate.withdraw import withdraw
from tasks.pages.public import write_pages
from tasks.release import pipeline as steps
from tasks.release import revise
from tasks.release.revise import due
from tasks.release.run import Ahead, Drawn, Ended, Requested, Reserved, Run, each, enrol, let_go
from tests.faults.hook import Hook
from tests.faults.points import acts
from tests.faults.world import World


@dataclass(frozen=True)
class Night:
    """What a process is to do.

    days: ISO dates. hours: how far its clock is ahead. act: "record", or a key of `acts.SIGNALS` or
    `acts.REFUSALS`, at `point`. raises: its noise fails after the first samples. patience_seconds: for the
    ledger's lock, and for a database that is away. restate: release the days once more. withdraw: take them
    back instead.
    """

    folder: str
    days: list[str]
    owner: str
    hours: float = 0.0
    act: str | None = None
    point: str = ""
    raises: bool = False
    patience_seconds: float = 30.0
    restate: bool = False
    withdraw: bool = False


@dataclass
class LastWords:
    """What a process that came to its end says. error: what came out of the flow as a whole, if anything."""

    outcomes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    points: list[str] = field(default_factory=list)
    moments: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether the exit code would be 0."""
        return self.error is None and set(self.outcomes.values()) <= {"published", "published already"}


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


def spend(nights: Sequence[Night]) -> list[LastWords]:
    """Run the nights one after the other in this process, which was forked from one that has never drawn."""
    # No sample was drawn before the fork, so there is no buffer that two processes would share.
    secure._OPENED_IN = os.getpid()
    return [_spend(night) for night in nights]


def _spend(night: Night) -> LastWords:
    said = LastWords()
    world = World(Path(night.folder))
    try:
        with _hooked(night, world, said):
            _walk(night, world, said)
    except (OptStreamError, OSError) as error:
        # as the command line does: one line, exit code 2
        said.error = f"{type(error).__name__}: {error}"
    return said


def _hooked(night: Night, world: World, said: LastWords) -> AbstractContextManager[None]:
    if night.act is None:
        return nullcontext()
    if night.act == "record":
        act = acts.recorder(said.points, said.moments, world.folder)
    else:
        act = acts.happening(night.act, night.point)
    return Hook(world.folder, act).installed()


def _walk(night: Night, world: World, said: LastWords) -> None:
    """What `flows.orchestration.release.release_days` does, but for Prefect."""
    settings = world.settings
    ledger = open_ledger(settings.ledger_url, busy_timeout_seconds=night.patience_seconds)
    noise = LoggedNoise(world, night.raises)

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(hours=night.hours)

    patience = timedelta(seconds=night.patience_seconds)
    run = Run(settings, ledger, noise, night.owner, clock, patience=patience, restate=night.restate)
    for day in _ordered(night, run):
        said.outcomes[day.day.isoformat()] = day.status.value
        said.messages[day.day.isoformat()] = day.message
    with suppress(PublicationError):  # a night reports it, and goes on
        write_pages(settings, ledger, clock())
    ledger.close()


def _ordered(night: Night, run: Run) -> list[Ended]:
    days = [Requested(date.fromisoformat(day)) for day in night.days]
    if night.withdraw:
        return each(days, Requested, partial(withdraw, run, reason="on purpose"))
    return _released(run, days)


def _released(run: Run, days: list[Requested]) -> list[Ended]:
    enrol(run)
    found = steps.discover_dumps(run, steps.look_up_days(run, days))
    judged = steps.validate_days(run, steps.ingest_dumps(run, found))
    done: list[Ended] = []
    for group in steps.groups(run, judged):
        drawn = _drawn(run, steps.reserve_budget(run, group))
        estimated = steps.estimate_releases(run, drawn)
        done += steps.publish_releases(run, steps.stage_releases(run, estimated))
    revise.record_listed(run)
    revised = steps.publish_revisions(run, steps.revise_estimates(run, due(run)))
    let_go(run, [*done, *revised])
    return done + [day for day in revised if not day.status.is_good]


def _drawn(run: Run, days: list[Reserved | Ahead]) -> list[Drawn | Ended]:
    noise = run.noise
    if not isinstance(noise, LoggedNoise):
        return steps.draw_measurements(run, days)
    done: list[Drawn | Ended] = []
    for day in days:
        noise.begin(day)
        done += steps.draw_measurements(run, [day])
    return done

"""A world's life: turns of commands and faults, then a plain backfill, then the judgement."""

import json
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread

from tests.faults.books import read_books
from tests.faults.judge import Judge
from tests.faults.night import LastWords
from tests.faults.points.attacks import Tally
from tests.faults.processes.commands import Command, leftovers, start
from tests.faults.processes.faults import (
    DECADE,
    LONGEST_COMMAND,
    TAKEOVER_SECONDS,
    draw_fault,
    files_drawn,
    inflict,
)
from tests.faults.processes.outside import judge_outside, sightings
from tests.faults.processes.worlds import DAYS, Spec, Stage, open_stage, start_reader

LATER = 3600
"""Seconds, more than any lease, from the last fault to the plain backfill."""
TOUCHED = len(DAYS) - 1
"""The last day is left to the backfill at the end."""
SECONDS_OF_A_LOOK = 3.0
FREE_IT = "optstream ledger release-lease"
"""The remedy, by the error's own words, for a day of a run that has gone and whose lease lasts for years."""
PATIENCE = 10.0


@dataclass
class Life:
    """What has happened in a world. next_day: how many days were asked for. given_up: days withdrawn.

    commands, helpers: now under way, and threads to be waited for. again: starts the first command once more.
    drawn_before: files of measurements before they began.
    """

    stage: Stage
    kinds: Sequence[str]
    story: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    tried: dict[str, int] = field(default_factory=dict)
    next_day: int = 0
    given_up: set[str] = field(default_factory=set)
    number: int = 0
    furthest: int = 0
    struck: bool = False
    commands: list[Command] = field(default_factory=list)
    helpers: list[Thread] = field(default_factory=list)
    drawn_before: int = 0

    def __post_init__(self) -> None:
        self.chance = self.stage.spec.chance()
        self.judge = Judge(self.stage.world)

    def command(self, *arguments: str) -> Command:
        self.number += 1
        stage = self.stage
        log = stage.logs / f"{self.number:03}.log"
        return start(stage.world.folder, log, stage.environment, *arguments)

    def begin(self) -> None:
        """Where the folder is to be signed, the key is made."""
        if self.stage.spec.signed and self._finish("keys", "new").process.returncode != 0:
            raise RuntimeError(f"no key was made: {self.story}")

    def turn(self) -> None:
        """Commands, and one to three faults while they run."""
        stage, chance = self.stage, self.chance
        if self.struck and chance.random() < 0.7:
            # most runs come long after the one that died
            stage.machine.set_clock(stage.machine.ahead_seconds + TAKEOVER_SECONDS)
        asked = self._commands()
        faults = [
            draw_fault(chance, stage.spec.database, self.kinds) for _ in range(chance.choice([1, 2, 2, 3]))
        ]
        self.drawn_before, self.helpers = files_drawn(stage), []
        self.commands, self.again = [self.command(*one) for one in asked], partial(self.command, *asked[0])
        begun = time.monotonic()
        self.story.append(" + ".join(" ".join(one) for one in asked))
        for fault in faults:
            if inflict(self, fault):
                self.tried[fault.kind] = self.tried.get(fault.kind, 0) + 1
        self._wait(self.commands)
        stage.machine.slow_disk(0)
        for helper in self.helpers:
            helper.join()
        self.struck = any(command.struck for command in self.commands)
        self.furthest = max(self.furthest, stage.machine.ahead_seconds)
        self.story += [f"  {command.how}" for command in self.commands]
        ended = time.monotonic() - begun
        self.broken += leftovers(stage.world.folder)
        self.broken += [line for command in self.commands for line in _undignified(command)]
        self.broken += self.judge.look()
        self.story.append(f"  {ended:.1f} s, judged after {time.monotonic() - begun - ended:.1f} s more")

    def _wait(self, commands: Sequence[Command]) -> None:
        """Until all have ended. Those that wait for a lease need not wait as long as it lasts."""
        deadline = time.monotonic() + LONGEST_COMMAND
        while any(command.runs for command in commands) and time.monotonic() < deadline:
            if next(command for command in commands if command.runs).wait(PATIENCE):
                continue
            self.stage.machine.let_time_pass()
        for command in commands:
            if command.runs:
                self.broken.append(f"HANGS: {command.how}: {command.said()[-300:]!r}")
                command.strike(signal.SIGKILL, group=True)
                command.wait(PATIENCE)

    def _commands(self) -> list[tuple[str, ...]]:
        """The next request: mostly a new day, sometimes several commands at once."""
        chance = self.chance
        day = DAYS[self.next_day % TOUCHED].isoformat()
        other = DAYS[(self.next_day + 1) % TOUCHED].isoformat()
        old = DAYS[chance.randrange(max(1, self.next_day % TOUCHED))].isoformat()
        kinds = {"run": 8, "twice": 2, "both": 3, "backfill": 4, "backfill and run": 2}
        if self.next_day:
            kinds |= {"withdraw": 1, "restate": 1, "publish": 1}
        (kind,) = chance.choices([*kinds], [*kinds.values()])
        first = DAYS[max(0, self.next_day % TOUCHED - 2)]
        last = DAYS[min(TOUCHED - 1, self.next_day % TOUCHED + 1)]
        if kind.startswith("backfill") or kind == "both":
            self.next_day += 2
        else:
            self.next_day += 1
        run = ("run", "--date", day)
        match kind:
            case "twice":
                return [run, run]
            case "both":
                return [run, ("run", "--date", other)]
            case "backfill":
                return [self._backfill(first, last)]
            case "backfill and run":
                return [self._backfill(first, last), ("run", "--date", day)]
            case "withdraw":
                self.given_up.add(old)
                return [("withdraw", "--date", old, "--reason", "a fault is tried"), run]
            case "restate":
                return [("run", "--restate", "--date", old), run]
            case "publish":
                return [("publish", "--from", str(first), "--to", str(last)), run]
            case _:
                return [run]

    def _backfill(self, first: object, last: object) -> tuple[str, ...]:
        return ("backfill", "--from", str(first), "--to", str(last), "--workers", "2")

    def end(self, notes: Path) -> None:
        """The faults are over: a plain backfill brings every day out."""
        stage = self.stage
        stage.machine.set_clock(self.furthest + LATER)
        for day in sorted(self.given_up):
            # one that was struck is asked for again, as its operator would
            self._finish("withdraw", "--date", day, "--reason", "a fault is tried")
        backfill = self._finish("backfill", "--json", "--from", str(DAYS[0]), "--to", str(DAYS[-1]))
        last = _last_words(backfill)
        if not last.is_good:
            # a backfill does not say all of a day that is VOID
            last = self._run_all_days()
            decade = any(f"{DECADE:+} s" in line for line in self.story)
            held = [day for day, message in last.messages.items() if decade and FREE_IT in (message or "")]
            for day in held:
                # what docs/recover.md has an operator do about a clock that ran ahead
                self._finish("ledger", "release-lease", day, "--why", "the clock ran ahead")
            last = self._run_all_days() if held else last
        self._publish()
        self._finish("purge")
        verify = self._finish("ledger", "verify")
        if verify.process.returncode != 0:
            self.broken.append(f"LEDGER: verify: {verify.said()[-600:]!r}")
        time.sleep(SECONDS_OF_A_LOOK)
        self.broken += leftovers(stage.world.folder)
        self.broken += self.judge.at_the_end(list(DAYS), last, self.given_up)
        self.broken += judge_outside(stage.world, notes, stage.temporary, self.given_up)

    def _run_all_days(self) -> LastWords:
        days = (word for day in DAYS for word in ("--date", str(day)))
        return _last_words(self._finish("run", "--json", *days))

    def _publish(self) -> None:
        """All days again: what readers have is whole, so nothing is written, drawn or charged."""
        before = read_books(self.stage.world).events
        said = _last_words(self._finish("publish", "--json", "--from", str(DAYS[0]), "--to", str(DAYS[-1])))
        if said.error or not set(said.outcomes.values()) <= {"published already"}:
            self.broken.append(f"PUBLISH: {said.error or said.messages}")
        if read_books(self.stage.world).events != before:
            self.broken.append("PUBLISH: the ledger was changed")

    def _finish(self, *arguments: str) -> Command:
        command = self.command(*arguments)
        self._wait([command])
        self.story.append(command.how)
        self.broken += _undignified(command)
        return command


def _last_words(command: Command) -> LastWords:
    """What the command's document says of each day; how long it takes is said before."""
    try:
        document = json.loads("{" + f"\n{command.said()}".partition("\n{")[2])
    except ValueError:
        return LastWords(error=f"{command.how}: {command.said()[-400:]}")
    days = document["days"]
    return LastWords(
        {day["date"]: day["status"] for day in days},
        {day["date"]: day["message"] for day in days},
        None if command.process.returncode in (0, 1) else command.how,
    )


def _undignified(command: Command) -> list[str]:
    """Words that no person should be shown; a command that was struck may say what it likes."""
    said = command.said()
    if "Traceback (most recent call last)" in said and not command.struck:
        return [f"TRACEBACK: {command.how}: {said[-500:]!r}"]
    return []


def live(spec: Spec, faults: int, kinds: Sequence[str], api: str, keep: Path | None) -> Tally:
    """Run one world through at least `faults` faults and judge it. keep: folder for a broken world."""
    tally = Tally()
    with open_stage(spec, api) as stage:
        notes = stage.logs / "sightings"
        life = Life(stage, kinds)
        life.begin()
        reader = start_reader(stage, notes)
        try:
            for _ in range(3 * faults):
                if sum(life.tried.values()) >= faults:
                    break
                life.turn()
            life.end(notes)
        finally:
            reader.communicate(timeout=LONGEST_COMMAND)
            leftovers(stage.world.folder, 0)
        seen = [number for kind, number in (one for one in sightings(notes) if one[0] == "looks")]
        if not sum(seen):
            life.broken.append("HARNESS: nobody read")
        tally.tried, tally.kinds, tally.broken = sum(life.tried.values()), life.tried, life.broken
        tally.voids = life.judge.voids()
        (stage.logs / "story").write_text("\n".join([spec.name, *life.story, "", *life.broken]) + "\n")
        if keep is not None and life.broken:
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(stage.logs, keep / "logs")
            shutil.copytree(
                stage.world.folder, keep / "world", symlinks=True, ignore=shutil.ignore_patterns("*.sock")
            )
    return tally

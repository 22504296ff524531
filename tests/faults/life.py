"""What may happen to a ledger, its folders and processes: judged nights with a fault each, and an end."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from signal import SIGCONT, SIGTERM, Signals
from typing import Any

from sqlalchemy.exc import OperationalError, ProgrammingError

from tests.faults.hook import REFUSALS, is_refusable
from tests.faults.judge import Judge
from tests.faults.night import Forked, LastWords, Night, warm_up
from tests.faults.world import DAYS, World, deliver, locked, make_world, read_only, why_no_mounts
from tests.servers import Cluster

AFTER_THE_LEASE, NEXT_NIGHT = 1.0, 26.0
"""Hours. A lease that was taken by a clock a day ahead has ended by the next night."""
MECHANISMS = ("OptStream", "HistoryInformed", "PeGaSus")
VERBS = ("run", "restate", "withdraw")
MOST_POINTS = 400
"""More than a first day has."""


@dataclass
class Bench:
    """Where worlds are made, and nights begin. cluster: has a database for each world; None: SQLite."""

    folder: Path
    cluster: Cluster | None = None
    numbers: Iterator[int] = field(default_factory=count)

    def world(self, mechanism: str = "OptStream") -> World:
        url = self.cluster.new_url() if self.cluster else None
        return make_world(self.folder / f"world-{next(self.numbers)}", self.folder / "dumps", url, mechanism)

    @property
    def meanwhile(self) -> Mapping[str, "Meanwhile"]:
        """What may happen here while a process stands still."""
        known = MEANWHILE | (OF_SERVERS if self.cluster else {})
        return known if why_no_mounts() else known | OF_ROOT

    def start(self, world: World, night: Night) -> Any:
        return Forked(world, night)

    def look(self, world: World) -> list[str]:
        """Judge, after a night, all but the world."""
        return []

    def finish(self, life: "Life", runs: int) -> LastWords | None:
        """Run until all days are complete, at most `runs` times, and return the last run's words."""
        said = None
        for _ in range(runs):
            if not (said and said.is_good):
                life.happen(Night(life.days, hours=NEXT_NIGHT))
                said = life.said
        for day in sorted(life.given_up):
            # one that was struck is asked for again, as its operator would
            life.happen(Night((day,), "withdraw"))
        return said


def make_dumps(folder: Path) -> None:
    """Those that all worlds of a bench in this folder share."""
    deliver(make_world(folder / "template", folder / "dumps").settings, DAYS)


def make_bench(folder: Path, cluster: Cluster | None = None) -> Bench:
    warm_up()
    make_dumps(folder)
    return Bench(folder, cluster)


class Life:
    """What has happened to a world. ends: how each night ended. said: by the last one. broken: guarantees."""

    def __init__(self, bench: Bench, mechanism: str = "OptStream", world: World | None = None) -> None:
        self.bench, self.world = bench, world or bench.world(mechanism)
        self.judge = Judge(self.world)
        self.hours = 0.0
        self.asked, self.given_up = set[int](), set[int]()
        self.ends, self.broken = list[str](), list[str]()
        self.said: LastWords | None = None

    @property
    def days(self) -> tuple[int, ...]:
        return tuple(sorted(self.asked))

    def happen(self, night: Night) -> str:
        """Let a night come to its end, and judge."""
        process = self.begin(night)
        how: str = process.wait()
        if how == "stopped":
            self.bench.meanwhile[night.meanwhile](self, night, process)
            how = process.wait()
        self.said = process.last_words()
        self.ends.append(how)
        self.broken += [*self.judge.look(), *self.bench.look(self.world)]
        return how

    def begin(self, night: Night) -> Any:
        self.note(night)
        return self.bench.start(self.world, replace(night, hours=self.hours))

    def note(self, night: Night) -> None:
        """What follows from it for the judge and the nights after it."""
        self.hours += night.hours
        self.asked |= {*night.days}
        if night.verb == "withdraw":
            self.given_up |= {*night.days}
        if night.verb == "restate":
            self.given_up -= {*night.days}
        is_refused = night.act in REFUSALS or (night.act == "stop" and night.meanwhile in OF_ROOT)
        if night.raises or is_refused or night.verb == "withdraw":
            self.judge.may_be_void |= {*night.dates}

    def end(self, runs: int = 1) -> "Life":
        """Judge after plain runs; a first publication that was cut short takes more than one."""
        said = self.bench.finish(self, runs)
        gone = {DAYS[day].isoformat() for day in self.given_up}
        self.broken += self.judge.at_the_end([DAYS[day] for day in self.days], said, gone)
        return self


def live(bench: Bench, nights: Iterable[Night], mechanism: str = "OptStream") -> Life:
    life = Life(bench, mechanism)
    for night in nights:
        life.happen(night)
    return life.end()


# What happens while a process stands still at its point.

Meanwhile = Callable[[Life, Night, Any], None]


def _in(fault: Callable[[World], Any]) -> Meanwhile:
    """It goes on, and to its end, while the fault lasts."""

    def happen(life: Life, _night: Night, process: Any) -> None:
        # the process itself may have the lock, and before its first commit there is no table to lock
        with suppress(OperationalError, ProgrammingError), fault(life.world):
            process.strike(SIGCONT)
            process.wait()
        process.strike(SIGCONT)

    return happen


def struck(number: Signals, **more: Any) -> Meanwhile:
    def happen(_life: Life, _night: Night, process: Any) -> None:
        process.strike(number, **more)
        process.strike(SIGCONT)

    return happen


def _jumped(hours: float) -> Meanwhile:
    def happen(life: Life, _night: Night, process: Any) -> None:
        """Until the judge looks."""
        life.world.set_clock(hours)
        process.strike(SIGCONT)
        process.wait()
        life.world.set_clock(0.0)

    return happen


def _plain(night: Night, **more: Any) -> Night:
    """Another run of its days."""
    return Night(night.days, patience_seconds=night.patience_seconds, **more)


def _with_others(life: Life, night: Night, process: Any) -> None:
    """Eight runs at once."""
    others = [life.begin(_plain(night)) for _ in range(7)]
    process.strike(SIGCONT)
    for other in others:
        other.wait()


def _met(life: Life, night: Night, process: Any, hours: float = 0.0) -> None:
    """Another run comes and ends, before the first goes on: it takes over once the lease has ended."""
    life.begin(_plain(night, hours=hours)).wait()
    process.strike(SIGCONT)


def _joined(life: Life, night: Night, process: Any) -> None:
    """Another owner takes over and stands still there too, until the first has ended."""
    other = life.begin(_plain(night, hours=AFTER_THE_LEASE, act="stop", point=night.point))
    how = other.wait()
    process.strike(SIGCONT)
    process.wait()
    if how == "stopped":
        other.strike(SIGCONT)
    other.wait()


def _away(life: Life, _night: Night, process: Any, until_the_end: bool = False) -> None:
    cluster = life.bench.cluster
    assert cluster
    cluster.stop()
    if not until_the_end:
        cluster.start()
    process.strike(SIGCONT)
    process.wait()
    if until_the_end:
        cluster.start()


MEANWHILE: dict[str, Meanwhile] = {
    "locked": _in(locked),
    "terminated": struck(SIGTERM),
    "with another": _met,
    "with seven": _with_others,
    "overtaken": partial(_met, hours=AFTER_THE_LEASE),
    "joined": _joined,
    "clock ahead": _jumped(24.0),
    "clock back": _jumped(-24.0),
}
OF_ROOT = {
    "trusted read-only": _in(lambda world: read_only(world.folder / "trusted")),
    "published read-only": _in(lambda world: read_only(world.folder / "published")),
}
OF_SERVERS: dict[str, Meanwhile] = {"restarted": _away, "away": partial(_away, until_the_end=True)}


def night_by(chance: random.Random, bench: Bench, verbs: Sequence[str] = VERBS) -> Night:
    """A night that may happen on this bench; its verb is mostly the first."""
    acts = [None, *["kill"] * 3, *REFUSALS, *["stop"] * 5]
    first = chance.randrange(len(DAYS) - 2)
    return Night(
        days=tuple(range(first, first + chance.randint(1, 2))),
        verb=chance.choice([*[verbs[0]] * 5, *verbs]),
        hours=chance.choice([0.0, AFTER_THE_LEASE, AFTER_THE_LEASE]),
        act=chance.choice(acts),
        point=chance.randint(1, MOST_POINTS),
        meanwhile=chance.choice([*bench.meanwhile]),
        patience_seconds=0.2,
    )


# A fault at each of many points of one night.


@dataclass(frozen=True)
class History:
    """Nights in their order; a fault meets the last."""

    name: str
    nights: tuple[Night, ...]
    mechanism: str = "OptStream"

    def points(self, bench: Bench) -> list[str]:
        *before, last = self.nights
        life = Life(bench, self.mechanism)
        for night in [*before, replace(last, act="record")]:
            life.happen(night)
        assert life.said
        life.world.remove()
        return life.said.points


def killed_in(point: str) -> History:
    """A run died there an hour before the next."""
    return History(f"killed {point}", (Night(act="kill", point=point), Night(hours=1.0)))


SINGLY = [Night((number,)) for number in range(3)]
RAISES = Night(raises=True)
FIRST = History("a first day", (Night(),))
SHARPENED = History("days that sharpen those before", tuple(SINGLY), "HistoryInformed")
RAW = History("days with raw state", tuple(SINGLY), "PeGaSus")
REDRAWN = killed_in("before commit in Ledger.record_drawn, 1")
DRAWN = killed_in("after commit in Ledger.record_drawn, 1")
UNSYNCED = killed_in("after mkdir in make_private_folder < DrawingFile.preallocate, 3")
"""A folder is there that nobody synced."""
AT_POINTS = (
    FIRST,
    RAW,
    SHARPENED,
    History("a day after a gap, with joint noise", (SINGLY[0], SINGLY[2]), "HistoryInformed"),
    History("two days in a chunk", (Night((0, 1)),)),
    REDRAWN,
    DRAWN,
    History("a draw that raises", (RAISES,)),
)
ON_DISKS = (
    FIRST,
    History(
        "three days, one taken back and released again",
        (SINGLY[0], Night((1, 2)), Night((1,), "withdraw"), Night((1,), "restate")),
    ),
    SHARPENED,
    RAW,
    History("a day after a draw that raises", (RAISES, SINGLY[1])),
    UNSYNCED,
    REDRAWN,
    DRAWN,
    killed_in("after link in write_new < LocalTransaction.create_new, 1"),
)


@dataclass
class Tally:
    """What a kind of fault came to."""

    tried: int = 0
    voids: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def has_lost(self) -> bool:
        return any(word in line for line in self.broken for word in ("DOUBLE SPEND", "WINDOW", "LOST"))


def strike_at_each(bench: Bench, points: Sequence[str], acts: Sequence[str], history: History) -> Tally:
    """Let each point, in a world of its own, meet one of the acts by turns; two worlds at a time."""

    def strike(asked: tuple[int, str]) -> Life:
        number, point = asked
        *before, last = history.nights
        act = acts[number % len(acts)]
        life = live(bench, [*before, replace(last, act=act, point=point)], history.mechanism)
        if life.ends[len(before)] != ("killed" if act == "kill" else "ended"):
            life.broken.append(f"MISSED: the run {life.ends[len(before)]}")
        life.broken = [f"{line} [{history.name}, {act} {point}]" for line in life.broken]
        return life

    tally = Tally()
    asked = [point for point in points if acts == ["kill"] or is_refusable(point)]
    with ThreadPoolExecutor(2) as pool:
        for life in pool.map(strike, enumerate(asked)):
            tally.tried += 1
            tally.voids += life.judge.voids()
            tally.broken += life.broken
            life.world.remove()
    return tally

"""Where faults are tried: a fork server, dumps that all worlds share, and a database to each world."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from pathlib import Path

from tests.faults.fork_server import ForkServer, open_fork_server
from tests.faults.judge import Judge
from tests.faults.night import LastWords, Night
from tests.faults.world import DAYS, World, deliver, iso, make_world

AFTER_THE_LEASE = 1.0
"""Hours."""
A_PROCESS = 10
"""Nights that one process runs."""


@dataclass
class Bench:
    """Makes worlds and runs nights in them."""

    folder: Path
    fork_server: ForkServer
    new_url: Callable[[], str] | None = None
    numbers: Iterator[int] = field(default_factory=count)

    def world(self, mechanism: str = "OptStream") -> World:
        """A fresh one."""
        url = self.new_url() if self.new_url else None
        return make_world(self.folder / f"world-{next(self.numbers)}", self.folder / "dumps", url, mechanism)

    def night(self, world: World, days: Sequence[date] = DAYS[:1], **more: object) -> Night:
        """A run of its own owner, of the first day by default."""
        fields = {"owner": f"owner {next(self.numbers)}", **more}
        return Night(str(world.folder), iso(days), **fields)  # type: ignore[arg-type]

    def run(
        self, world: World, days: Sequence[date] = DAYS[:1], **more: object
    ) -> tuple[str, LastWords | None]:
        """Run a night to its end: how it ended and what it said."""
        return self.fork_server.run(self.night(world, days, **more))

    def record(self, world: World, days: Sequence[date] = DAYS[:1], **more: object) -> LastWords:
        """A night that names its points; the world is spent by it."""
        how, said = self.run(world, days, act="record", **more)
        assert how == "ended", how
        assert said is not None
        return said

    def run_all(self, nights: Sequence[Night]) -> list[LastWords | None]:
        """Run many nights, in two processes at a time: what each said, None if it died."""
        said: list[LastWords | None] = []
        for place in range(0, len(nights), 2 * A_PROCESS):
            batches = [nights[start : start + A_PROCESS] for start in (place, place + A_PROCESS)]
            started = [(batch, self.fork_server.start(*batch)) for batch in batches if batch]
            for batch, process in started:
                how = process.wait()
                said += process.all_last_words() if how == "ended" else [None] * len(batch)
        return said

    def rerun(self, judges: Sequence[Judge], days: Sequence[date] = DAYS[:1], **more: object) -> list[str]:
        """Broken guarantees, now and after the one run that is to complete the days of each world."""
        broken = [line for judge in judges for line in judge.look()]
        later = {"hours": AFTER_THE_LEASE, **more}
        said = self.run_all([self.night(judge.world, days, **later) for judge in judges])
        for judge, words in zip(judges, said, strict=True):
            broken += judge.at_the_end(list(days), words)
        return broken


def make_bench(folder: Path, fork_server: ForkServer, new_url: Callable[[], str] | None = None) -> Bench:
    """Return a bench in an empty folder."""
    world = make_world(folder / "template", folder / "dumps")
    settings = world.settings
    deliver(settings, DAYS)
    return Bench(folder, fork_server, new_url)


@contextmanager
def open_bench(folder: Path, new_url: Callable[[], str] | None = None) -> Iterator[Bench]:
    """A bench in an empty folder, with a fork server of its own."""
    words = folder / "last words"
    words.mkdir()
    with open_fork_server(words) as fork_server:
        yield make_bench(folder, fork_server, new_url)

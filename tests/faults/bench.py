"""Where faults are tried: dumps that all worlds share, and a database to each world."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from pathlib import Path

from tests.faults.fork_server import Started, warm_up
from tests.faults.judge import Judge
from tests.faults.night import LastWords, Night
from tests.faults.world import DAYS, World, deliver, iso, make_world

AFTER_THE_LEASE = 1.0
"""Hours."""
A_PROCESS = 10
"""Nights that one process runs."""


@dataclass
class Bench:
    folder: Path
    new_url: Callable[[], str] | None = None
    numbers: Iterator[int] = field(default_factory=count)

    def world(self, mechanism: str = "OptStream") -> World:
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
        started = Started(self.night(world, days, **more))
        return started.wait(), started.last_words()

    def run_all(self, nights: Sequence[Night]) -> list[LastWords | None]:
        """Run many nights, in two processes at a time: what each said, None if it died."""
        said: list[LastWords | None] = []
        for place in range(0, len(nights), 2 * A_PROCESS):
            batches = [nights[start : start + A_PROCESS] for start in (place, place + A_PROCESS)]
            started = [(batch, Started(*batch)) for batch in batches if batch]
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


def make_bench(folder: Path, new_url: Callable[[], str] | None = None) -> Bench:
    warm_up()
    world = make_world(folder / "template", folder / "dumps")
    deliver(world.settings, DAYS)
    return Bench(folder, new_url)

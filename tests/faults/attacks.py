"""A fault at each of many points: the same for the tests and for the campaign."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from tests.faults.bench import Bench
from tests.faults.judge import Judge
from tests.faults.world import DAYS, World

AT_ONCE = 4

Prepare = Callable[[Bench, World], object]


@dataclass
class Tally:
    """What a kind of fault came to."""

    tried: int = 0
    releases_checked: int = 0
    voids: int = 0
    broken: list[str] = field(default_factory=list)

    def add(self, judges: Iterable[Judge], broken: Iterable[str], tried: int) -> None:
        """Count what was tried on these worlds, and let go of them."""
        self.tried += tried
        self.broken += broken
        for judge in judges:
            self.releases_checked += judge.releases_checked
            self.voids += judge.voids()
            judge.world.remove()

    @property
    def double_spends(self) -> int:
        return sum("DOUBLE SPEND" in line or "WINDOW" in line for line in self.broken)

    @property
    def lost(self) -> int:
        return sum("LOST" in line for line in self.broken)


def nothing(_bench: Bench, _world: World) -> None:
    """A world in which nothing happened before."""


def kill_at_each(
    bench: Bench,
    points: Sequence[str],
    prepare: Prepare = nothing,
    days: Sequence[date] = DAYS[:1],
    mechanism: str = "OptStream",
    **more: object,
) -> Tally:
    """Die at each point in a world of its own, then run again."""
    tally = Tally()
    for place in range(0, len(points), AT_ONCE):
        started = []
        for point in points[place : place + AT_ONCE]:
            judge = Judge(bench.world(mechanism))
            prepare(bench, judge.world)
            night = bench.night(judge.world, days, act="kill", point=point, **more)
            started.append((judge, point, bench.nursery.start(night)))
        for _, point, process in started:
            how = process.wait()
            if how != "killed":
                tally.broken.append(f"MISSED: {point}: the run {how}, {process.last_words()}")
        judges = [judge for judge, _, _ in started]
        tally.add(judges, bench.rerun(judges, days), len(started))
    return tally


def refusable(points: Sequence[str]) -> list[str]:
    """The points at which a system may refuse; after a commit it is the answer that gets lost."""
    return [point for point in points if not point.startswith("after") or "commit" in point]


def refuse_at_each(
    bench: Bench,
    points: Sequence[str],
    refusals: Sequence[str],
    prepare: Prepare = nothing,
    days: Sequence[date] = DAYS[:1],
    **more: object,
) -> Tally:
    """Let the system refuse at each point in a world of its own, in these ways by turns; then run again."""
    tally = Tally()
    judges = [Judge(bench.world()) for _ in points]
    for judge in judges:
        prepare(bench, judge.world)
    said = bench.run_all(
        [
            bench.night(judge.world, days, act=refusals[number % len(refusals)], point=point, **more)
            for number, (judge, point) in enumerate(zip(judges, points, strict=True))
        ]
    )
    tally.broken += [
        f"LOST: {point}: the refused run died" for point, words in zip(points, said, strict=True) if not words
    ]
    tally.add(judges, bench.rerun(judges, days), len(points))
    return tally

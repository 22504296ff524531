"""A fault at each of many points: the same for the tests and for the campaign."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.faults.bench import AFTER_THE_LEASE, Bench
from tests.faults.fork_server import Started
from tests.faults.histories import History
from tests.faults.judge import Judge
from tests.faults.night import LastWords, Night

AT_ONCE = 4


@dataclass
class Tally:
    """What a kind of fault came to. kinds: of what was tried, where there are several."""

    tried: int = 0
    voids: int = 0
    broken: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, judges: Iterable[Judge], broken: Iterable[str], tried: int) -> None:
        self.tried += tried
        self.broken += broken
        for judge in judges:
            self.voids += judge.voids()
            judge.world.remove()

    @property
    def has_lost(self) -> bool:
        return any(word in line for line in self.broken for word in ("DOUBLE SPEND", "WINDOW", "LOST"))


def record(bench: Bench, history: History) -> LastWords:
    (night,), (judge,) = _nights(bench, history, [""], ["record"])
    started = Started(night)
    assert started.wait() == "ended"
    said = started.last_words()
    assert said is not None
    judge.world.remove()
    return said


def kill_at_each(bench: Bench, points: Sequence[str], history: History) -> Tally:
    tally = Tally()
    for place in range(0, len(points), AT_ONCE):
        some = points[place : place + AT_ONCE]
        nights, judges = _nights(bench, history, some, ["kill"])
        started = [Started(night) for night in nights]
        for point, process in zip(some, started, strict=True):
            how = process.wait()
            if how != "killed":
                tally.broken.append(f"MISSED: {point}: the run {how}, {process.last_words()}")
        tally.add(judges, _rerun(bench, judges, history), len(some))
    return tally


def refusable(points: Sequence[str]) -> list[str]:
    """The points at which a system may refuse; after a commit it is the answer that gets lost."""
    return [point for point in points if not point.startswith("after") or "commit" in point]


def refuse_at_each(bench: Bench, points: Sequence[str], refusals: Sequence[str], history: History) -> Tally:
    """Let the system refuse at each point in a world of its own, in these ways by turns; then run again."""
    tally = Tally()
    nights, judges = _nights(bench, history, points, refusals)
    refused = zip(points, bench.run_all(nights), strict=True)
    tally.broken += [f"LOST: {point}: the refused run died" for point, words in refused if not words]
    tally.add(judges, _rerun(bench, judges, history), len(points))
    return tally


def _nights(
    bench: Bench, history: History, points: Sequence[str], acts: Sequence[str]
) -> tuple[list[Night], list[Judge]]:
    """The last night of a history at each point, each in a world in which the others have happened."""
    nights, judges = [], []
    *before, last = history.steps
    for number, point in enumerate(points):
        world = bench.world(history.mechanism)
        judges.append(Judge(world))
        for step in before:
            bench.run(world, **step)
        nights.append(bench.night(world, **last, act=acts[number % len(acts)], point=point))
    return nights, judges


def _rerun(bench: Bench, judges: Sequence[Judge], history: History) -> list[str]:
    hours = history.steps[-1].get("hours", 0.0) + AFTER_THE_LEASE
    return bench.rerun(judges, history.steps[-1]["days"], hours=hours)

"""A fault at each of many points: the same for the tests and for the campaign."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.faults.bench import Bench
from tests.faults.judge import Judge
from tests.faults.night import Night
from tests.faults.points.scenarios import Scenario

AT_ONCE = 4


@dataclass
class Tally:
    """What a kind of fault came to. kinds: of what was tried, where there are several."""

    tried: int = 0
    releases_checked: int = 0
    voids: int = 0
    broken: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, judges: Iterable[Judge], broken: Iterable[str], tried: int) -> None:
        """Count what was tried on these worlds, and forget them."""
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


def kill_at_each(bench: Bench, points: Sequence[str], scenario: Scenario) -> Tally:
    """Die at each point in a world of its own, then run again."""
    tally = Tally()
    for place in range(0, len(points), AT_ONCE):
        some = points[place : place + AT_ONCE]
        judges = _prepared(bench, scenario, len(some))
        nights = _nights(bench, scenario, judges, some, ["kill"])
        started = [bench.fork_server.start(night) for night in nights]
        for point, process in zip(some, started, strict=True):
            how = process.wait()
            if how != "killed":
                tally.broken.append(f"MISSED: {point}: the run {how}, {process.last_words()}")
        tally.add(judges, bench.rerun(judges, scenario.days, hours=scenario.hours + 1), len(some))
    return tally


def refusable(points: Sequence[str]) -> list[str]:
    """The points at which a system may refuse; after a commit it is the answer that gets lost."""
    return [point for point in points if not point.startswith("after") or "commit" in point]


def refuse_at_each(bench: Bench, points: Sequence[str], refusals: Sequence[str], scenario: Scenario) -> Tally:
    """Let the system refuse at each point in a world of its own, in these ways by turns; then run again."""
    tally = Tally()
    judges = _prepared(bench, scenario, len(points))
    said = bench.run_all(_nights(bench, scenario, judges, points, refusals))
    refused = zip(points, said, strict=True)
    tally.broken += [f"LOST: {point}: the refused run died" for point, words in refused if not words]
    tally.add(judges, bench.rerun(judges, scenario.days, hours=scenario.hours + 1), len(points))
    return tally


def _prepared(bench: Bench, scenario: Scenario, number: int) -> list[Judge]:
    judges = [Judge(bench.world(scenario.mechanism)) for _ in range(number)]
    for judge in judges:
        scenario.prepare(bench, judge.world)
    return judges


def _nights(
    bench: Bench, scenario: Scenario, judges: Sequence[Judge], points: Sequence[str], acts: Sequence[str]
) -> list[Night]:
    return [
        bench.night(
            judge.world,
            scenario.days,
            hours=scenario.hours,
            act=acts[number % len(acts)],
            point=point,
            **scenario.more,
        )
        for number, (judge, point) in enumerate(zip(judges, points, strict=True))
    ]

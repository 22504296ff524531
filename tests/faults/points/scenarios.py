"""The nights whose points are tried: each passes writes that the others do not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from tests.faults.bench import Bench
from tests.faults.night import LastWords
from tests.faults.world import DAYS, World

DRAWN = "after commit in Ledger.record_drawn, 1"
DRAWING = "before commit in Ledger.record_drawn, 1"


@dataclass(frozen=True)
class Scenario:
    """What has happened before, and the night that meets the fault. more: fields of `Night`."""

    name: str
    prepare: Callable[[Bench, World], object]
    days: Sequence[date] = DAYS[:1]
    mechanism: str = "OptStream"
    hours: float = 0.0
    more: Mapping[str, bool] = field(default_factory=dict)


def nothing(_bench: Bench, _world: World) -> None:
    """A world in which nothing happened before."""


def a_day_before(bench: Bench, world: World) -> None:
    """The first day is published."""
    bench.run(world)


def a_death(point: str) -> Callable[[Bench, World], None]:
    """A run died there an hour ago."""

    def prepare(bench: Bench, world: World) -> None:
        bench.run(world, act="kill", point=point)

    return prepare


FIRST = Scenario("a first day", nothing)
SHARPENED = Scenario("a day that sharpens the one before", a_day_before, DAYS[1:2], "HistoryInformed")
ALL = (
    FIRST,
    Scenario("a second day with raw state", a_day_before, DAYS[1:2], "PeGaSus"),
    SHARPENED,
    Scenario("a day after a gap, with joint noise", a_day_before, DAYS[2:3], "HistoryInformed"),
    Scenario("two days in a chunk", nothing, DAYS[:2]),
    Scenario("a redraw after a death", a_death(DRAWING), hours=1),
    Scenario("a day that was drawn", a_death(DRAWN), hours=1),
    Scenario("a draw that raises", nothing, more={"raises": True}),
)


def record(bench: Bench, scenario: Scenario) -> LastWords:
    """The points that its night passes."""
    world = bench.world(scenario.mechanism)
    scenario.prepare(bench, world)
    said = bench.record(world, scenario.days, hours=scenario.hours, **scenario.more)
    world.remove()
    return said

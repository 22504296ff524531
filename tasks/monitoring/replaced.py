"""Which regions had readings replaced, the most first: for the trusted zone, since it depends on readings."""

from dataclasses import dataclass
from datetime import date

from tasks.monitoring.facts import Facts
from tasks.monitoring.suspect_readings import Suspect

MOST_SHOWN = 12
"""Regions in a table that people read; `optstream status --json` has all."""


@dataclass(frozen=True)
class Replaced:
    """A region's shares of the newest day that is known, and the largest of all of them in the last days."""

    region: str
    newest: Suspect
    most: float
    most_day: date


def newest_day(facts: Facts) -> date | None:
    """The newest day of which shares are known."""
    return max(facts.suspect, default=None)


def replaced(facts: Facts) -> tuple[Replaced, ...]:
    """Every region with a reading that was clamped, absent, doubled or unusable in the last days."""
    newest = newest_day(facts)
    if newest is None:
        return ()
    worst: dict[str, tuple[float, date]] = {}
    for day, regions in sorted(facts.suspect.items()):
        for region, one in regions.items():
            worst[region] = max(worst.get(region, (0.0, day)), (_largest(one), day))
    none = Suspect(0.0, 0.0, 0.0)
    found = [
        Replaced(region, facts.suspect[newest].get(region, none), share, day)
        for region, (share, day) in worst.items()
        if share > 0
    ]
    return tuple(sorted(found, key=lambda one: (-_largest(one.newest), -one.most, one.region)))


def _largest(one: Suspect) -> float:
    return max(share for _, share in one.shares)

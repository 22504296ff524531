"""How many of a region's readings were strange, by day: what a wrong unit or sign shows first.

It depends on readings, so it is for the trusted zone alone, and so is what a person decides by it: that a day
was withdrawn for it tells of readings too.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tasks.config import Settings

CLAMPED, ABSENT, DOUBLED = ("out_of_bounds", "infinite"), ("absent",), ("duplicates", "two_leaves")
"""Rules of the raw contract that count rows."""


@dataclass(frozen=True)
class Suspect:
    """Shares in [0, 1] of one region's rows of a day.

    clamped: beyond the public bounds, or infinite. absent: null or NaN. doubled: repeated rows of one step,
    and of metered input rows of one customer that lie in several leaves at one step.
    """

    clamped: float
    absent: float
    doubled: float


def suspect_readings(settings: Settings, day: date) -> dict[str, Suspect]:
    """Of each region with rows, in the tree's order, by the newest validation result of that day.

    Empty where there is none, or none that can be read. A region in another unit shows where it leaves the
    bounds: a thousandfold one and a negative one do, a thousandth does not.
    """
    folder = settings.validation_folder / settings.stream.name
    results = sorted(folder.glob(f"{day.isoformat()}-*.json"), reverse=True)
    for path in results[:1]:
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            return _shares(path)
    return {}


def _shares(path: Path) -> dict[str, Suspect]:
    metrics: list[Mapping[str, Any]] = json.loads(path.read_bytes())["metrics"]
    return {
        str(region["region"]): Suspect(*(_share(region, names) for names in (CLAMPED, ABSENT, DOUBLED)))
        for region in metrics
        if region.get("rows", 0) > 0
    }


def _share(region: Mapping[str, Any], names: tuple[str, ...]) -> float:
    return min(sum(int(region.get(name, 0)) for name in names) / int(region["rows"]), 1.0)

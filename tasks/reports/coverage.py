"""How often noise-only bands held the truth where it is known: measured once, shipped with the package.

`make coverage` measures it again; docs/report.md says how.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class CoverageRow:
    """held: the share of steps inside the band, over all nodes; by_level: by level, root first."""

    epsilon: str
    held: float
    by_level: tuple[float, ...]


@dataclass(frozen=True)
class Coverage:
    """nominal: what bands would hold if noise were the only error. command: what measured it."""

    nominal: float
    measured_on: str
    mechanism: str
    command: str
    rows: tuple[CoverageRow, ...]


@cache
def measured_coverage() -> Coverage:
    """The shipped measurement."""
    file = files("tasks.reports") / "measured" / "coverage.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    rows = tuple(
        CoverageRow(row["epsilon"], row["held"], tuple(row["held_by_level"])) for row in document["rows"]
    )
    return Coverage(
        document["nominal"], document["measured_on"], document["mechanism"], document["command"], rows
    )

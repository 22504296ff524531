"""How often bands held the truth where it is known: measured once, shipped with the package.

`make coverage` measures it again; docs/report.md says how.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter


@dataclass(frozen=True)
class CoverageRow:
    """How often bands held at one epsilon.

    held: the share of steps inside the band of the whole error, over all nodes, then by level, root first.
    held_by_noise_alone: inside a band of the noise alone, likewise.
    """

    epsilon: str
    held: tuple[float, ...]
    held_by_noise_alone: tuple[float, ...]


@dataclass(frozen=True)
class Coverage:
    """How often bands held the truth.

    nominal: what bands are to hold. command: what measured it.
    """

    nominal: float
    measured_on: str
    mechanism: str
    command: str
    rows: tuple[CoverageRow, ...]


@cache
def measured_coverage() -> Coverage:
    """The shipped measurement."""
    file = files("tasks.reports") / "measured" / "coverage.json"
    return TypeAdapter(Coverage).validate_json(file.read_bytes())

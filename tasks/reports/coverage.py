"""How often noise-only bands held the truth where it is known: measured once, shipped with the package.

`make coverage` measures it again; docs/report.md says how.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field, TypeAdapter


@dataclass(frozen=True)
class CoverageRow:
    """How often bands held at one epsilon.

    held: the share of steps inside the band, over all nodes; by_level: by level, root first.
    """

    epsilon: str
    held: float
    by_level: Annotated[tuple[float, ...], Field(alias="held_by_level")]


@dataclass(frozen=True)
class Coverage:
    """How often bands held the truth.

    nominal: what bands would hold if noise were the only error. command: what measured it.
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

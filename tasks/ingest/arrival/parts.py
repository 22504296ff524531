"""Where a period's dump lies: in a folder for each leaf, or in one whose files have a column of regions."""

from datetime import date

from optstream.stream import partition_of
from tasks.config import Settings

PREFIX = "region="
EVERY = ""
"""In the place of a leaf: the one folder that holds the rows of every leaf."""


def parts_of(settings: Settings, day: date) -> tuple[str, ...]:
    """Return what a day's dump is made of: each leaf, in the tree's order, or `EVERY` alone."""
    return settings.tree_of(day).leaves if settings.input.region is None else (EVERY,)


def parts_of_all_days(settings: Settings) -> tuple[str, ...]:
    """Return what the dump of some day is made of."""
    return settings.dated_hierarchy.leaves() if settings.input.region is None else (EVERY,)


def top_of(part: str) -> str:
    """Return the folder of a part's days, below the input folder; empty where it is that itself."""
    return f"{PREFIX}{part}" if part else ""


def place_of(part: str, day: date) -> str:
    """Return the folder of a part's dump of a day, below the input folder."""
    dated = partition_of(day)
    return f"{top_of(part)}/{dated}" if part else dated


def leaves_of(settings: Settings, day: date, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the leaves that lie in these parts of a day's dump."""
    return settings.tree_of(day).leaves if EVERY in parts else parts

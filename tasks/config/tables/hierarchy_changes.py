"""What becomes of units of the hierarchy from a day on: the tables headed [[hierarchy.changes]]."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from optstream.stream import TreeChange
from tasks.config.tables.base import Section
from tasks.config.tables.fields import Day, NodeName, Positive

HIERARCHY_CHANGES = "[[hierarchy.changes]]"
NodeNames = Annotated[tuple[NodeName, ...], Field(strict=False)]
Parts = NodeNames | dict[NodeName, Positive]
"""Units that a unit becomes, or the public size of each."""


class HierarchyChange(Section):
    """What becomes of some units at the start of a local day; all others stay as they are."""

    valid_from: Day = Field(description='the first day on which it holds, such as "2016-07-01"')
    renamed: dict[NodeName, NodeName] = Field(
        default_factory=dict, description='a table old code = "new code"'
    )
    split: dict[NodeName, Parts] = Field(
        default_factory=dict,
        description='a table leaf = ["its", "parts"], or leaf = { its = "2", parts = "1" } with public sizes',
    )
    merged: dict[NodeName, NodeNames] = Field(
        default_factory=dict, description='a table new code = ["leaves", "that end"]'
    )
    added: dict[NodeName, NodeName] = Field(default_factory=dict, description='a table new code = "parent"')
    removed: NodeNames = Field((), description='a list of codes such as ["21"]')
    moved: dict[NodeName, NodeName] = Field(
        default_factory=dict, description='a table code = "parent from now on"'
    )


def changes_of(given: Sequence[HierarchyChange]) -> tuple[TreeChange, ...]:
    """Return the changes as the hierarchy takes them; parts without sizes have the same."""
    return tuple(
        TreeChange(
            valid_from=one.valid_from,
            renamed=one.renamed,
            split={old: _sizes(parts) for old, parts in one.split.items()},
            merged=one.merged,
            added=one.added,
            removed=one.removed,
            moved=one.moved,
        )
        for one in given
    )


def _sizes(parts: Parts) -> dict[str, Fraction]:
    return dict(parts) if isinstance(parts, dict) else dict.fromkeys(parts, Fraction(1))

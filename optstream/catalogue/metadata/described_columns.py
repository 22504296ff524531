"""The columns of published files, in words: releases, errors and the hierarchy's table."""

from dataclasses import dataclass

from optstream.catalogue.rows import schema
from optstream.catalogue.statements.count_bands import band_columns
from optstream.catalogue.statements.standard_errors import error_columns


@dataclass(frozen=True)
class Column:
    """A column of the published rows, in words.

    Attributes:
        name: As in the files.
        kind: Of its values.
        meaning: One sentence.
        may_be_null: Whether a value may be absent.
    """

    name: str
    kind: str
    meaning: str
    may_be_null: bool = False


HIERARCHY_COLUMNS = (
    Column("node", "string", "The code, as in the rows of these days."),
    Column("parent", "string", "The code of the unit above it; empty at the root.", True),
    Column("name", "string", "What people call it.", True),
    Column("valid_from", "date", "The first local day; empty for units of the oldest hierarchy.", True),
    Column("valid_until", "date", "The last local day; empty where no change ends it.", True),
    Column("became", "string", "The codes that it has from then on, separated by semicolons.", True),
)
"""Of `hierarchy.parquet`."""
ERROR_COLUMNS = (
    Column("term", "integer", "Which term; empty where bound and rounding are told of.", True),
    Column("node", "string", "A node of a pair, or the node that bound and rounding changed.", True),
    Column("other_node", "string", "The other node of the pair; empty of a node in a group.", True),
    Column("step", "integer", "A step of a pair, or the step that bound and rounding changed.", True),
    Column("other_step", "integer", "The other step of the pair, or the number of the node's group.", True),
    Column("earlier_date", "date", "A day before this one, with which its errors hang together.", True),
    Column("value", "number", "The part of the pair or day; or what bound and rounding added to the value."),
)
"""Of the files of errors."""


def columns_of(value: str, with_bands: bool) -> tuple[Column, ...]:
    """Return the columns of published rows with their meanings, in the order of the files.

    with_bands: whether releases are of counts, and have bands.
    """
    noise, model = error_columns(value)
    low, high = band_columns(value)
    meanings = {
        "date": ("date", "The local day.", False),
        "step": ("integer", "Number of the time step within the day, from 0.", False),
        "timestamp": ("datetime", "Start of the step in UTC; empty for a slot the day does not have.", True),
        "node": ("string", "The node of the hierarchy.", False),
        "parent": ("string", "The node above it; empty at the root.", True),
        "level": ("integer", "Depth of the node, 0 at the root.", False),
        value: ("number", "The published value, with differentially private noise.", False),
        noise: ("number", "Standard deviation of what the noise alone did to the value; no error bar.", True),
        model: ("number", "Standard error of the value by the mechanism's own model.", True),
        low: ("number", "Lowest count of a band that holds the true count in 95 % of steps.", True),
        high: ("number", "Highest count of that band.", True),
        "revision": ("integer", "From 0; a higher one is a new measurement of the day.", False),
        "vintage": ("integer", "From 0; a higher one is a new estimate from the same measurements.", False),
    }
    return tuple(Column(name, *meanings[name]) for name in schema(value, with_bands=with_bands))

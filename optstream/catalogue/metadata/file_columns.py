"""The columns of the hierarchy's table and of the files of errors, in words."""

from optstream.catalogue.metadata.dataset import Column

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
    Column("other_node", "string", "The other node of the pair.", True),
    Column("step", "integer", "A step of a pair, or the step that bound and rounding changed.", True),
    Column("other_step", "integer", "The other step of the pair.", True),
    Column("earlier_date", "date", "A day before this one, with which its errors hang together.", True),
    Column("value", "number", "The part of the pair or day; or what bound and rounding added to the value."),
)
"""Of the files of errors."""

"""Some nodes and some days of a published folder."""

from collections.abc import Collection, Mapping
from datetime import date

import polars as pl

from optstream.catalogue.about import NodeFacts
from optstream.catalogue.backends import Storage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.read import read_rows, rows_as_of
from optstream.catalogue.rows import joined_rows
from optstream.errors import ParameterError
from optstream.stream import DatedHierarchy
from optstream.stream.period import day_of

AsOf = tuple[date, DatedHierarchy | None]


def rows_of(
    storage: Storage,
    catalogue: Catalogue,
    nodes: Collection[str] = (),
    first: date | None = None,
    last: date | None = None,
    *,
    verify: bool = False,
    as_of: AsOf | None = None,
) -> pl.DataFrame:
    """Return the published rows of some nodes on some days, as `read_published` has them; reads these days'
    files alone.

    catalogue: read from the folder, and checked where it was to be signed. nodes: their names; none for all.
    first, last: local days; None for the first and the last that are published. verify: whether to compare
    the hashes of files and rows. as_of: the day in whose hierarchy all rows are wanted, as for
    `read_published`, and the hierarchies as read; None for each day's own. Days that are not published are
    absent.

    Raises ParameterError where no published day of the span has a node of one of these names, or none is
    published; PublicationError as `read_published`.
    """
    entries = [
        entry
        for entry in catalogue.listed
        if (first or date.min) <= day_of(entry.period) <= (last or date.max)
    ]
    if not entries:
        raise ParameterError(
            "no day of this span is published; see the page or catalogue.json for those that are"
        )
    wanted = pl.col("node").is_in(list(nodes)) if nodes else pl.lit(True)
    early = wanted if as_of is None else pl.lit(True)  # units of today are sums of those of other names
    parts = [read_rows(storage, catalogue, entry, verify).filter(early) for entry in entries]
    rows = joined_rows(parts, catalogue.value_column)
    if as_of is not None:
        day, hierarchy = as_of
        rows = rows_as_of(rows, hierarchy, day, catalogue.value_column).filter(wanted)
    if nodes and (unknown := sorted(set(nodes) - set(rows["node"].unique()))):
        raise ParameterError(
            f"no published day of this span has a node {unknown[0]!r}; names are as in the files"
        )
    return rows


def with_names(rows: pl.DataFrame, facts: Mapping[str, NodeFacts]) -> pl.DataFrame:
    """Return rows with a column `name` after `node`: what each node is called, null of one without a name.

    The same rows where no node has a name, or the values' column is called so.
    """
    names = {node: told.name for node, told in facts.items() if told.name is not None}
    if not names or "name" in rows.columns:
        return rows
    told = pl.col("node").replace_strict(names, default=None, return_dtype=pl.String()).alias("name")
    after = rows.columns.index("node") + 1
    return rows.select(*rows.columns[:after], told, *rows.columns[after:])

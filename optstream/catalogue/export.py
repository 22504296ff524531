"""Some nodes and some days of a published folder, and as other tools take them."""

from collections.abc import Collection, Mapping
from datetime import date

import polars as pl

from optstream.catalogue.about import NodeFacts
from optstream.catalogue.backends import Storage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.read import read_rows, rows_as_of
from optstream.catalogue.rows import Column, columns_of, error_columns, joined_rows
from optstream.catalogue.sums import Period, period_columns
from optstream.errors import ParameterError
from optstream.stream import DatedHierarchy
from optstream.stream.period import day_of

AGENCY = "OPTSTREAM"
AsOf = tuple[date, DatedHierarchy | None]
_TIMES: Mapping[Period, str] = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
"""How SDMX writes a day, a week and a month."""


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


def exported_columns(value: str, names: Collection[str]) -> tuple[Column, ...]:
    """Return the columns of `rows_of`, or of `period_sums`, of these names, with their meanings."""
    every = (*columns_of(value, with_bands=True), *period_columns(value))
    known = {column.name: column for column in every}
    known["name"] = Column("name", "string", "What the node is called.", may_be_null=True)
    return tuple(known[name] for name in names)


def as_sdmx_csv(rows: pl.DataFrame, value: str, period: Period | None = None) -> pl.DataFrame:
    """Return rows as the table of an SDMX-CSV 2.0 data message: an observation a row.

    The format: https://github.com/sdmx-twg/sdmx-csv. Dimensions are NODE and TIME_PERIOD (in UTC by step; the
    local day, week or month); the measure is OBS_VALUE, of a period its sum. Slots that a day does not have
    are left out, for they have no time. The dataflow has no structure message: columns are as here. Errors
    are attributes, empty where not known. period: that of `period_sums`; None for rows by step.
    """
    measure = value
    if period is None:
        rows = rows.filter(pl.col("timestamp").is_not_null())
        time = pl.col("timestamp").dt.to_string("%Y-%m-%dT%H:%M:%SZ")
    else:
        time, measure = pl.col("date").dt.to_string(_TIMES[period]), f"{value}_sum"
    noise, whole = error_columns(measure)
    return rows.select(
        pl.lit("dataflow").alias("STRUCTURE"),
        pl.lit(f"{AGENCY}:{value.upper()}(1.0)").alias("STRUCTURE_ID"),
        pl.lit("I").alias("ACTION"),
        pl.col("node").alias("NODE"),
        time.alias("TIME_PERIOD"),
        pl.col(measure).alias("OBS_VALUE"),
        pl.col(noise).alias("NOISE_SE"),
        pl.col(whole).alias("MODEL_SE"),
        pl.col("revision").alias("REVISION"),
        pl.col("vintage").alias("VINTAGE"),
    )

"""Rows become cells: what each file holds at each step, and who is seen twice. All in polars, streaming."""

from collections.abc import Sequence

import polars as pl

from tasks.ingest.reading import reading
from tasks.ingest.schema import UNREADABLE, SourceFile
from tasks.settings import Settings
from tasks.settings.fields import LONGEST_COLUMN

OUTSIDE, OFF_GRID, NO_TIMESTAMP = -1, -2, -3
BLOCK = 62
"""Steps whose presence fits the bits of one integer."""
ROW = "row of the file".ljust(LONGEST_COLUMN + 1, ".")
"""A name that no configured column can have."""


def rows_of(file: SourceFile, settings: Settings, *, numbered: bool = False) -> pl.LazyFrame:
    """The needed columns of one file: file, day, leaf, step (negative: why none), reading, customer."""
    columns = settings.input
    stamp = pl.col(columns.timestamp).to_physical() - file.start
    step = stamp // file.length
    found = reading(columns.value, file.value, settings.bounds, settings.resolution)
    placed = (
        pl.when(stamp.is_null())
        .then(NO_TIMESTAMP)
        .when((step < 0) | (step >= file.n_steps))
        .then(OUTSIDE)
        .when(stamp % file.length != 0)
        .then(OFF_GRID)
        .otherwise(step)
    )
    wanted = {
        "file": pl.lit(file.number, pl.UInt32),
        "day": pl.lit(file.day, pl.UInt32),
        "leaf": pl.lit(file.leaf, pl.UInt32),
        "step": placed.cast(pl.Int32),
        "units": found.units,
        "absent": found.absent,
        "infinite": found.infinite,
        "out_of_bounds": found.out_of_bounds,
    }
    if settings.metered:
        wanted["customer"] = pl.col(columns.customer).cast(pl.String)
    if numbered:
        wanted["row"] = pl.col(ROW)
    # Statistics are what the writer claims: they may be broken, or hide rows from a filter.
    source = pl.scan_parquet(file.path, glob=False, hive_partitioning=False, use_statistics=False)
    if numbered:
        # Of the needed columns alone: a dump may hold others of any name.
        needed = [columns.timestamp, columns.value, *([columns.customer] if settings.metered else [])]
        source = source.select(needed).with_row_index(ROW)
    return source.select(**wanted)


def is_readable(file: SourceFile, settings: Settings) -> bool:
    """Whether every needed page of the file can be read, which its footer does not tell."""
    try:
        rows_of(file, settings).select(pl.all().count()).collect(engine="streaming")
    except UNREADABLE:
        return False
    return True


def cells_of(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """A row for each (file, step) found, with counts and the sum of its units. Raises polars' errors."""
    counts = ["absent", "infinite", "out_of_bounds"]
    found = [pl.len().cast(pl.Int64).alias("rows"), pl.col("units").sum()]
    found += [pl.col(name).sum().cast(pl.Int64) for name in counts]
    nobody = pl.col("customer").is_null().sum().cast(pl.Int64) if settings.metered else pl.lit(0, pl.Int64)
    found.append(nobody.alias("no_customer"))
    rows = pl.concat([rows_of(file, settings) for file in files])
    return rows.group_by("file", "day", "leaf", "step").agg(found).collect(engine="streaming")


def dropped_of(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """What metered rows of one day are dropped by the public rule: a row for each (file, step, rule).

    The rule looks at which rows exist, never at a reading: of a customer seen in several leaves, only the
    first leaf in the tree's order counts; of several rows of a customer and step, only the first, by file
    name and position. One streaming pass finds whom it concerns; only their rows are read again.
    """
    placed = [rows_of(file, settings).filter(pl.col("step") >= 0) for file in files]
    suspects = _suspects(pl.concat(placed))
    if suspects.is_empty():
        return pl.DataFrame(
            schema={"file": pl.UInt32, "step": pl.Int32, "rule": pl.String, "units": pl.Int64}
        )
    numbered = [rows_of(file, settings, numbered=True).filter(pl.col("step") >= 0) for file in files]
    rows = pl.concat(numbered).join(suspects.lazy(), on="customer", how="semi").collect(engine="streaming")
    rows = rows.sort("customer", "leaf", "file", "row")
    elsewhere = pl.col("leaf") != pl.col("leaf").min().over("customer")
    again = pl.struct("customer", "step").is_first_distinct().not_()
    rule = pl.when(elsewhere).then(pl.lit("two_leaves")).when(again).then(pl.lit("duplicates"))
    return (
        rows.with_columns(rule=rule)
        .filter(pl.col("rule").is_not_null())
        .select("file", "step", "rule", "units")
    )


def can_be_dropped_from(file: SourceFile, settings: Settings) -> bool:
    """Whether the pass over customers can read this file by itself."""
    try:
        dropped_of([file], settings)
    except UNREADABLE:
        return False
    return True


def _suspects(rows: pl.LazyFrame) -> pl.DataFrame:
    """Customers of one day with rows in two leaves, or two rows at a step. Found without values."""
    bit = pl.lit(2, pl.Int64).pow((pl.col("step") % BLOCK).cast(pl.UInt32))
    blocks = rows.group_by("customer", block=pl.col("step") // BLOCK).agg(
        pl.col("leaf").min().alias("first"),
        pl.col("leaf").max().alias("last"),
        (pl.len() > bit.bitwise_or().bitwise_count_ones()).alias("again"),
    )
    people = blocks.group_by("customer").agg(
        pl.col("first").min(), pl.col("last").max(), pl.col("again").any()
    )
    odd = (pl.col("first") != pl.col("last")) | pl.col("again")
    return (
        people.filter(odd & pl.col("customer").is_not_null()).select("customer").collect(engine="streaming")
    )

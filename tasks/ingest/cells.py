"""Rows become cells: what each file holds at each step. All in polars, streaming."""

from collections.abc import Sequence

import polars as pl

from tasks.ingest.reading import KINDS, reading
from tasks.ingest.rows import NO_STEP, customer_of, scan, step_of
from tasks.ingest.schema import SourceFile
from tasks.settings import Settings

FILES_A_PLAN = 96
"""Files read by one lazy plan: each takes a blocking thread, and polars warns of a deadlock at 512."""


def cells_of(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """A row for each (file, step) found, with counts and the sum of its units. Raises polars' errors."""
    plans = [files[start : start + FILES_A_PLAN] for start in range(0, len(files), FILES_A_PLAN)]
    found = [_keyed_cells(plan, settings) for plan in plans]
    schema = {"file": pl.UInt32, "step": pl.Int32, "kind": pl.Int8, "rows": pl.Int64, "units": pl.Int64}
    counts = [pl.col("rows").filter(pl.col("kind") == kind).sum().alias(name) for kind, name in KINDS.items()]
    cells = pl.concat([pl.DataFrame(schema=schema), *found]).group_by("file", "step")
    return with_places(cells.agg(pl.col("rows").sum(), pl.col("units").sum(), *counts), files)


def _keyed_cells(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """A row for each (file, step, kind of reading) found.

    One integer for the three makes a group-by that costs little more than a sum: the kind of a reading is
    part of what it is grouped by, so that counting the kinds needs no columns of their own.
    """
    n_kinds = len(KINDS) + 1
    width = (NO_STEP + max(file.n_steps for file in files)) * n_kinds
    plans = []
    for number, file in enumerate(files):
        found = reading(settings.input.value, file.value, settings.bounds, settings.resolution)
        step = step_of(file, settings) + NO_STEP
        key = number * width + step * n_kinds + found.kind
        plans.append(scan(file).select(key=key, units=found.units))
    cells = pl.concat(plans).group_by("key").agg(pl.len().cast(pl.Int64).alias("rows"), pl.col("units").sum())
    key, numbers = pl.col("key"), pl.Series([file.number for file in files], dtype=pl.UInt32)
    return cells.collect(engine="streaming").select(
        file=pl.lit(numbers).gather(key // width),
        step=(key % width // n_kinds - NO_STEP).cast(pl.Int32),
        kind=(key % n_kinds).cast(pl.Int8),
        rows="rows",
        units="units",
    )


def nobody_of(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """How many rows of each (file, step) have no customer, where some do: file, step, no_customer."""
    found = [pl.DataFrame(schema={"file": pl.UInt32, "step": pl.Int32, "no_customer": pl.Int64})]
    for file in files:
        rows = scan(file).select(
            step=step_of(file, settings).cast(pl.Int32), nobody=customer_of(settings).is_null()
        )
        counted = rows.filter("nobody").group_by("step").agg(no_customer=pl.len().cast(pl.Int64))
        counted = counted.select(pl.lit(file.number, pl.UInt32).alias("file"), "step", "no_customer")
        found.append(counted.collect(engine="streaming"))
    return pl.concat(found)


def with_places(frame: pl.DataFrame, files: Sequence[SourceFile]) -> pl.DataFrame:
    """Join day and leaf by the file's number."""
    schema = {"file": pl.UInt32, "day": pl.UInt32, "leaf": pl.UInt32}
    index = pl.DataFrame([(file.number, file.day, file.leaf) for file in files], schema=schema, orient="row")
    return frame.join(index, on="file", how="left")

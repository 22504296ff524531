"""Rows become cells: what each file holds of a leaf at each step. All in polars, streaming."""

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from tasks.config import Settings
from tasks.ingest import reading as kinds
from tasks.ingest.arrival.files import size_of
from tasks.ingest.reading import KINDS
from tasks.ingest.row_expressions import NO_STEP, leaf_of, reading_of, scan, step_of
from tasks.ingest.schema import SourceFile
from tasks.ingest.spread import Spread, by_part, without_ledger

FILES_A_PLAN = 96
"""Files read by one lazy plan: each takes a blocking thread, and polars warns of a deadlock at 512."""
BYTES_A_PLAN = 2**23
"""A plan that has as much takes no further file: by then it keeps all threads at work, and more pages held at
once gain nothing."""
KEY = {"file": pl.UInt32, "leaf": pl.UInt32, "step": pl.Int32}
"""Of a cell."""
CELLS = {**KEY, "kind": pl.Int8, "rows": pl.Int64, "units": pl.Int64}
COUNTED = {
    "absent": [kinds.ABSENT],
    "infinite": [kinds.INFINITE, kinds.MINUS_INFINITE],
    "out_of_bounds": [kinds.ABOVE, kinds.BELOW],
}


def cells_of(files: Sequence[SourceFile], settings: Settings, spread: Spread | None = None) -> pl.DataFrame:
    """A row for each (file, leaf, step, kind of reading): counts, sum of units. Raises polars' errors."""
    if spread is None:
        found = [_cells(files, settings)]
    else:
        found = spread(partial(_cells, settings=without_ledger(settings)), by_part(files))
    counts = [
        pl.when(pl.col("kind").is_in(of)).then("rows").otherwise(0).alias(name)
        for name, of in COUNTED.items()
    ]
    cells = pl.concat([pl.DataFrame(schema=CELLS), *found])
    return with_days(cells.with_columns(counts).drop("kind"), files)


def by_step_of(cells: pl.DataFrame) -> pl.DataFrame:
    """A row for each (day, leaf, step) found: all counts, and the last of the files."""
    found = cells.lazy().group_by("day", "leaf", "step").agg(pl.col(pl.Int64).sum(), pl.col("file").max())
    return found.collect(engine="streaming")  # a third of the time of the other engine, where groups are many


def _cells(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """A row for each (file, leaf, step, kind of reading) found."""
    found = [_grouped(plan, settings) for plan in _plans(files)]
    return pl.concat([pl.DataFrame(schema=CELLS), *found])


def _plans(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    """Files that are read together: many where they are small."""
    plan: list[SourceFile] = []
    size = 0
    for file in files:
        plan.append(file)
        size += size_of(file.path)
        if len(plan) == FILES_A_PLAN or size > BYTES_A_PLAN:
            yield plan
            plan, size = [], 0
    if plan:
        yield plan


def _grouped(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """A row for each (file, leaf, step, kind of reading) found, and the sum of its units.

    One integer for the four makes a group-by that costs little more than a sum: the kind of a reading is
    part of what it is grouped by, so that counting the kinds needs no columns of their own. Each row is read
    once, whatever it holds.
    """
    width = (NO_STEP + max(file.n_steps for file in files)) * len(KINDS)
    n_leaves = max(len(file.leaves) for file in files)
    plans = []
    for number, file in enumerate(files):
        found = reading_of(file, settings)
        place = pl.lit(number * n_leaves) + leaf_of(file).cast(pl.Int64)
        key = place * width + (step_of(file) + NO_STEP) * len(KINDS) + found.kind
        plans.append(scan(file).select(key=key, units=found.units))
    cells = pl.concat(plans).group_by("key").agg(pl.len().cast(pl.Int64).alias("rows"), pl.col("units").sum())
    key, numbers = pl.col("key"), pl.Series([file.number for file in files], dtype=pl.UInt32)
    return cells.collect(engine="streaming").select(
        file=pl.lit(numbers).gather(key // width // n_leaves),
        leaf=(key // width % n_leaves).cast(pl.UInt32),
        step=(key % width // len(KINDS) - NO_STEP).cast(pl.Int32),
        kind=(key % len(KINDS)).cast(pl.Int8),
        rows="rows",
        units="units",
    )


def with_days(frame: pl.DataFrame, files: Sequence[SourceFile]) -> pl.DataFrame:
    """Join the day by the file's number."""
    schema = {"file": pl.UInt32, "day": pl.UInt32}
    index = pl.DataFrame([(file.number, file.day) for file in files], schema=schema, orient="row")
    return frame.join(index, on="file", how="left")

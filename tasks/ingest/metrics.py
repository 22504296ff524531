"""The raw frame, which the raw contract judges: a row for each (day, region)."""

from collections.abc import Sequence
from datetime import date

import polars as pl

from data_contracts.frames import FILE_FAULTS, raw_columns
from tasks.config import Settings
from tasks.ingest.cells import with_days
from tasks.ingest.row_expressions import NO_LEAF, NO_TIMESTAMP, OFF_GRID, OUTSIDE
from tasks.ingest.schema import SourceFile

CELL_RULES = {
    "unknown_region": pl.col("step") == NO_LEAF,
    "no_timestamp": pl.col("step") == NO_TIMESTAMP,
    "outside_day": pl.col("step") == OUTSIDE,
    "off_grid": pl.col("step") == OFF_GRID,
    "absent": (pl.col("absent") > 0) & (pl.col("step") >= 0),
    "infinite": (pl.col("infinite") > 0) & (pl.col("step") >= 0),
    "out_of_bounds": (pl.col("out_of_bounds") > 0) & (pl.col("step") >= 0),
}


DROPPED_RULES = ("no_customer", "duplicates", "two_leaves")
"""Why metered rows of a step do not count."""


def metrics_of(
    files: Sequence[SourceFile],
    by_step: pl.DataFrame,
    dropped: pl.DataFrame,
    days: Sequence[date],
    settings: Settings,
) -> pl.DataFrame:
    """Return the raw frame, (n_days * n_leaves) rows, its day an index, and with the leaf's."""
    grid = pl.concat(_grid_of(settings, number, day) for number, day in enumerate(days))
    for found in (_cell_counts(by_step), _dropped_counts(files, dropped)):
        grid = grid.join(found, on=["day", "leaf"], how="left", maintain_order="left")
    grid = grid.with_columns(pl.all().exclude("region").fill_null(0))
    grid = grid.join(_file_faults(files), on=["day", "leaf"], how="left", maintain_order="left")
    if settings.metered:
        grid = grid.with_columns(
            duplicates=pl.col("dropped_duplicates"),
            two_leaves=pl.col("dropped_two_leaves"),
            no_customer=pl.col("dropped_no_customer"),
        )
    else:
        grid = grid.with_columns(duplicates=pl.col("repeated"))
    return grid.select("leaf", *raw_columns(metered=settings.metered))


def _grid_of(settings: Settings, number: int, day: date) -> pl.DataFrame:
    """The leaves of a day, each with the day's index and its own."""
    regions = pl.DataFrame({"region": settings.tree_of(day).leaves}, schema={"region": pl.String})
    return regions.select(
        pl.lit(number, pl.UInt32).alias("day"),
        pl.lit(settings.calendar.n_steps(day), pl.Int64).alias("steps_expected"),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("leaf"),
        "region",
    )


def _file_faults(files: Sequence[SourceFile]) -> pl.DataFrame:
    """The most telling fault of each (day, leaf) with files that cannot be read."""
    order = list(FILE_FAULTS)
    worst: dict[tuple[int, int], str] = {}
    for file in sorted((one for one in files if one.broken), key=lambda one: order.index(str(one.broken))):
        worst.setdefault((file.day, file.leaf), str(file.broken))
    rows = [(*place, fault) for place, fault in worst.items()]
    schema = {"day": pl.UInt32, "leaf": pl.UInt32, "file_fault": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _cell_counts(by_step: pl.DataFrame) -> pl.DataFrame:
    inside = pl.col("step") >= 0
    counts = [
        pl.col("rows").sum(),
        inside.sum().cast(pl.Int64).alias("steps_found"),
        (pl.col("rows").filter(inside) - 1).sum().alias("repeated"),
    ]
    for name, broken in CELL_RULES.items():
        counted = pl.col(name) if name in ("absent", "infinite", "out_of_bounds") else pl.col("rows")
        counts.append(counted.filter(broken).sum().alias(name))
    return by_step.lazy().group_by("day", "leaf").agg(counts).collect(engine="streaming")


def _dropped_counts(files: Sequence[SourceFile], dropped: pl.DataFrame) -> pl.DataFrame:
    rows = with_days(dropped, files)
    counts = [
        pl.col("rows").filter(pl.col("rule") == name).sum().alias(f"dropped_{name}") for name in DROPPED_RULES
    ]
    return rows.group_by("day", "leaf").agg(counts)

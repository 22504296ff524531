"""What the raw contract judges: a row for each (day, region)."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

import polars as pl

from data_contracts.raw import FILES, raw_rules
from optstream.stream.quantise import LARGEST_UNITS
from tasks.config import Settings
from tasks.ingest.arrival.discover import Dump
from tasks.ingest.cells import with_places
from tasks.ingest.rows import NO_TIMESTAMP, OFF_GRID, OUTSIDE
from tasks.ingest.schema import SourceFile

CELL_RULES = {
    "no_timestamp": pl.col("step") == NO_TIMESTAMP,
    "outside_day": pl.col("step") == OUTSIDE,
    "off_grid": pl.col("step") == OFF_GRID,
    "absent": (pl.col("absent") > 0) & (pl.col("step") >= 0),
    "infinite": (pl.col("infinite") > 0) & (pl.col("step") >= 0),
    "out_of_bounds": (pl.col("out_of_bounds") > 0) & (pl.col("step") >= 0),
    "no_customer": pl.col("no_customer") > 0,
}


def metrics_of(
    files: Sequence[SourceFile],
    cells: pl.DataFrame,
    dropped: pl.DataFrame,
    dumps: Sequence[Dump],
    settings: Settings,
) -> pl.DataFrame:
    """Count what each rule forbids, (n_days * n_leaves) rows: day, leaf (indices), region, rules, steps."""
    leaves = settings.tree.leaves
    lengths = [settings.calendar.n_steps(dump.day) for dump in dumps]
    grid = pl.DataFrame(
        [
            {"day": day, "leaf": leaf, "region": region, "steps_expected": length}
            for day, length in enumerate(lengths)
            for leaf, region in enumerate(leaves)
        ],
        schema={"day": pl.UInt32, "leaf": pl.UInt32, "region": pl.String, "steps_expected": pl.Int64},
    )
    for found in (_file_counts(files), _cell_counts(cells, settings), _dropped_counts(files, dropped)):
        grid = grid.join(found, on=["day", "leaf"], how="left", maintain_order="left")
    grid = grid.with_columns(pl.all().exclude("region").fill_null(0))
    grid = grid.with_columns(
        missing_steps=pl.col("steps_expected") - pl.col("steps_found"),
        empty=((pl.col("rows") == 0) & (pl.sum_horizontal(pl.col(_file_rules())) == 0)).cast(pl.Int64),
    )
    if settings.metered:
        grid = grid.with_columns(
            duplicates=pl.col("dropped_duplicates"), two_leaves=pl.col("dropped_two_leaves")
        )
    else:
        grid = grid.with_columns(duplicates=pl.col("repeated"))
    names = [rule.name for rule in raw_rules(metered=settings.metered)]
    return grid.select("day", "leaf", "region", "rows", "steps_found", "steps_expected", *names)


def _file_rules() -> list[str]:
    return [rule.name for rule in FILES if rule.name != "empty"]


def _file_counts(files: Sequence[SourceFile]) -> pl.DataFrame:
    rows = [(file.day, file.leaf, file.broken or "") for file in files]
    schema = {"day": pl.UInt32, "leaf": pl.UInt32, "broken": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    counts = [(pl.col("broken") == name).sum().cast(pl.Int64).alias(name) for name in _file_rules()]
    return frame.group_by("day", "leaf").agg(counts)


def _cell_counts(cells: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    by_step = cells.group_by("day", "leaf", "step").agg(pl.col(pl.Int64).sum())
    inside = pl.col("step") >= 0
    limits = [abs(floor(bound / settings.resolution + Fraction(1, 2))) for bound in settings.bounds]
    n_cells = pl.col("step").max() * len(settings.tree.leaves) + len(settings.tree.leaves)
    # Public facts only: how many rows there are, and how large each may be.
    most = LARGEST_UNITS * 2**12 // max(*limits, 1)
    counts = [
        pl.col("rows").sum(),
        inside.sum().cast(pl.Int64).alias("steps_found"),
        (pl.col("rows").filter(inside) - 1).sum().alias("repeated"),
        (pl.col("rows").max().cast(pl.Float64) * n_cells.cast(pl.Float64) * 1.001 >= float(most))
        .cast(pl.Int64)
        .alias("too_large"),
    ]
    for name, broken in CELL_RULES.items():
        counted = (
            pl.col(name) if name in ("absent", "infinite", "out_of_bounds", "no_customer") else pl.col("rows")
        )
        counts.append(counted.filter(broken).sum().alias(name))
    return by_step.group_by("day", "leaf").agg(counts)


def _dropped_counts(files: Sequence[SourceFile], dropped: pl.DataFrame) -> pl.DataFrame:
    rows = with_places(dropped, files)
    counts = [
        pl.col("rows").filter(pl.col("rule") == name).sum().alias(f"dropped_{name}")
        for name in ("duplicates", "two_leaves")
    ]
    return rows.group_by("day", "leaf").agg(counts)

"""The frames of metrics that suites judge. None holds a reading, and what stops a day is structural."""

from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import error_columns
from optstream.storage.parquet import Limits
from optstream.stream import AggregationTree, Feature

LIMITS = Limits(rows=2**31, columns=10_000)
"""What the footer of one file of a dump may claim; a day may have many files."""

LARGEST_SUM = 2**62
"""Units that the rows of a day may add up to: each at its largest, as many as the footers claim."""

FILE_FAULTS = {
    "unreadable": "must be a readable Parquet file; deliver it again",
    "unreadable_text": "must be readable text, whole and packed as its name says; deliver it again",
    "other_hash": "must have the SHA-256 that the list of files gives; deliver it again",
    "damaged_page": "must have pages that fit their checksums; deliver it again",
    "too_much": f"must claim {LIMITS.words}; split it into several",
    "too_many_rows": "has with the others too many rows a day for exact sums; choose a coarser resolution",
    "columns": "must hold these columns; correct [input], or its changes by date, or the dump, with one "
    "column of each name",
    "other_schema": 'must have the customer column if and only if [input] schema is "metered"; correct the '
    "schema",
    "timestamp_type": "must be a date with time",
    "value_type": "must be a column of numbers that can be counted exactly: no text, and no decimals of more "
    "than 38 digits",
    "customer_type": "must be text or whole numbers",
    "region_type": "must be text or whole numbers",
    "clock": 'the clock changes on this day: day = "elapsed" needs timestamps with a time zone, '
    'day = "fixed" wall-clock timestamps without one: deliver this day with those, which other days need not'
    '; metered text whose timestamps all have one needs input.stamps_zone = "UTC", too',
    "clock_ends": "the clock changes on this day or as it ends, and where rows may be absent the ends of "
    "steps by the wall clock do not say which hour is meant: deliver this day by the starts of steps, and "
    'say so in [[input.changes]] with stamps = "start"',
}
"""Why a file cannot be read, the most telling first."""
FAULTY_COLUMNS = {
    "columns": "timestamp value region margin revision",
    "other_schema": "customer",
    "timestamp_type": "timestamp",
    "value_type": "value",
    "customer_type": "customer",
    "region_type": "region margin",
    "clock": "timestamp",
    "clock_ends": "timestamp",
}
"""Which of the source's columns a fault is about."""

KEYS = ["day", "region"]
RAW = {
    "day": "the local day",
    "region": "a leaf of the hierarchy",
    "file_fault": "why the first of its files that cannot be read cannot be; null if all can",
    "rows": "rows of all files",
    "unknown_region": "rows of a region that is no leaf (in the first leaf's row)",
    "steps_found": "distinct steps of the day with a row",
    "steps_expected": "steps of the day",
    "no_timestamp": "rows without a timestamp",
    "outside_day": "rows outside the day",
    "off_grid": "rows between the starts of steps",
    "duplicates": "rows of a step (metered: of a customer and step) that has one already",
    "absent": "values that are null or NaN",
    "infinite": "infinite values",
    "out_of_bounds": "finite values beyond the public bounds",
}
RAW_METERED = {
    "no_customer": "rows without a customer",
    "two_leaves": "rows of a customer who has others at this step in another leaf",
}
"""Further columns where [input] schema is "metered"."""

RELEASE = {
    "day": "the local day",
    "region": "a node of the hierarchy",
    "rows": "its rows",
    "cells": "distinct steps with a row",
    "cells_expected": "steps of the day",
    "not_finite": "steps whose value is absent, NaN or infinite",
    "lowest": "its lowest value",
    "lowest_allowed": "the configured lower bound times the leaves below it",
    "highest": "its highest value",
    "total": "the sum of its values",
    "children_minus_parent": "the largest difference at a step, in units of the resolution",
    "not_whole": "steps whose value is no multiple of the resolution",
    "errors_not_positive": "standard errors that are not finite and greater than 0, nor null",
    "unknown_rows": "rows of no node or step of the day (in the root's row)",
    "unfit_features": "features that are no partition of the day's steps (in the root's row)",
    "lineage_absent": "statements of the lineage that are not made (in the root's row)",
}
"""One row for each day and node, from the staged release."""


def raw_columns(*, metered: bool) -> dict[str, str]:
    """Return the columns of the raw frame, each with its meaning."""
    return {**RAW, **RAW_METERED} if metered else RAW


LINEAGE = (
    "stream",
    "period",
    "revision",
    "vintage",
    "privacy_model",
    "privacy_in_words",
    "epsilon_plan",
    "epsilon_own",
    "noise",
    "mechanism",
    "calibration",
    "code_version",
    "configuration_hash",
)
"""What a release must state about itself."""
FLOAT_ERROR = 2.0**-50
"""Of a value in units of the resolution: so far a float may be from the multiple that it stands for."""


def release_metrics(
    day: date,
    rows: pl.DataFrame,
    tree: AggregationTree,
    features: Sequence[Feature],
    *,
    value_column: str,
    resolution: Fraction,
    lower_bound: Fraction,
    n_steps: int,
    statement: Mapping[str, Any],
    step_of_day: int = 0,
    n_nodes: int | None = None,
) -> pl.DataFrame:
    """Return the frame `RELEASE` of one period as it will be published, of its first `n_nodes` or all;
    lower_bound: of one leaf; step_of_day: of the period's first step."""
    least = _least(tree, resolution, lower_bound)[:n_nodes]
    if n_nodes is not None:
        tree = AggregationTree(tree.nodes[:n_nodes], tree.parents[:n_nodes])
    number = pl.col("node").cast(pl.String).cast(pl.Enum(tree.nodes), strict=False).to_physical()
    placed = rows.with_columns(
        node=number.cast(pl.Int64),
        step=pl.col("step").cast(pl.Int64) - step_of_day,
    )
    inside = placed.filter(pl.col("node").is_not_null() & pl.col("step").is_between(0, n_steps - 1))
    errors = [pl.col(name).cast(pl.Float64) for name in error_columns(value_column) if name in rows.columns]
    counts = inside.group_by("node").agg(
        rows=pl.len(),
        cells=pl.col("step").n_unique(),
        errors_not_positive=pl.sum_horizontal(
            pl.lit(0), *((~(one.is_finite() & (one > 0))).sum() for one in errors)
        ),
    )
    nodes = pl.DataFrame({"node": range(len(tree.nodes)), "region": tree.nodes})
    counts = nodes.join(counts, on="node", how="left", maintain_order="left").fill_null(0)
    values = np.full((len(tree.nodes), n_steps), np.nan)
    values[inside["node"].to_numpy(), inside["step"].to_numpy()] = (
        inside[value_column].cast(pl.Float64).fill_null(np.nan).to_numpy()
    )
    finite = np.isfinite(values)
    values = np.where(finite, values, 0.0)  # other values are counted, and stop the day by themselves
    units = values / float(resolution)
    whole = np.rint(units)
    root = np.arange(len(tree.nodes)) == 0
    absent = sum(statement.get(key) in (None, "", [], {}) for key in LINEAGE)
    return counts.with_columns(
        day=pl.lit(day.isoformat()),
        cells_expected=pl.lit(n_steps),
        not_finite=(~finite).sum(axis=1),
        lowest=values.min(axis=1),
        lowest_allowed=least,
        highest=values.max(axis=1),
        total=values.sum(axis=1),
        children_minus_parent=_children_minus_parent(whole, tree),
        not_whole=(np.abs(units - whole) > FLOAT_ERROR * np.maximum(np.abs(units), 1.0)).sum(axis=1),
        unknown_rows=root * (placed.height - inside.height),
        unfit_features=root * sum(feature.n_steps != n_steps for feature in features),
        lineage_absent=root * absent,
    ).select(*RELEASE)


def _least(tree: AggregationTree, resolution: Fraction, lower_bound: Fraction) -> NDArray[np.float64]:
    # Sums of floats may miss a bound that is not 0 by rounding alone; 0 needs no such slack.
    slack = 0.0 if lower_bound == 0 else float(resolution) * 1e-6
    return np.array([float(lower_bound * int(below)) - slack for below in tree.leaves_below])


def _children_minus_parent(values: NDArray[np.float64], tree: AggregationTree) -> NDArray[np.float64]:
    """Return for each node the largest difference of a sum of its parts from it; 0 for one without parts."""
    missed = np.zeros(len(values))
    for parts, wholes in tree.sums:
        sums = np.zeros_like(values)
        np.add.at(sums, wholes, values[parts])
        inner = np.isin(np.arange(len(values)), wholes)
        missed = np.maximum(missed, np.where(inner, np.abs(sums - values).max(axis=1), 0.0))
    return missed

"""The contract of the published release: complete, finite, bounded below, consistent, with its lineage."""

from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data_contracts.judge import Rule, judge
from optstream.catalogue import error_columns
from optstream.errors import ContractError
from optstream.stream import AggregationTree, Feature

NAME = "release"
RULES = (
    Rule("missing_cells", "must have a row for each node and step"),
    Rule("repeated_cells", "must have each node and step once"),
    Rule("strange_cells", "must have rows of the hierarchy's nodes and the day's steps only"),
    Rule("not_finite", "must hold finite numbers"),
    Rule("below_bound", "must be at or above the lower bound, times the leaves below the node"),
    Rule(
        "unequal_children", "must have each node equal the sum of its children within half a resolution unit"
    ),
    Rule("unequal_parts", "must have each feature's parts equal their steps within half a resolution unit"),
    Rule("strange_errors", "must have standard errors that are finite and greater than 0, or null"),
    Rule("incomplete_lineage", "must state its whole lineage"),
)
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


def release_metrics(
    rows: pl.DataFrame,
    tree: AggregationTree,
    features: Sequence[Feature],
    *,
    value_column: str,
    resolution: Fraction,
    lower_bound: Fraction,
    n_steps: int,
    statement: Mapping[str, Any],
    feature_sums: Sequence[NDArray[np.float64]] | None = None,
) -> dict[str, int]:
    """What RULES judge of the rows of one period as they will be published, and of what they state.

    rows: columns step, node, `value_column`, and its standard errors if there are any. lower_bound: of one
    leaf. feature_sums: for each feature the (n_nodes, n_parts) sums that are stated beside the rows; None if
    none are: then a feature need only be a partition of the period. All of it is noisy or public.
    """
    number = {node: index for index, node in enumerate(tree.nodes)}
    placed = rows.select(
        node=pl.col("node").cast(pl.String).replace_strict(number, default=None, return_dtype=pl.Int64),
        step=pl.col("step").cast(pl.Int64),
        value=pl.col(value_column).cast(pl.Float64),
    )
    inside = placed.filter(pl.col("node").is_not_null() & pl.col("step").is_between(0, n_steps - 1))
    cells = inside.select("node", "step").n_unique()
    values = np.full((len(tree.nodes), n_steps), np.nan)
    values[inside["node"].to_numpy(), inside["step"].to_numpy()] = (
        inside["value"].fill_null(np.nan).to_numpy()
    )
    half = float(resolution) / 2
    return {
        "missing_cells": values.size - cells,
        "repeated_cells": inside.height - cells,
        "strange_cells": placed.height - inside.height,
        "not_finite": int((~np.isfinite(values)).sum()),
        "below_bound": int((values < _least(tree, resolution, lower_bound)).sum()),
        "unequal_children": _unequal_children(values, tree, half),
        "unequal_parts": _unequal_parts(values, features, feature_sums, half),
        "strange_errors": _strange_errors(rows, value_column),
        "incomplete_lineage": sum(statement.get(key) in (None, "", [], {}) for key in LINEAGE),
    }


def _strange_errors(rows: pl.DataFrame, value_column: str) -> int:
    """Standard errors that claim what none can be; of rows that have such columns."""
    names = [name for name in error_columns(value_column) if name in rows.columns]
    columns = (rows[name].cast(pl.Float64).drop_nulls().to_numpy() for name in names)
    return sum(int((~(np.isfinite(one) & (one > 0))).sum()) for one in columns)


def judge_releases(metrics: Mapping[date, Mapping[str, int]]) -> dict[date, ContractError | None]:
    """The verdict on each day, by its `release_metrics`: one validation, however many days.

    Raises ContractError only if judging itself failed.
    """
    if not metrics:
        return {}
    says: dict[date, list[str]] = {day: [] for day in metrics}
    days = list(metrics)
    for entry in judge(NAME, RULES, pl.DataFrame(list(metrics.values())), n_rows=len(days)):
        says[days[entry.row]].append(entry.rule.says)
    return {
        day: ContractError(f"the release of {day} is not published: it {', and '.join(broken)}")
        if broken
        else None
        for day, broken in says.items()
    }


def _least(tree: AggregationTree, resolution: Fraction, lower_bound: Fraction) -> NDArray[np.float64]:
    # Sums of floats may miss a bound that is not 0 by rounding alone; 0 needs no such room.
    room = 0.0 if lower_bound == 0 else float(resolution) * 1e-6
    return np.array([[float(lower_bound * int(below)) - room] for below in tree.leaves_below])


def _unequal_children(values: NDArray[np.float64], tree: AggregationTree, half: float) -> int:
    parents = np.array(tree.parents)
    sums = np.zeros_like(values)
    np.add.at(sums, parents[1:], values[1:])
    inner = np.unique(parents[1:])
    # "not within" also counts what is not a number
    return int((~(np.abs(sums[inner] - values[inner]) <= half)).sum())


def _unequal_parts(
    values: NDArray[np.float64],
    features: Sequence[Feature],
    feature_sums: Sequence[NDArray[np.float64]] | None,
    half: float,
) -> int:
    if feature_sums is None:
        return sum(feature.n_steps != values.shape[1] for feature in features)
    wrong = abs(len(features) - len(feature_sums))
    for feature, stated in zip(features, feature_sums, strict=False):
        sums = values @ feature.matrix.T if feature.n_steps == values.shape[1] else None
        if sums is None or stated.shape != sums.shape:
            wrong += 1
        else:
            wrong += int((~(np.abs(sums - stated) <= half)).sum())
    return wrong

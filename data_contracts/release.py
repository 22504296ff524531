"""The contract of the published release: complete, finite, bounded below, consistent, with its lineage."""

from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from great_expectations.expectations import ExpectColumnPairValuesAToBeGreaterThanB
from numpy.typing import NDArray

from data_contracts.frames import RELEASE, structural
from data_contracts.judge import Broken, Contract
from data_contracts.raw import STOPS, equal, none_of
from optstream.catalogue import error_columns
from optstream.errors import ContractError
from optstream.stream import AggregationTree, Feature

CONTRACT = Contract(
    "release",
    (
        equal("cells", "cells_expected", "must have a row for each node and step"),
        equal("rows", "cells", "must have each node and step once"),
        none_of("unknown_rows", "must have rows of the hierarchy's nodes and the day's steps only"),
        none_of("not_finite", "must hold finite numbers"),
        ExpectColumnPairValuesAToBeGreaterThanB(
            column_A="lowest",
            column_B="lowest_allowed",
            or_equal=True,
            severity=STOPS,
            meta={"says": "must be at or above the lower bound, times the leaves below the node"},
        ),
        none_of("children_minus_parent", "must have each node equal the sum of its children"),
        none_of("not_whole", "must hold multiples of the resolution"),
        none_of("unfit_features", "must have each feature's parts cover the day's steps"),
        none_of(
            "errors_not_positive", "must have standard errors that are finite and greater than 0, or null"
        ),
        none_of("lineage_absent", "must state its whole lineage"),
    ),
    structural(RELEASE),
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
) -> pl.DataFrame:
    """Return the frame `RELEASE` of one period, a row for each node, as it will be published.

    rows: columns step, node, `value_column`, and its standard errors if there are any. lower_bound: of one
    leaf. step_of_day: of the period's first step, from which its rows count. All of it is noisy or public.
    """
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
    values = np.where(finite, values, 0.0)  # what is not finite is counted, and stops the day by itself
    units = values / float(resolution)
    whole = np.rint(units)
    root = np.arange(len(tree.nodes)) == 0
    absent = sum(statement.get(key) in (None, "", [], {}) for key in LINEAGE)
    return counts.with_columns(
        day=pl.lit(day.isoformat()),
        cells_expected=pl.lit(n_steps),
        not_finite=(~finite).sum(axis=1),
        lowest=values.min(axis=1),
        lowest_allowed=_least(tree, resolution, lower_bound),
        highest=values.max(axis=1),
        total=values.sum(axis=1),
        children_minus_parent=_children_minus_parent(whole, tree),
        not_whole=(np.abs(units - whole) > FLOAT_ERROR * np.maximum(np.abs(units), 1.0)).sum(axis=1),
        unknown_rows=root * (placed.height - inside.height),
        unfit_features=root * sum(feature.n_steps != n_steps for feature in features),
        lineage_absent=root * absent,
    ).select(*RELEASE)


def refusals(broken: Sequence[Broken]) -> dict[str, ContractError]:
    """Return, by day, why a release is not published."""
    says: dict[str, dict[str, None]] = {}
    for one in broken:
        says.setdefault(one.day, {})[one.says] = None
    return {
        day: ContractError(f"the release of {day} is not published: it {', and '.join(rules)}")
        for day, rules in says.items()
    }


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

"""Files of errors of version 0.2: terms over pairs of nodes and steps. Read by one version more."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from optstream.errors import PublicationError
from optstream.storage.parquet import Limits, decode_table
from optstream.stream.period import period_from

Floats = NDArray[np.float64]

FORMATS = ("optstream.errors/1", "optstream.errors/2")
KEY = b"optstream.errors"
SCHEMA = {
    "term": pl.Int32(),
    "node": pl.String(),
    "other_node": pl.String(),
    "step": pl.Int32(),
    "other_step": pl.Int32(),
    "earlier_date": pl.Date(),
    "value": pl.Float64(),
}
LIMITS = Limits(rows=2**26, columns=len(SCHEMA), group_rows=2**26, group_bytes=2**34)
MOST_ENTRIES = 2**26
"""Of the matrices of one day, which anyone may have written: 512 MiB."""


@dataclass(frozen=True, eq=False)
class OldErrors:
    """The terms of one period's error covariance.

    Attributes:
        period: The local day, or hour.
        of: "whole" or "noise".
        nodes: Names.
        steps: (n_terms, n_steps, n_steps), each pair on one side of the diagonal for both orders.
        earlier: (n_terms, n_days), of the days before, the nearest first.
        pairs: Rows of pairs of nodes: term, node, other (places in `nodes`), value.
        members: Rows of nodes in groups: term, group, node, value.
        added: (n_nodes, n_steps), values less the estimates that the errors are of.
    """

    period: date
    of: str
    nodes: tuple[str, ...]
    steps: Floats
    earlier: Floats
    pairs: pl.DataFrame
    members: pl.DataFrame
    added: Floats

    def variances(self, weights: Floats, chosen: Floats, days: Mapping[date, float]) -> Floats:
        """Return the variances of weighted sums over some steps, with the days before it in the sum.

        Args:
            weights: (n_sums, n_nodes).
            chosen: (n_steps,), 1 for a step of the sum, else 0.
            days: The share of the steps of each day of the sum.
        """
        of_nodes = np.zeros((len(weights), len(self.steps)))
        term, first, second, value = (self.pairs[name].to_numpy() for name in self.pairs.columns)
        np.add.at(of_nodes.T, term, (weights[:, first] * weights[:, second] * value).T)
        if self.members.height:
            term, group, node, value = (self.members[name].to_numpy() for name in self.members.columns)
            groups, place = np.unique(np.stack([term, group]), axis=1, return_inverse=True)
            sums = np.zeros((groups.shape[1], len(weights)))
            np.add.at(sums, place.ravel(), (weights[:, node] * value).T)
            np.add.at(of_nodes.T, groups[0], sums**2)
        of_steps = np.einsum("rst,s,t->r", self.steps, chosen, chosen)
        for lag in range(1, self.earlier.shape[1] + 1):
            share = days.get(self.period - timedelta(days=lag), 0.0) * chosen.mean()
            of_steps = of_steps + 2.0 * share * self.earlier[:, lag - 1]
        return np.asarray(of_nodes @ of_steps)


def decode_old_errors(data: bytes) -> OldErrors:
    """Return the contents of a file of errors, which anyone may have written. Raises PublicationError."""
    rows, metadata = decode_table(data, LIMITS, "a file of errors", SCHEMA)
    try:
        footer = json.loads(metadata[KEY])
        if footer["format"] not in FORMATS or rows.schema != SCHEMA:
            raise ValueError
        period, nodes, shape = period_from(footer["period"]), footer["nodes"], footer["shape"]
        return _found(rows, period, footer["of"], nodes, *shape)
    except (
        ValueError, ArithmeticError, LookupError, TypeError, MemoryError, RecursionError,
        pa.ArrowException, pl.exceptions.PolarsError,
    ) as error:  # fmt: skip
        raise PublicationError(
            f"these bytes are no file of errors of format {' or '.join(FORMATS)}"
        ) from error


def _found(
    rows: pl.DataFrame, period: date, of: str, nodes: list[Any], n_terms: int, n_steps: int, n_days: int
) -> OldErrors:
    """Return the terms of the rows. Raises ValueError or LookupError for rows that are of none."""
    entries = n_terms * (n_steps**2 + n_days) + len(nodes) * n_steps
    if min(n_terms, n_steps, n_days) < 0 or entries > MOST_ENTRIES:
        raise ValueError
    if rows["value"].null_count() or not rows["value"].is_finite().all():
        raise ValueError
    places = pl.DataFrame({"node": nodes, "at": np.arange(len(nodes))}, schema_overrides={"node": pl.String})
    if places["node"].n_unique() < len(nodes):
        raise ValueError
    others = places.rename({"node": "other_node", "at": "other"})
    found = rows.join(places, on="node", how="left", maintain_order="left")
    found = found.join(others, on="other_node", how="left", maintain_order="left")
    is_node, is_term = pl.col("node").is_not_null(), pl.col("term").is_not_null()
    if found.filter(is_node & pl.col("at").is_null()).height or (found["term"] >= n_terms).any():
        raise ValueError
    if min(found.select("term", "step", "other_step").fill_null(0).min().row(0)) < 0:
        raise ValueError
    steps, earlier = np.zeros((n_terms, n_steps, n_steps)), np.zeros((n_terms, n_days))
    added = np.zeros((len(nodes), n_steps))

    def columns(of_rows: pl.Expr, *names: str) -> list[NDArray[Any]]:
        part = found.filter(of_rows).select(*names, "value")
        if any(part[name].null_count() for name in part.columns):
            raise ValueError
        return [part[name].to_numpy() for name in part.columns]

    term, step, other, value = columns(
        is_term & ~is_node & pl.col("step").is_not_null(), "term", "step", "other_step"
    )
    steps[term, step, other] = value
    days = columns(is_term & pl.col("earlier_date").is_not_null(), "term", "earlier_date")
    lags = np.array([(period - day).days - 1 for day in days[1].astype("datetime64[D]").tolist()], dtype=int)
    if lags.min(initial=0) < 0:
        raise ValueError
    earlier[days[0], lags] = days[2]
    node, step, value = columns(~is_term, "at", "step")
    added[node, step] = value
    pairs = found.filter(is_term & is_node & pl.col("other").is_not_null())
    members = found.filter(is_term & is_node & pl.col("other_node").is_null())
    if found.filter(
        is_term & is_node & pl.col("other_node").is_not_null() & pl.col("other").is_null()
    ).height:
        raise ValueError
    return OldErrors(
        period, of, tuple(nodes), steps, earlier,
        pairs.select("term", "at", "other", "value"),
        members.select("term", "other_step", "at", "value").drop_nulls(), added,
    )  # fmt: skip

"""Measurements as rows, a noisy integer each: which sum of which node's readings it is, and its noise."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.errors import PublicationError
from optstream.measurement.linear import feature_stage
from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.hierarchical import Hierarchical
from optstream.privacy import JointSpend
from optstream.privacy.spends import spend_from_document
from optstream.stream import AggregationTree, BlockSums, Feature, FourierCoordinates

Document = dict[str, Any]
SCHEMA = {
    "level": pl.Int32(),
    "node": pl.String(),
    "kind": pl.String(),
    "feature": pl.String(),
    "number": pl.Int32(),
    "first_step": pl.Int32(),
    "n_steps": pl.Int32(),
    "value": pl.Int64(),
    "noise_variance": pl.Float64(),
    "joint": pl.Boolean(),
}
"""Columns of a file of measurements (docs/data/measurements.md)."""
SHAPE = "shape"
MOST_ENTRIES, ENTRIES_A_ROW = 2**20, 64
"""Of the arrays of one day, which anyone may have written: a number was drawn of each leaf, or of a level
above, so that few others stand beside it.
"""


@dataclass(frozen=True)
class _Query:
    """One array of noisy numbers: (n_nodes, n_columns). spans: for each column (first step, steps). joint:
    the levels whose noise was drawn jointly.
    """

    kind: str
    feature: str | None
    spans: Sequence[tuple[int, int]]
    values: NDArray[np.int64]
    variances: NDArray[np.float64]
    joint: frozenset[int]

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Where something was drawn: noise is finite."""
        return np.isfinite(self.variances)


def levels_of(mechanism: Mechanism) -> tuple[int, ...]:
    """Return the depths in the tree of the parts of a mechanism's measurements; (0,) without parts."""
    return tuple(level for level, _ in mechanism.levels) if isinstance(mechanism, Hierarchical) else (0,)


def rows_of(document: Document, mechanism: Mechanism) -> pl.DataFrame:
    """Return a row for each noisy integer that was drawn, of columns `SCHEMA`. Pure.

    Part after part, array after array, node after node, in the order of time. document: of one period, as
    `Measured.to_bytes` writes it. mechanism: what measured it, on a tree. Raises PublicationError where the
    measurements are not what that mechanism draws.
    """
    tree: AggregationTree = getattr(mechanism, "tree")  # noqa: B009
    frames = []
    for level, part in _leveled(document, levels_of(mechanism)):
        nodes = tree.levels[level] if document["parts"] else range(len(tree.nodes))
        for query in _queries(part, getattr(mechanism, "features", ())):
            if query.values.shape != (len(nodes), len(query.spans)):
                raise PublicationError(
                    "the stored measurements have other nodes or steps than the configured mechanism: "
                    "publish with the configuration of their draw, or without [published] measurements"
                )
            frames.append(_frame(query, tree, nodes))
    return pl.concat([pl.DataFrame(schema=SCHEMA), *frames])


def without_numbers(document: Document) -> Document:
    """Return the document with the shapes of its noisy numbers in their place, for `with_numbers`. Pure."""
    bare = {
        **document,
        "points": {SHAPE: list(np.shape(document["points"]))},
        "sums": [{SHAPE: list(np.shape(one))} for one in document["sums"]],
    }
    return bare | {"parts": [without_numbers(part) for part in document["parts"]]}


def with_numbers(document: Document, rows: pl.DataFrame) -> Document:
    """Return what `without_numbers` was given, with the numbers of `rows_of`; where nothing was drawn stands
    0.

    Raises ValueError where there are other numbers than the shapes have, or far more entries than numbers.
    """
    left = rows["value"].to_numpy()
    allowed = MOST_ENTRIES + ENTRIES_A_ROW * left.size

    def filled(shape: Sequence[int], variances: Any) -> list[Any]:
        nonlocal left, allowed
        allowed -= math.prod(shape)
        if min(shape) < 0 or allowed < 0:
            raise ValueError
        values = np.zeros(shape, dtype=np.int64)
        if values.size:
            drawn = np.isfinite(np.broadcast_to(_floats(variances), shape))
            count = int(drawn.sum())
            values[drawn] = left[:count]
            left = left[count:]
        nested: list[Any] = values.tolist()
        return nested

    def full(one: Document) -> Document:
        points = filled(one["points"][SHAPE], one["point_variances"])
        variances = one["sum_variances"] or [None] * len(one["sums"])
        sums = [filled(entry[SHAPE], known) for entry, known in zip(one["sums"], variances, strict=True)]
        return {**one, "points": points, "sums": sums, "parts": [full(part) for part in one["parts"]]}

    found = full(document)
    if left.size:
        raise ValueError
    return found


def _leveled(document: Document, levels: Sequence[int]) -> Iterator[tuple[int, Document]]:
    parts = document["parts"] or [document]
    if len(parts) != len(levels):
        raise PublicationError(
            "the stored measurements have other levels than the configured mechanism measures: publish with "
            "the configuration of their draw, or without [published] measurements"
        )
    return zip(levels, parts, strict=True)


def _queries(part: Document, features: Sequence[Feature]) -> Iterator[_Query]:
    spends = [spend_from_document(one) for one in part["spends"]]
    joint = [spend for spend in spends if isinstance(spend, JointSpend)]
    stages = {spend.stage for spend in spends}
    others = {BlockSums.stage, FourierCoordinates.stage, *(feature_stage(one) for one in features)}
    points = [(step, 1) for step in part["positions"]]
    if points:
        together = frozenset(spend.level for spend in joint if spend.stage not in others)
        yield _query("point", None, points, part["points"], part["point_variances"], together)
    variances = part["sum_variances"] or [None] * len(part["sums"])
    for place, (sums, known) in enumerate(zip(part["sums"], variances, strict=True)):
        feature: str | None = None
        stage: str | None
        if BlockSums.stage in stages:
            kind, stage = "block", BlockSums.stage
            spans = [(first, stop - first) for first, stop in part["choices"]["blocks"]]
        elif FourierCoordinates.stage in stages:
            kind, stage = "coordinate", FourierCoordinates.stage
            spans = [(0, part["n_steps"])] * (len(sums[0]) if sums else 0)
        else:
            kind, feature = "feature", features[place].name
            stage = feature_stage(features[place])
            spans = [(one.start, len(one)) for one in features[place].parts]
        together = frozenset(spend.level for spend in joint if spend.stage == stage)
        yield _query(kind, feature, spans, sums, known, together)


def _query(
    kind: str,
    feature: str | None,
    spans: Sequence[tuple[int, int]],
    values: Any,
    variances: Any,
    joint: frozenset[int],
) -> _Query:
    numbers = np.array(values, dtype=np.int64).reshape(len(values), len(spans))
    return _Query(kind, feature, spans, numbers, np.broadcast_to(_floats(variances), numbers.shape), joint)


def _floats(nested: Any) -> NDArray[np.float64]:
    """Return variances of a document, infinite where it has null."""
    given = np.array([[np.inf]] if nested is None else nested, dtype=np.float64)
    return np.where(np.isnan(given), np.inf, given)


def _frame(query: _Query, tree: AggregationTree, nodes: Sequence[int]) -> pl.DataFrame:
    node, column = np.nonzero(query.measured)
    spans = np.array(query.spans, dtype=np.int32).reshape(-1, 2)[column]
    depths = np.array([tree.depths[one] for one in nodes], dtype=np.int32)
    return pl.DataFrame(
        {
            "level": depths[node],
            "node": pl.Series([tree.nodes[one] for one in nodes], dtype=pl.String).gather(node),
            "kind": pl.repeat(query.kind, len(node), dtype=pl.String(), eager=True),
            "feature": pl.repeat(query.feature, len(node), dtype=pl.String(), eager=True),
            "number": column.astype(np.int32),
            "first_step": spans[:, 0],
            "n_steps": spans[:, 1],
            "value": query.values[query.measured],
            "noise_variance": query.variances[query.measured],
            "joint": np.isin(depths[node], sorted(query.joint)),
        },
        schema=SCHEMA,
    )

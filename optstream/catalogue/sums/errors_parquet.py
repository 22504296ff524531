"""How the errors of one day hang together, as the bytes of a Parquet file (docs/data/sums.md). Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from optstream.catalogue.statements.stated_files import ErrorsOf
from optstream.estimation.error_terms import ErrorTerms, PairedNodes
from optstream.estimation.many_leaves.group_terms import GroupedNodes

FORMAT = "optstream.errors/1"
GROUPED = "optstream.errors/2"
"""The same columns where nodes are in groups: a row of a node without another one is what it counts for in
the group of the number `other_step`."""
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
"""Columns of a file of errors."""
_KINDS = pa.string(), pa.int32(), pa.date32()
"""Of what the parts of a term are labelled with."""
ARROW = {
    pl.Int32(): pa.int32(),
    pl.Float64(): pa.float64(),
    pl.String(): pa.string(),
    pl.Date(): pa.date32(),
}


@dataclass(frozen=True, eq=False)
class DayErrors:
    """What a file of errors says.

    Attributes:
        period: The local day, or hour.
        of: Which errors it tells of.
        nodes: Names, in the terms' order.
        terms: How these errors hang together.
        added: (n_nodes, n_steps), what lower bound and rounding added to the estimate that the errors are of,
            in the unit of the values.
    """

    period: date
    of: ErrorsOf
    nodes: tuple[str, ...]
    terms: ErrorTerms
    added: NDArray[np.float64]

    def variances_of_sums(self, shared: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
        """Return the variance of each node's sum over all steps, (n_nodes,), in the squared unit of the
        values; free.

        shared: (n_terms,), what the sum shares with days before it that are in it too.
        """
        of_steps = self.terms.steps.sum(axis=(1, 2)) + shared
        return np.asarray(of_steps @ self.terms.of_each())

    def fits(self, rows: pl.DataFrame) -> bool:
        """Return whether it tells of all nodes and steps of a release, and of no others.

        A file that leaves some out would make sums look surer than they are.
        """
        n_steps = self.terms.steps.shape[1]
        return set(self.nodes) == set(rows["node"].unique()) and n_steps == rows["step"].n_unique()


def encode_errors(
    terms: ErrorTerms,
    nodes: Sequence[str],
    period: date,
    of: ErrorsOf,
    added: NDArray[np.float64] | None = None,
) -> bytes:
    """Return the Parquet file of a day's errors; the same arguments give the same bytes.

    nodes: names, in the terms' order. added: (n_nodes, n_steps), what lower bound and rounding added; None
    for nothing. Another pyarrow may encode differently.
    """
    assert not isinstance(terms.nodes, PairedNodes)  # which are read from a file, some of them
    first, second, of_nodes = _pairs_of_nodes(terms.nodes)
    at, other, of_steps = _pairs(terms.steps)
    days = [period - timedelta(days=lag) for lag in range(1, terms.earlier.shape[1] + 1)]
    n_terms, widths = len(terms.nodes), [first.size, at.size, len(days)]
    # values have the precision of float32: their last digits tell nothing, and zeros compress
    figures = np.concatenate([of_nodes, of_steps, terms.earlier], axis=1).astype(np.float32).ravel()
    kept = np.flatnonzero(figures)
    place, term = kept % sum(widths), kept // sum(widths)
    names, dates = np.array(nodes, dtype=object), np.array(days, dtype=object)
    numbers = np.arange(terms.steps.shape[1])
    columns = [
        pa.array(term, pa.int32()),
        _labels(names, first, 0, place, widths),
        _labels(names, second, 0, place, widths),
        _labels(numbers, at, 1, place, widths),
        _labels(numbers, other, 1, place, widths),
        _labels(dates, np.arange(len(days)), 2, place, widths),
        pa.array(figures[kept], pa.float64()),
    ]
    schema = pa.schema([pa.field(name, ARROW[kind]) for name, kind in SCHEMA.items()])
    rows = pa.table(columns, schema)
    if is_grouped := isinstance(terms.nodes, GroupedNodes):
        rows = pa.concat_tables([rows, _rows_of_groups(terms.nodes, names, schema)])
    if added is not None:
        rows = pa.concat_tables([rows, _added_rows(added, names, schema)])
    shape = [n_terms, terms.steps.shape[1], terms.earlier.shape[1]]
    kind = GROUPED if is_grouped else FORMAT
    footer = {"format": kind, "period": period.isoformat(), "of": of, "nodes": list(nodes), "shape": shape}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression="zstd",
        store_schema=False,
        use_dictionary=[name for name in SCHEMA if name != "value"],
        use_byte_stream_split=["value"],
    ) as writer:
        writer.write_table(rows, row_group_size=2**20)
        writer.add_key_value_metadata({KEY: json.dumps(footer, separators=(",", ":"))})
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _pairs(matrices: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return each pair once, the smaller first, and for both orders of it together (n_terms, n_pairs)."""
    first, second = np.triu_indices(matrices.shape[1])
    return first, second, matrices[:, first, second] * np.where(first == second, 1.0, 2.0)


def _pairs_of_nodes(
    nodes: NDArray[np.float64] | GroupedNodes,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return the pairs of nodes; of nodes in groups each one with itself, for what it counts alone."""
    if not isinstance(nodes, GroupedNodes):
        return _pairs(nodes)
    every = np.arange(nodes.alone.shape[1])
    return every, every, nodes.alone


def _added_rows(added: NDArray[np.float64], names: NDArray[Any], schema: pa.Schema) -> pa.Table:
    """Return the rows of what bound and rounding added: of no term, where that is not 0."""
    figures = added.astype(np.float32)
    node, step = np.nonzero(figures)
    known = {"node": names[node], "step": step, "value": figures[node, step].astype(np.float64)}
    nothing = [None] * node.size
    return pa.table({name: pa.array(known.get(name, nothing), schema.field(name).type) for name in SCHEMA})


def _rows_of_groups(nodes: GroupedNodes, names: NDArray[Any], schema: pa.Schema) -> pa.Table:
    """Return the rows of what nodes count for in groups."""
    entries = nodes.shares.tocoo()
    known = {
        "term": nodes.of[entries.row],
        "node": pa.array(names, pa.string()).take(pa.array(entries.col)),
        "other_step": entries.row,
        "value": entries.data.astype(np.float32).astype(np.float64),
    }
    nothing = pa.nulls(entries.data.size)
    columns = [pa.array(known[one.name]) if one.name in known else nothing for one in schema]
    return pa.table([column.cast(one.type) for column, one in zip(columns, schema, strict=True)], schema)


def _labels(
    names: NDArray[Any], labels: NDArray[np.int64], part: int, place: NDArray[np.int64], widths: Sequence[int]
) -> pa.Array:
    """Return what each row's figure is of, null where it stands in another part of its term.

    names: what the labels number. place: of each row in its term.
    """
    at = place - sum(widths[:part])
    own = (at >= 0) & (at < widths[part])
    numbers = np.zeros(place.size, dtype=np.int64)
    numbers[own] = labels[at[own]]
    # not as Python's own values: for 270 nodes there are hundreds of thousands, in each estimate of a night
    return pa.array(names, _KINDS[part]).take(pa.array(numbers, mask=~own))

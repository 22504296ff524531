"""How the errors of one day hang together, as the bytes of a Parquet file (docs/data/sums.md). Pure."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, get_args

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from optstream.catalogue.statements.stated_files import ErrorsOf
from optstream.errors import PublicationError
from optstream.estimation.error_terms import ErrorTerms, PairedNodes
from optstream.estimation.many_leaves.group_terms import GroupedNodes
from optstream.storage.parquet_limits import Limits
from optstream.storage.parquet_table import read_table
from optstream.stream.period import day_of, period_from

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
LIMITS = Limits(rows=2**26, columns=len(SCHEMA), group_rows=2**26, group_bytes=2**34)
_KINDS = pa.string(), pa.int32(), pa.date32()
"""Of what the parts of a term are labelled with."""
_ARROW = {
    pl.Int32(): pa.int32(),
    pl.Float64(): pa.float64(),
    pl.String(): pa.string(),
    pl.Date(): pa.date32(),
}


MOST_ENTRIES = 2**26
"""Of the matrices of one day, which anyone may have written: 512 MiB."""


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
    schema = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in SCHEMA.items()])
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


def decode_errors(data: bytes, among: Collection[str] | None = None) -> DayErrors:
    """Return what a file of errors says, which anyone may have written.

    among: nodes of which sums over several are asked: pairs of two others are left out, which are most of a
    file of many nodes. None for all pairs.

    Raises PublicationError for what is no such file, or claims more than `LIMITS`.
    """
    table, metadata = read_table(data, LIMITS, "a file of errors", SCHEMA)
    try:
        footer = json.loads(metadata[KEY])
        if footer["format"] not in (FORMAT, GROUPED) or footer["of"] not in get_args(ErrorsOf):
            raise ValueError
        period, nodes = period_from(footer["period"]), tuple(footer["nodes"])
        rows = _numbers_of(table, period, nodes)
        is_asked = np.array([among is None or name in among for name in nodes], dtype=bool)
        terms = _terms(rows, footer["format"] == GROUPED, is_asked, *footer["shape"])
        return DayErrors(period, footer["of"], nodes, terms, _added(rows, len(nodes), terms.steps.shape[1]))
    except (
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
        MemoryError,
        pa.ArrowException,
        RecursionError,
    ) as error:
        raise PublicationError(
            f"these bytes are no file of errors of format {FORMAT} or {GROUPED}"
        ) from error


def _numbers_of(table: pa.Table, period: date, nodes: tuple[str, ...]) -> Mapping[str, NDArray[Any]]:
    """Return the columns as numbers: a node as its place, a day as how many lie between it and the period's;
    -1 where there is none. Raises ValueError or LookupError for what has no place.
    """
    places = {name: place for place, name in enumerate(nodes)}
    if len(places) < len(nodes):
        raise ValueError
    found = {}
    for name, kind in SCHEMA.items():
        column = table[name]
        if column.type not in (_ARROW[kind], pa.dictionary(pa.int32(), _ARROW[kind])):
            raise ValueError
        if name == "value":
            found[name] = column.to_numpy()
            continue
        if kind == pl.String():
            # of each part its own names: a row group has a dictionary of its own
            column = pa.chunked_array(
                [
                    pa.array([places[text] for text in one.dictionary.to_pylist()], pa.int32()).take(
                        one.indices
                    )
                    for one in column.chunks
                ],
                pa.int32(),
            )
        if kind == pl.Date():
            newest = (day_of(period) - date(1970, 1, 2)).days
            column = pc.subtract(pa.scalar(newest, pa.int32()), column.cast(pa.int32()))
        if (pc.min(column).as_py() or 0) < 0:
            raise ValueError  # numpy would count from the end
        found[name] = column.fill_null(-1).to_numpy()
    return found


def _terms(
    rows: Mapping[str, NDArray[Any]],
    is_grouped: bool,
    is_asked: NDArray[np.bool_],
    n_terms: int,
    n_steps: int,
    n_earlier: int,
) -> ErrorTerms:
    """Return the terms that the rows are of. Raises ValueError or LookupError for rows that are of none.

    is_asked: (n_nodes,), of which nodes pairs of two different ones are kept.
    """
    # what was added has an entry for each node and step, also where there is no term
    n_nodes, n_times = is_asked.size, n_steps + n_earlier
    terms = n_terms * (n_nodes + n_times**2 if is_grouped else (n_nodes + n_times) ** 2)
    if min(n_terms, n_steps, n_earlier) < 0 or max(terms, n_nodes * n_steps) > MOST_ENTRIES:
        raise ValueError
    if rows["term"].max(initial=-1) >= n_terms:
        raise ValueError
    is_term = rows["term"] >= 0
    if not np.isfinite(rows["value"][is_term]).all():
        raise ValueError
    of_steps, earlier = np.zeros((n_terms, n_steps, n_steps)), np.zeros((n_terms, n_earlier))
    term, step, other, value = _chosen(rows, is_term & (rows["step"] >= 0), "step", "other_step")
    if other.min(initial=0) < 0:
        raise ValueError
    of_steps[term, step, other] = value
    term, lag, value = _chosen(rows, is_term & (rows["earlier_date"] >= 0), "earlier_date")
    earlier[term, lag] = value
    is_node = is_term & (rows["node"] >= 0)
    of_nodes = (
        _grouped(rows, is_node, n_terms, n_nodes) if is_grouped else _paired(rows, is_node, n_terms, is_asked)
    )
    return ErrorTerms(of_nodes, _symmetric(of_steps), earlier)


def _chosen(rows: Mapping[str, NDArray[Any]], kept: NDArray[np.bool_], *names: str) -> list[NDArray[Any]]:
    """Return the term of some rows, some other columns, and the value."""
    at = np.flatnonzero(kept)
    return [rows[name][at] for name in ("term", *names, "value")]


def _paired(
    rows: Mapping[str, NDArray[Any]], is_node: NDArray[np.bool_], n_terms: int, is_asked: NDArray[np.bool_]
) -> PairedNodes:
    """Return what the terms say of pairs of nodes. Raises ValueError."""
    node, other = rows["node"], rows["other_node"]
    if (is_node & (other < 0)).any():
        raise ValueError
    if not is_asked.all():
        is_node = is_node & ((node == other) | (is_asked[node] & is_asked[other]))
    return PairedNodes((n_terms, is_asked.size), *_chosen(rows, is_node, "node", "other_node"))


def _grouped(
    rows: Mapping[str, NDArray[Any]], is_node: NDArray[np.bool_], n_terms: int, n_nodes: int
) -> GroupedNodes:
    """Return what the terms say of nodes alone and in groups. Raises ValueError."""
    from scipy.sparse import csr_array  # which a command's help does not wait for

    is_alone = is_node & (rows["other_node"] >= 0)
    term, node, other, value = _chosen(rows, is_alone, "node", "other_node")
    shared, member, number, share = _chosen(rows, is_node & ~is_alone, "node", "other_step")
    if (node != other).any() or number.min(initial=0) < 0:
        raise ValueError
    alone = np.zeros((n_terms, n_nodes))
    alone[term, node] = value
    groups, rows_of = np.unique(shared.astype(np.int64) * 2**32 + number, return_inverse=True)
    shares = csr_array((share, (rows_of, member)), shape=(groups.size, n_nodes))
    found = GroupedNodes(alone, shares, groups >> 32)
    if not np.isfinite(found.of_each()).all():
        raise ValueError
    return found


def _added(rows: Mapping[str, NDArray[Any]], n_nodes: int, n_steps: int) -> NDArray[np.float64]:
    """Return what bound and rounding added, of the rows without a term. Raises ValueError or LookupError."""
    _, node, step, value = _chosen(rows, rows["term"] < 0, "node", "step")
    if min(node.min(initial=0), step.min(initial=0)) < 0 or not np.isfinite(value).all():
        raise ValueError
    found = np.zeros((n_nodes, n_steps))
    found[node, step] = value
    return found


def _symmetric(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 * (pairs + pairs.transpose(0, 2, 1)))


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

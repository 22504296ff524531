"""What a file of errors says (docs/data/sums.md), which anyone may have written. Pure."""

import json
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any, get_args

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optstream.catalogue.statements.stated_files import ErrorsOf
from optstream.catalogue.sums.errors_parquet import ARROW, FORMAT, GROUPED, KEY, SCHEMA, DayErrors
from optstream.errors import PublicationError
from optstream.estimation.error_terms import ErrorTerms, PairedNodes
from optstream.estimation.many_leaves.group_terms import GroupedNodes
from optstream.storage.parquet_limits import Limits
from optstream.storage.parquet_table import read_table
from optstream.stream.period import day_of, period_from

LIMITS = Limits(rows=2**26, columns=len(SCHEMA), group_rows=2**26, group_bytes=2**34)
MOST_ENTRIES = 2**26
"""Of the matrices of one day, which anyone may have written: 512 MiB."""


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
        asked = set(nodes if among is None else among)
        is_asked = np.array([name in asked for name in nodes], dtype=bool)
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
        if column.type not in (ARROW[kind], pa.dictionary(pa.int32(), ARROW[kind])):
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

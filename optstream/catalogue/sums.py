"""Sums of published values over nodes and days, with standard errors from the files of errors beside them."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby
from math import isfinite
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.layout import LARGEST_ERRORS, SUPERSEDED_ERRORS, errors_file, folder_of
from optstream.catalogue.read import catalogue_reader, read_beside, read_rows, read_statement
from optstream.catalogue.rows import error_columns
from optstream.catalogue.signing import GivenKeys
from optstream.catalogue.statement import ErrorsOf, ReleaseStatement
from optstream.errors import ParameterError, PublicationError
from optstream.estimation import SumOfValues
from optstream.estimation.error_terms import ErrorTerms, PairedNodes
from optstream.estimation.groups import GroupedNodes
from optstream.storage.parquet import Limits, read_table
from optstream.storage.store import Location
from optstream.stream import Calendar
from optstream.stream.period import Hour, day_of, period_from
from optstream.stream.tree import several

# How the errors of one day hang together, as the bytes of a Parquet file (docs/data/sums.md). Pure.

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


# What a file of errors says (docs/data/sums.md), which anyone may have written. Pure.

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


Floats = NDArray[np.float64]


def read_sum(
    folder: Location | str,
    nodes: Collection[str] | Mapping[str, float],
    first: date,
    last: date,
    steps: Collection[int] | None = None,
    public_key: GivenKeys | None = None,
) -> SumOfValues:
    """Return the sum of published values of some nodes over some days, with its standard errors.

    How errors hang together is in the files of errors beside the releases (docs/data/sums.md): within a day
    to a part in ten thousand; over days for whole days, and for some steps of each as if what days share were
    spread evenly over their steps. Days that no estimate looked at together are taken for independent.

    Args:
        folder: A path, or the URL of a folder in an object store.
        nodes: Their names, none within another; or weights by names, of any nodes: {"11": 1, "84": -1} for a
            difference.
        first: The first local day.
        last: The last local day; each from the first on must be published.
        steps: Of each day, from 0; None for all.
        public_key: The publisher's, as for `read_published`.

    Returns:
        In the unit of the values times steps; errors as far as every day knows them.

    Raises:
        ParameterError: A day of the span is not published, a node is not there or lies in another one, or a
            day has not the steps; for a URL or key that cannot be one.
        PublicationError: As for `read_published`, and where a file of errors is missing or altered.
    """
    several(nodes)
    for day, name in ((first, "first"), (last, "last")):
        if not isinstance(day, date):
            raise ParameterError(f"{name} of a sum must be a day such as date(2016, 2, 1); got {day!r:.80}")
    if last < first:
        raise ParameterError(f"the last day of a sum, {last}, is before the first, {first}")
    storage = open_storage(folder)
    catalogue = catalogue_reader(storage, public_key)()
    listed = {entry.period: entry for entry in catalogue.listed}
    asked = _calendar_of(storage, listed).periods(first, last)
    entries = [listed[one] for one in asked if one in listed]
    if not asked or len(entries) < len(asked):
        of_days = (
            f"; {len(entries)} of their {len(asked)} hours"
            if listed and isinstance(next(iter(listed)), Hour)
            else f"; {len(entries)} of them"
        )
        raise ParameterError(f"a sum over days needs every day from {first} to {last}{of_days} are published")
    verify = public_key is not None
    days = [read_day(storage, catalogue, entry, nodes, verify=verify) for entry in entries]
    return sum_of_days(days, nodes, steps)


def _calendar_of(storage: Storage, listed: Mapping[date, Entry]) -> Calendar:
    """Return the calendar of what is published: of hours as the newest release states it."""
    if not listed or not isinstance(max(listed), Hour):
        return Calendar(60, "UTC")
    stated = read_statement(storage, listed[max(listed)])
    return Calendar(stated.step_minutes, stated.time_zone, stated.day, "hour")


@dataclass(frozen=True, eq=False)
class SummedDay:
    """A published day or hour, as sums need it.

    Attributes:
        period: The local day, or hour.
        nodes: Names.
        parents: {node: the node above it}, None at the root.
        margin: Nodes of a margin: they are on a level more than one below that of the node above them.
        values: (n_nodes, n_steps), in the unit of the values; 0 in a slot that the day has not.
        errors: How its errors hang together; None where that is not published.
        noise_is_all: Whether the whole errors are those of the noise.
        first_step: Number of its first step within the day.
    """

    period: date
    nodes: tuple[str, ...]
    parents: Mapping[str, str | None]
    values: Floats
    errors: DayErrors | None
    noise_is_all: bool
    first_step: int = 0
    margin: frozenset[str] = frozenset()

    def weights(self, nodes: Mapping[str, float]) -> Floats:
        """Return the weight of each node, (n_nodes,). Raises ParameterError for a name that is not there."""
        if unknown := [name for name in nodes if name not in self.parents]:
            raise ParameterError(f"{self.period} has no node {unknown[0]!r:.80}; names are as in the files")
        return np.array([float(nodes.get(name, 0.0)) for name in self.nodes])

    def chosen(self, steps: Collection[int] | None) -> Floats:
        """Return which steps of the day are summed, (n_steps,): 1, else 0. steps: from 0; None for all."""
        own = np.arange(self.values.shape[1]) + self.first_step
        return (np.ones(own.size) if steps is None else np.isin(own, [*steps])).astype(np.float64)

    def above(self, node: str) -> Iterator[str]:
        """Yield the nodes that one lies in, the nearest first."""
        found = self.parents.get(node)
        while found is not None:
            yield found
            found = self.parents.get(found)

    @property
    def added(self) -> Floats:
        """What lower bound and rounding added to the estimates, (n_nodes, n_steps)."""
        assert self.errors is not None
        places = {name: place for place, name in enumerate(self.errors.nodes)}
        return self.errors.added[[places[name] for name in self.nodes]]


def read_day(
    storage: Storage, catalogue: Catalogue, entry: Entry, among: Collection[str], *, verify: bool
) -> SummedDay:
    """Return a listed day, not withdrawn, for sums over some nodes.

    verify: whether to compare the hash of its file; that of the file of errors is compared in any case.
    Raises PublicationError where a file is missing, altered, or of another day.
    """
    rows = read_rows(storage, catalogue, entry, verify)
    errors = read_errors(storage, entry, read_statement(storage, entry), rows, among)
    labels = rows.select("node", "parent", "level").unique("node", maintain_order=True)
    nodes = tuple(labels["node"])
    figures = rows.sort(pl.col("node").cast(pl.Enum(nodes)), "step")
    values = figures[catalogue.value_column].to_numpy().reshape(len(nodes), -1)
    noise, _ = error_columns(catalogue.value_column)
    known = noise in rows.columns and bool(rows[noise].is_not_null().any())
    parents = dict(zip(nodes, labels["parent"], strict=True))
    levels = dict(zip(nodes, labels["level"], strict=True))
    margin = frozenset(node for node, up in parents.items() if up and levels[node] > levels[up] + 1)
    begins = int(rows["step"].to_numpy().min())
    return SummedDay(entry.period, nodes, parents, np.nan_to_num(values), errors, known, begins, margin)


def read_errors(
    storage: Storage,
    entry: Entry,
    stated: ReleaseStatement,
    rows: pl.DataFrame | None = None,
    among: Collection[str] = (),
) -> DayErrors | None:
    """Return how the errors of a listed day hang together; None where there is no file of errors.

    The file's hash is compared; it is found also where a newer release has replaced it meanwhile. rows: of
    the release, all of them; None where who asks takes what nodes and steps the file tells of. among: as for
    `decode_errors`; by default each node is asked for by itself. Raises PublicationError where the file is
    missing, altered, or of another day, or of other nodes or steps.
    """
    if stated.errors is None:
        return None
    digest = stated.errors.file_hash
    name = errors_file(entry.period, entry.revision, entry.vintage, digest)
    try:
        data = read_beside(storage, entry.period, name, digest, LARGEST_ERRORS)
    except PublicationError:
        replaced = f"{folder_of(SUPERSEDED_ERRORS, entry.period)}/{name.rpartition('/')[2]}"
        if not storage.is_file(replaced):
            raise
        data = read_beside(storage, entry.period, replaced, digest, LARGEST_ERRORS)
    found = decode_errors(data, among)
    if (found.period, found.of) != (entry.period, stated.errors.of):
        raise PublicationError(f"{name} tells of another release; restore it")
    if rows is not None and not found.fits(rows):
        raise PublicationError(f"{name} tells of other nodes or steps than {entry.file}; restore it")
    return found


def errors_of_days(storage: Storage, catalogue: Catalogue, days: Iterable[date]) -> Iterator[DayErrors]:
    """Yield how the errors of some listed days hang together, rising, of those that have a file of errors.

    Raises PublicationError as `read_errors`.
    """
    asked = set(days)
    for entry in catalogue.listed:
        if day_of(entry.period) in asked:
            found = read_errors(storage, entry, read_statement(storage, entry))
            if found is not None:
                yield found


def sum_of_days(
    days: Sequence[SummedDay],
    nodes: Collection[str] | Mapping[str, float],
    steps: Collection[int] | None = None,
) -> SumOfValues:
    """Return the sum over some days, rising, of nodes and steps as for `read_sum`. Pure; free.

    Raises ParameterError where a node is not there or lies in another one, or a day has not the steps.
    """
    weights = nodes if isinstance(nodes, Mapping) else dict.fromkeys(nodes, 1.0)
    if not weights:
        raise ParameterError("a sum must be of at least one node")
    if bad := [
        name for name, one in weights.items() if not (isinstance(one, Real | Decimal) and isfinite(one))
    ]:
        raise ParameterError(f"the weight of {bad[0]!r:.80} in a sum must be a finite number")
    if not isinstance(nodes, Mapping):
        _check_apart(days[-1], weights)
    _check_steps(days, steps)
    chosen = [(day.weights(weights), day.chosen(steps)) for day in days]
    value = sum(float(w @ day.values @ t) for day, (w, t) in zip(days, chosen, strict=True))
    if any(day.errors is None for day in days):
        return SumOfValues(value, None, None, value)
    estimate = value - sum(float(w @ day.added @ t) for day, (w, t) in zip(days, chosen, strict=True))
    error = float(np.sqrt(max(_variance(days, chosen), 0.0)))
    of_noise = [day.errors.of == "noise" for day in days if day.errors]
    is_noise = all(one or day.noise_is_all for one, day in zip(of_noise, days, strict=True))
    return SumOfValues(value, None if any(of_noise) else error, error if is_noise else None, estimate)


def _check_steps(days: Sequence[SummedDay], steps: Collection[int] | None) -> None:
    """Raise ParameterError for steps that a day has not, that are no integers, or none."""
    if steps is None:
        return
    if bad := [step for step in steps if not isinstance(step, Integral)]:
        raise ParameterError(f"steps of a sum must be integers, counted from 0; got {bad[0]!r:.80}")
    for day, own in groupby(days, key=lambda one: day_of(one.period)):
        n_steps = sum(one.values.shape[1] for one in own)
        if not (len(steps) and min(steps) >= 0 and max(steps) < n_steps):
            raise ParameterError(f"steps of a sum must be at least one, from 0 to {n_steps - 1} on {day}")


def _variance(days: Sequence[SummedDay], chosen: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the variance of the sum of the days' errors."""
    shares = {day.period: steps.mean() for day, (_, steps) in zip(days, chosen, strict=True)}
    found = 0.0
    for day, (weights, steps) in zip(days, chosen, strict=True):
        assert day.errors is not None
        terms, places = day.errors.terms, {name: place for place, name in enumerate(day.nodes)}
        if isinstance(terms.nodes, GroupedNodes):
            weights = _apart(day, weights)
        of_nodes = terms.of_sum(weights[[places[name] for name in day.errors.nodes]])
        found += float(of_nodes @ np.einsum("rst,s,t->r", terms.steps, steps, steps, optimize=True))
        for lag in range(1, terms.earlier.shape[1] + 1):
            share = shares.get(day.period - timedelta(days=lag), 0.0) * shares[day.period]
            found += 2.0 * share * float(of_nodes @ terms.earlier[:, lag - 1])
    return found


def _apart(day: SummedDay, weights: Floats) -> Floats:
    """Return weights of nodes of which none lies in another, for the same sum: in the place of a node that
    others of the sum lie in those right below it, and so on.
    """
    own = dict(zip(day.nodes, weights, strict=True))
    over = {above for name in own if own[name] for above in day.above(name)}
    for name in sorted(own, key=lambda one: len([*day.above(one)])):  # from the root on
        above = day.parents.get(name)
        if above is not None and above in over:
            own[name] += own[above]
    return np.array([0.0 if name in over else weight for name, weight in own.items()])


def _check_apart(day: SummedDay, nodes: Iterable[str]) -> None:
    """Raise ParameterError for a node that lies in another of them, or is named twice."""
    named = set(nodes)
    beside = sorted(named & day.margin)
    if beside and len(beside) < len(named):
        raise ParameterError(
            f"nodes of a sum: {beside[0]!r:.80} is of the margin, and others are not: they may share cells; "
            "take nodes of the margin alone, or none of them"
        )
    for name in named:
        for above in day.above(name):
            if above in named:
                raise ParameterError(
                    f"nodes of a sum: {name!r:.80} lies in {above!r:.80}; none may lie in another"
                )


# Sums of published values over days, weeks and months, each node's with its standard errors.

Period = Literal["day", "week", "month"]
"""Local days, weeks from Monday on, months."""
_BEGINS = {"day": "1d", "week": "1w", "month": "1mo"}
_SCHEMA = pl.Schema(
    {
        "date": pl.Date(),
        "node": pl.String(),
        "whole": pl.Float64(),
        "noise": pl.Float64(),
        "added": pl.Float64(),
        "told": pl.Int64(),
        "of_whole": pl.Int64(),
        "of_noise": pl.Int64(),
    }
)


def period_sums(rows: pl.DataFrame, value: str, period: Period, errors: Iterable[DayErrors]) -> pl.DataFrame:
    """Return a row for each period and node, with the sum of its published days and how sure that is. Pure.

    rows: as `rows_of` returns them. value: name of the published values. errors: of the days, as far as they
    are published, rising; each is let go before the next is taken.

    Returns columns date (the first published day of the period), last_date, node, parent, level, days (how
    many of the period's are there), steps, the value's `_sum` and `_mean`, `_sum_estimate`, `_sum_noise_se`
    and `_sum_se` (null where a day has no file of such errors), revision and vintage (the highest); sorted by
    date and node.
    """
    begins = pl.col("date").dt.truncate(_BEGINS[period]).alias("begins")
    summed = rows.group_by(begins, "node").agg(
        pl.col("date").min(),
        pl.col("date").max().alias("last_date"),
        pl.col("parent", "level").last(),
        pl.col("date").n_unique().cast(pl.Int64).alias("days"),
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col(value).sum().alias(f"{value}_sum"),
        pl.col(value).mean().alias(f"{value}_mean"),
        pl.col("revision", "vintage").max(),
    )
    known = (
        _variances(rows, value, period, errors)
        .group_by(begins, "node")
        .agg(pl.col("whole", "noise", "added", "told", "of_whole", "of_noise").sum())
    )
    noise, whole = (f"{value}_sum{column.removeprefix(value)}" for column in error_columns(value))
    estimate = f"{value}_sum_estimate"
    found = summed.join(known, on=["begins", "node"], how="left").with_columns(
        pl.when(pl.col("told") == pl.col("steps"))
        .then(pl.col(f"{value}_sum") - pl.col("added"))
        .alias(estimate),
        *(
            pl.when(pl.col(f"of_{of}") == pl.col("steps")).then(pl.max_horizontal(of, 0.0).sqrt()).alias(name)
            for of, name in (("noise", noise), ("whole", whole))
        ),
    )
    labels = [
        "date",
        "last_date",
        "node",
        "parent",
        "level",
        "days",
        "steps",
        f"{value}_sum",
        f"{value}_mean",
    ]
    return found.select(*labels, estimate, noise, whole, "revision", "vintage").sort("date", "node")


def _variances(rows: pl.DataFrame, value: str, period: Period, errors: Iterable[DayErrors]) -> pl.DataFrame:
    """Return what each day of a node adds to the variance of its period, with the days before it that are in
    the same one: of the whole error and of the noise, and of how many steps these are known.
    """
    noise, _ = error_columns(value)
    of_noise = rows.filter(pl.col(noise).is_not_null()) if noise in rows.columns else rows.clear()
    noise_known, days = set(of_noise["date"].unique()), set(rows["date"].unique())
    unknown = rows.join(of_noise, on=["date", "step", "node"], how="anti")["date"].unique()
    known_throughout = noise_known - set(unknown)
    frames = [pl.DataFrame(schema=_SCHEMA)]
    for one in errors:
        terms = one.terms
        shared = np.zeros(len(terms.nodes))
        for lag in range(1, terms.earlier.shape[1] + 1):
            before = one.period - timedelta(days=lag)
            if before in days and _begin(before, period) == _begin(one.period, period):
                shared += 2.0 * terms.earlier[:, lag - 1]
        variances = one.variances_of_sums(shared)
        day, n_steps = day_of(one.period), terms.steps.shape[1]
        whole = one.of == "whole"
        # of some hours of a day the noise may be known alone
        known = known_throughout if isinstance(one.period, Hour) else noise_known
        is_noise = one.of == "noise" or day in known
        counts = {"told": n_steps, "of_whole": whole * n_steps, "of_noise": is_noise * n_steps}
        found = {"date": day, **counts}
        labels = {name: pl.lit(value) for name, value in found.items()}
        figures = {"whole": variances * whole, "noise": variances * is_noise, "added": one.added.sum(axis=1)}
        frame = pl.DataFrame({"node": one.nodes, **figures})
        frames.append(frame.with_columns(**labels).cast(_SCHEMA).select(*_SCHEMA))
    return pl.concat(frames)


def _begin(day: date, period: Period) -> date:
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day

"""Sums of published values over nodes and days, with standard errors from the files of errors beside them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby
from math import isfinite
from numbers import Integral, Real

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue.backends import Location, Storage, open_storage
from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.layout import LARGEST_ERRORS, SUPERSEDED_ERRORS, errors_file, folder_of
from optstream.catalogue.reading.columns import read_statement
from optstream.catalogue.reading.read import catalogue_reader, read_beside, read_rows
from optstream.catalogue.signing import GivenKeys
from optstream.catalogue.statements.standard_errors import error_columns
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.catalogue.sums.decode_errors import decode_errors
from optstream.catalogue.sums.errors_parquet import DayErrors
from optstream.errors import ParameterError, PublicationError
from optstream.estimation import SumOfValues
from optstream.estimation.many_leaves.group_terms import GroupedNodes
from optstream.stream import Calendar
from optstream.stream.aggregation_tree import several
from optstream.stream.period import Hour, day_of

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

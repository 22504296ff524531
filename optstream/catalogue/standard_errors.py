"""Standard errors of any figure of published values, from the replicates published with them."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby
from math import isfinite, sqrt
from numbers import Integral, Real
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.documents import as_written
from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.layout import SUPERSEDED_ERRORS, errors_file, folder_of
from optstream.catalogue.read import catalogue_reader, read_attachment, read_release, read_statement
from optstream.catalogue.rows import (
    ESTIMATE,
    REPLICATE,
    columns_of_replicates,
    error_columns,
    estimate_column,
)
from optstream.catalogue.signing import GivenKeys
from optstream.catalogue.statement import ErrorsOf, ReleaseStatement
from optstream.errors import ParameterError, PublicationError
from optstream.estimation import SumOfValues
from optstream.storage.parquet import Limits, decode_table, encode_table
from optstream.storage.store import Location
from optstream.stream import Calendar
from optstream.stream.period import Hour, day_of, period_from
from optstream.stream.tree import several

Floats = NDArray[np.float64]

# The file: the rows of the release, with an estimate and its replicates in place of the value.

FORMAT = "optstream.replicates/1"
KEY = b"optstream.replicates"
MOST_REPLICATES = 1000
ROUNDED = 0.01  # of an error: the most that float32 may round off
LIMITS = Limits(rows=2**26, columns=3 + MOST_REPLICATES, group_rows=2**26, group_bytes=2**34)


@dataclass(frozen=True, eq=False)
class Replicates:
    """A file of replicates, rows sorted as the release: they err as the values, or by noise alone (`of`)."""

    period: date
    of: ErrorsOf
    rows: pl.DataFrame

    @classmethod
    def labelled(
        cls,
        period: date,
        of: ErrorsOf,
        nodes: Sequence[str],
        estimate: Floats,
        replicates: Floats,
        first_step: int = 0,
    ) -> "Replicates":
        """Return the rows of an estimate, (n_nodes, n_steps), and its replicates, (R, n_nodes, n_steps)."""
        order, n_steps = pl.Series(nodes).arg_sort().to_numpy(), estimate.shape[1]
        spread, rounding = replicates.std(axis=0), np.finfo(np.float32).eps * np.abs(estimate)
        kind = np.float32 if ((rounding <= ROUNDED * spread) | (spread == 0)).all() else np.float64
        labels = {
            "step": np.repeat(np.arange(first_step, first_step + n_steps, dtype=np.int32), len(nodes)),
            "node": pl.Series(nodes).gather(np.tile(order, n_steps)),
        }
        drawn = enumerate(replicates.astype(kind), 1)
        figures = {ESTIMATE: estimate} | {f"{REPLICATE}{at}": one for at, one in drawn}
        columns = labels | {name: one[order].T.ravel() for name, one in figures.items()}
        return cls(period, of, pl.DataFrame(columns))


def replicate_columns(frame: pl.DataFrame) -> list[str]:
    """Return the names of the frame's replicates, in order."""
    return [name for name in frame.columns if name.startswith(REPLICATE)]


def encode_replicates(found: Replicates) -> bytes:
    """Return the Parquet file of replicates; one version of pyarrow gives equal arguments equal bytes."""
    footer = {"format": FORMAT, "period": found.period.isoformat(), "of": found.of}
    return encode_table(
        found.rows,
        {KEY: json.dumps(footer, separators=(",", ":")).encode()},
        compression="lz4",  # many small columns are read in half the time of zstd's, in a fortieth more bytes
        use_dictionary=["step", "node"],
        use_byte_stream_split=[ESTIMATE, *replicate_columns(found.rows)],
    )


def decode_replicates(data: bytes) -> Replicates:
    """Return the contents of a file of replicates; PublicationError for another, or one beyond `LIMITS`."""
    rows, metadata = decode_table(data, LIMITS, "a file of replicates")
    with as_written(f"these bytes are no file of replicates of format {FORMAT}"):
        footer = json.loads(metadata[KEY])
        wanted = {one.name: one.type for one in columns_of_replicates(rows.width - 3)}
        if pl.Float32 not in rows.dtypes:
            wanted = {name: pl.Float64() if kind == pl.Float32 else kind for name, kind in wanted.items()}
        if footer["format"] != FORMAT or footer["of"] not in get_args(ErrorsOf) or rows.schema != wanted:
            raise ValueError
        if not (replicate_columns(rows) and np.isfinite(rows[rows.columns[2:]].to_numpy()).all()):
            raise ValueError
        return Replicates(period_from(footer["period"]), footer["of"], rows)


# Files of errors of version 0.2, which are only read: terms of a covariance, and values less estimates.

OLD_FORMATS = ("optstream.errors/1", "optstream.errors/2")
OLD_KEY = b"optstream.errors"
OLD_SCHEMA = {
    "term": pl.Int32(),
    "node": pl.String(),
    "other_node": pl.String(),
    "step": pl.Int32(),
    "other_step": pl.Int32(),
    "earlier_date": pl.Date(),
    "value": pl.Float64(),
}
OLD_LIMITS = Limits(rows=2**26, columns=len(OLD_SCHEMA), group_rows=2**26, group_bytes=2**34)


@dataclass(frozen=True, eq=False)
class OldErrors:
    """A file of errors: a covariance is a sum over terms, each of nodes times of steps.

    A row has a pair of nodes, a node of a group (its number in other_step), a pair of steps, or an earlier
    day; without a term the value less the estimate of a node at a step."""

    period: date
    of: ErrorsOf
    nodes: frozenset[str]
    n_steps: int
    rows: pl.DataFrame

    @property
    def in_groups(self) -> pl.DataFrame:
        """The rows of nodes in groups."""
        is_member = pl.all_horizontal(pl.col("term", "node").is_not_null()) & pl.col("other_node").is_null()
        return self.rows.filter(is_member)

    def variance(
        self, weights: Mapping[str, float], steps: Collection[int], shares: Mapping[date, float]
    ) -> float:
        """Return the period's part of the variance of a weighted sum of nodes over some of its steps; shares:
        which part of the steps of this and each earlier day is in the sum."""
        weight, other_weight = (
            pl.col(name).replace_strict(dict(weights), default=0.0, return_dtype=pl.Float64)
            for name in ("node", "other_node")
        )
        terms = self.rows.filter(pl.col("term").is_not_null())
        pairs = terms.filter(pl.all_horizontal(pl.col("node", "other_node").is_not_null()))
        sums = self.in_groups.group_by("term", "other_step").agg((weight * pl.col("value")).sum())
        of_pairs = pairs.select("term", weight * other_weight * pl.col("value"))
        of_nodes = pl.concat([of_pairs, sums.select("term", pl.col("node") ** 2)])
        share = pl.col("earlier_date").replace_strict(dict(shares), default=0.0, return_dtype=pl.Float64)
        is_chosen = pl.all_horizontal(pl.col("step", "other_step").is_in(list(steps))).cast(pl.Float64)
        earlier = 2.0 * shares[day_of(self.period)] * share
        factor = pl.when(pl.col("earlier_date").is_null()).then(is_chosen).otherwise(earlier)
        of_steps = terms.filter(pl.col("node").is_null()).select("term", step=factor * pl.col("value"))
        both = of_nodes.group_by("term").sum().join(of_steps.group_by("term").sum(), on="term")
        return float((both["node"] * both["step"]).sum())


def decode_old_errors(data: bytes) -> OldErrors:
    """Return the contents of a file of errors, which anyone may have written. Raises PublicationError."""
    rows, metadata = decode_table(data, OLD_LIMITS, "a file of errors", OLD_SCHEMA)
    with as_written(f"these bytes are no file of errors of format {' or '.join(OLD_FORMATS)}"):
        footer = json.loads(metadata[OLD_KEY])
        nodes, n_steps = frozenset(footer["nodes"]), footer["shape"][1]
        if footer["format"] not in OLD_FORMATS or rows.schema != OLD_SCHEMA or not n_steps > 0:
            raise ValueError
        named = {*rows["node"].drop_nulls(), *rows["other_node"].drop_nulls()}
        if not rows["value"].is_finite().fill_null(value=False).all() or named - nodes:
            raise ValueError
        return OldErrors(period_from(footer["period"]), footer["of"], nodes, n_steps, rows)


def read_replicates(
    storage: Storage, entry: Entry, stated: ReleaseStatement, rows: pl.DataFrame | None = None
) -> Replicates | OldErrors | None:
    """Return the replicates of a listed or just replaced release, if any. Raises PublicationError."""
    if stated.errors is None:
        return None
    digest = stated.errors.file_hash
    name = errors_file(entry.period, entry.revision, entry.vintage, digest)
    replaced = f"{folder_of(SUPERSEDED_ERRORS, entry.period)}/{name.rpartition('/')[2]}"
    data = read_attachment(storage, entry.period, digest, name, replaced)
    is_old = stated.errors.replicates is None
    found = decode_old_errors(data) if is_old else decode_replicates(data)
    if (found.period, found.of) != (entry.period, stated.errors.of):
        raise PublicationError(f"{name} is of another release; restore it")
    if rows is not None and not (
        # sums would lack the nodes and steps that are missing
        all(found.rows[name].equals(rows[name]) for name in ("step", "node"))
        if isinstance(found, Replicates)
        else (found.nodes, found.n_steps) == (frozenset(rows["node"]), rows["step"].n_unique())
    ):
        raise PublicationError(f"{name} covers other nodes or steps than {entry.file}; restore it")
    return found


# Figures of published values.


@dataclass(frozen=True, eq=False)
class Day:
    """A published day or hour: rows of its release with `value`, estimates and replicates."""

    period: date
    rows: pl.DataFrame
    has_whole: bool
    has_noise: bool
    old: OldErrors | None = None


def read_day(storage: Storage, catalogue: Catalogue, entry: Entry, *, verify: bool) -> Day:
    """Return a listed period with its replicates. Raises PublicationError as `read_release` and as these."""
    rows, footer = read_release(storage, catalogue, entry, verify)
    found = read_replicates(storage, entry, footer.stated, rows)
    noise, _ = error_columns(catalogue.value_column)
    noise_is_all = noise in rows.columns and rows[noise].null_count() < rows.height
    rows.columns = ["value" if name == catalogue.value_column else name for name in rows.columns]
    if found is None:
        rows = rows.rename({estimate_column(catalogue.value_column): ESTIMATE}, strict=False)
        return Day(entry.period, rows, has_whole=False, has_noise=False)
    known = found.of == "whole", found.of == "noise" or noise_is_all
    if isinstance(found, OldErrors):
        added = found.rows.filter(pl.col("term").is_null())
        added = added.select("node", pl.col("step") + rows["step"].min(), added="value")
        rows = rows.join(added, on=["node", "step"], how="left", maintain_order="left")
        estimate = (pl.col("value") - pl.col("added").fill_null(0.0)).alias(ESTIMATE)
        return Day(entry.period, rows.select(pl.exclude("added"), estimate), *known, found)
    return Day(entry.period, rows.hstack(found.rows[found.rows.columns[2:]]), *known)


def read_figure(
    folder: Location | str,
    figure: Callable[[pl.Expr], pl.Expr],
    first: date,
    last: date,
    *,
    by: Sequence[str | pl.Expr] = ("node",),
    where: pl.Expr | None = None,
    public_key: GivenKeys | None = None,
) -> pl.DataFrame:
    """Return a figure of published values, such as a maximum or a share, with its standard error.

    The standard error is the standard deviation of the same figure over the replicates (docs/data/sums.md).

    Args:
        folder: A path, or the URL of a folder in an object store.
        figure: From the column of values to the figure, in polars: `lambda value: value.max()`.
        first: The first local day.
        last: The last local day; each from the first on must be published.
        by: Columns of the published rows, or expressions, that have a figure each.
        where: The rows that are used; all by default.
        public_key: The publisher's, as for `read_published`.

    Returns:
        A row for each of `by`, sorted, with `value`, the figure of the published values; `estimate`, that
        before lower bound and rounding; `standard_error` of the whole error and `noise_standard_error` of the
        noise alone, in the figure's unit, null where a day does not have them.

    Raises:
        ParameterError: A day of the span is not published, or the figure is not one number for each of `by`;
            for a URL or key that cannot be one.
        PublicationError: As for `read_published`, and where a file of replicates is missing or altered.
    """
    days = _read_days(folder, first, last, public_key)
    rows = pl.concat([day.rows for day in days], how="diagonal")
    common = _common_replicates(day.rows for day in days)
    found = _figures(rows if where is None else rows.filter(where), figure, by, common)
    if any(found[name].dtype.is_nested() for name in ("value", ESTIMATE)):
        raise ParameterError("a figure must be one number for each of `by`, such as value.max()")
    known = {"standard_error": all(day.has_whole for day in days)}
    known["noise_standard_error"] = all(day.has_noise for day in days)
    none = pl.lit(None, pl.Float64)
    errors = {name: pl.col("spread") if is_known else none for name, is_known in known.items()}
    labels = found.drop("value", ESTIMATE, "spread").columns
    return found.select(*labels, "value", ESTIMATE, **errors).sort(labels)


def _common_replicates(frames: Iterable[pl.DataFrame]) -> list[str]:
    """Return the replicates that all days have: a stream may have had fewer before."""
    return min(map(replicate_columns, frames), key=len, default=[])


def _figures(
    rows: pl.DataFrame,
    figure: Callable[[pl.Expr], pl.Expr],
    by: Sequence[str | pl.Expr],
    replicates: Sequence[str],
) -> pl.DataFrame:
    """Return by `by` the figure of values, of estimates where all are known, and its standard deviation over
    replicates."""
    if ESTIMATE not in rows.columns:
        rows = rows.with_columns(pl.lit(None, pl.Float64).alias(ESTIMATE))
    rows = rows.with_columns(pl.col(replicates).cast(pl.Float64))  # sums in float32 lose the errors
    columns = ("value", ESTIMATE, *replicates)
    found = rows.group_by(*by).agg(
        *(figure(pl.col(name)).alias(name) for name in columns), n_unknown=pl.col(ESTIMATE).null_count()
    )
    # of some days alone it would be another figure than the values'
    estimate = pl.when(pl.col("n_unknown") == 0).then(pl.col(ESTIMATE)).alias(ESTIMATE)
    spread = pl.lit(None, pl.Float64)
    if len(replicates) >= 2 and not found["value"].dtype.is_nested():
        spread = pl.concat_list(pl.col(replicates).cast(pl.Float64)).list.std()
    return found.with_columns(spread.alias("spread"), estimate).drop("n_unknown", *replicates)


def read_sum(
    folder: Location | str,
    nodes: Collection[str] | Mapping[str, float],
    first: date,
    last: date,
    steps: Collection[int] | None = None,
    public_key: GivenKeys | None = None,
) -> SumOfValues:
    """Return the sum of published values of some nodes over some days, with its standard errors.

    Args:
        folder: A path, or the URL of a folder in an object store.
        nodes: Their names, none within another; or weights by names, of any nodes: {"11": 1, "84": -1} for a
            difference.
        first: The first local day.
        last: The last local day; each from the first on must be published.
        steps: Of each day, from 0; None for all.
        public_key: The publisher's, as for `read_published`.

    Returns:
        In the unit of the values times steps; errors from replicates (docs/data/sums.md), as far as every day
        has them.

    Raises:
        ParameterError: A day of the span is not published, a node is not there or lies in another one, or a
            day has not the steps; for a URL or key that cannot be one.
        PublicationError: As for `read_published`, and where a file of replicates is missing or altered.
    """
    several(nodes)
    return sum_of_days(_read_days(folder, first, last, public_key), nodes, steps)


def _read_days(folder: Location | str, first: date, last: date, public_key: GivenKeys | None) -> list[Day]:
    for day, name in ((first, "first"), (last, "last")):
        if not isinstance(day, date):
            raise ParameterError(f"{name} day must be one such as date(2016, 2, 1); got {day!r:.80}")
    if last < first:
        raise ParameterError(f"the last day, {last}, is before the first, {first}")
    storage = open_storage(folder)
    catalogue = catalogue_reader(storage, public_key)()
    listed = {entry.period: entry for entry in catalogue.listed}
    by_hour = bool(listed) and isinstance(max(listed), Hour)
    calendar = Calendar(60, "UTC")
    if by_hour:
        stated = read_statement(storage, listed[max(listed)])
        calendar = Calendar(stated.step_minutes, stated.time_zone, stated.day, "hour")
    wanted = calendar.periods(first, last)
    entries = [listed[one] for one in wanted if one in listed]
    if not wanted or len(entries) < len(wanted):
        of_days = f"{len(entries)} of {f'their {len(wanted)} hours' if by_hour else 'them'}"
        raise ParameterError(f"every day from {first} to {last} must be published; {of_days} are")
    return [read_day(storage, catalogue, entry, verify=public_key is not None) for entry in entries]


def sum_of_days(
    days: Sequence[Day], nodes: Collection[str] | Mapping[str, float], steps: Collection[int] | None = None
) -> SumOfValues:
    """Return the sum over some days of nodes and steps, and raise ParameterError, as `read_sum`."""
    weights = dict(nodes) if isinstance(nodes, Mapping) else dict.fromkeys(nodes, 1.0)
    if not weights:
        raise ParameterError("a sum must be of at least one node")
    for name, one in weights.items():
        if not (isinstance(one, Real | Decimal) and isfinite(one)):
            raise ParameterError(f"the weight of {name!r:.80} in a sum must be a finite number")
        weights[name] = float(one)
    # groups of version 0.2 have no pairs, which the covariance of two nested nodes would need
    if not isinstance(nodes, Mapping) or any(day.old and day.old.in_groups.height for day in days):
        _check_apart(days[-1].rows, weights.keys())
    _check_steps(days, steps)
    chosen = [day.rows.filter(pl.col("node").is_in(list(weights))) for day in days]
    for day, rows in zip(days, chosen, strict=True):
        known = set(rows["node"].unique())
        if unknown := [name for name in weights if name not in known]:
            raise ParameterError(f"{day.period} has no node {unknown[0]!r:.80}; names are as in the files")
    rows = pl.concat(chosen, how="diagonal")
    rows = rows if steps is None else rows.filter(pl.col("step").is_in(list(steps)))
    weight = pl.col("node").replace_strict(weights)
    common, by = _common_replicates(day.rows for day in days if day.old is None), [pl.lit(0).alias("all")]
    (found,) = _figures(rows, lambda value: (value * weight).sum(), by, common).iter_rows(named=True)
    has_whole, has_noise = all(day.has_whole for day in days), all(day.has_noise for day in days)
    if not (has_whole or has_noise):
        is_known = found[ESTIMATE] is not None
        return SumOfValues(found["value"], None, None, found[ESTIMATE if is_known else "value"])
    variance, shares = (found["spread"] or 0.0) ** 2, dict[date, float]()
    for one in (day.old for day in days if day.old):
        own = set(range(one.n_steps)) & set(range(one.n_steps) if steps is None else steps)
        shares[day_of(one.period)] = len(own) / one.n_steps
        variance += one.variance(weights, own, shares)
    error = sqrt(max(variance, 0.0))
    return SumOfValues(
        found["value"], error if has_whole else None, error if has_noise else None, found[ESTIMATE]
    )


def _check_steps(days: Sequence[Day], steps: Collection[int] | None) -> None:
    if steps is None:
        return
    if bad := [step for step in steps if not isinstance(step, Integral)]:
        raise ParameterError(f"steps of a sum must be integers, counted from 0; got {bad[0]!r:.80}")
    for day, own in groupby(days, key=lambda one: day_of(one.period)):
        n_steps = sum(one.rows["step"].n_unique() for one in own)
        if not (len(steps) and min(steps) >= 0 and max(steps) < n_steps):
            raise ParameterError(f"steps of a sum must be at least one, from 0 to {n_steps - 1} on {day}")


def _check_apart(rows: pl.DataFrame, named: Collection[str]) -> None:
    labels = list(rows.select("node", "parent", "level").unique("node").iter_rows())
    parents, levels = ({row[0]: row[place] for row in labels} for place in (1, 2))
    margin = sorted(
        name for name in named if (up := parents.get(name)) is not None and levels[name] > levels[up] + 1
    )
    if margin and len(margin) < len(named):
        raise ParameterError(
            f"nodes of a sum: {margin[0]!r:.80} is of the margin, and others are not: they may share cells; "
            "take nodes of the margin alone, or none of them"
        )
    for name in named:
        above: str | None = name
        while (above := parents.get(above)) is not None:
            if above in named:
                raise ParameterError(
                    f"nodes of a sum: {name!r:.80} lies in {above!r:.80}; none may lie in another"
                )


# Sums of published values over days, weeks and months, each node's with its standard errors.

Period = Literal["day", "week", "month"]  # local days, weeks from Monday on, months
_BEGINS = {"day": "1d", "week": "1w", "month": "1mo"}


def daily_replicates(
    storage: Storage, catalogue: Catalogue, days: Iterable[date]
) -> Iterator[tuple[date, str, pl.DataFrame]]:
    """Yield for each listed period of some days with replicates its day, their kind, and by node its number
    of steps `n` and the sums over them."""
    wanted = set(days)
    for entry in catalogue.listed:
        if day_of(entry.period) in wanted:
            found = read_replicates(storage, entry, read_statement(storage, entry))
            if isinstance(found, Replicates):
                figures = pl.exclude("step", "node").cast(pl.Float64).sum()
                sums = found.rows.group_by("node").agg(pl.len().cast(pl.Int64).alias("n"), figures)
                yield day_of(entry.period), found.of, sums


def period_sums(
    rows: pl.DataFrame, value: str, period: Period, replicates: Iterable[tuple[date, str, pl.DataFrame]]
) -> pl.DataFrame:
    """Return the sum of each period's published days by node, of rows as `rows_of` returns them, with its
    standard errors, null where a day has no such replicates; `days` and `steps` count the present ones."""
    begins = pl.col("date").dt.truncate(_BEGINS[period]).alias("begins")
    noise, _ = error_columns(value)
    summed = rows.group_by(begins, "node").agg(
        pl.col("date").min(),
        pl.col("date").max().alias("last_date"),
        pl.col("parent", "level").last(),
        pl.col("date").n_unique().cast(pl.Int64).alias("days"),
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col(value).sum().alias(f"{value}_sum"),
        pl.col(value).mean().alias(f"{value}_mean"),
        pl.col(noise).is_not_null().all().alias("noise_is_all"),
        pl.col("revision", "vintage").max(),
    )
    parts = [
        sums.with_columns(pl.lit(day).alias("date"), (pl.col("n") * int(of == "whole")).alias("n_whole"))
        for day, of, sums in replicates
    ]
    common = _common_replicates(parts)
    figures = ("n", "n_whole", ESTIMATE, *common)
    none = pl.DataFrame(schema={"date": pl.Date, "node": pl.String, **dict.fromkeys(figures, pl.Float64)})
    known = pl.concat([none, *parts], how="diagonal_relaxed").group_by(begins, "node")
    found = summed.join(known.agg(pl.col(figures).sum()), on=["begins", "node"], how="left")
    spread = pl.concat_list(common).list.std() if common else pl.lit(None, pl.Float64)
    is_whole, is_known = (pl.col(name) == pl.col("steps") for name in ("n_whole", "n"))
    is_noise = is_known & ((pl.col("n_whole") == 0) | pl.col("noise_is_all"))
    errors = [
        pl.when(known).then(figure).cast(pl.Float64).alias(f"{value}_sum_{name}")
        for known, figure, name in (
            (is_known, ESTIMATE, "estimate"),
            (is_noise, spread, "noise_se"),
            (is_whole, spread, "se"),
        )
    ]
    labels = ("date", "last_date", "node", "parent", "level", "days", "steps")
    return found.select(*labels, f"{value}_sum", f"{value}_mean", *errors, "revision", "vintage").sort(
        "date", "node"
    )

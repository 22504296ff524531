"""A covariate's file, read: a value a day for each node of the hierarchy; nothing private is read here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.errors import DumpError, ParameterError
from optstream.stream import AggregationTree
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.config.paths import absolute, lies_within
from tasks.config.tables.covariates import PublicSeries

LARGEST_FILE = 2**26
MOST_FILES = 10_000
MOST_DAYS = 100 * 366
ENDINGS = (".parquet", ".csv")


@dataclass(frozen=True)
class Unread:
    """A covariate that nights go without, and why: the place, the rule and the remedy."""

    name: str
    why: str


def read_covariates(settings: Settings) -> tuple[tuple[Covariate, ...], tuple[Unread, ...]]:
    """Return the configured covariates, and those whose files cannot be used: a night goes without these.

    Rows are the nodes of the hierarchy, or one for all of them. Raises ParameterError for a file that is the
    stream's own input or lies in the trusted folder, links followed: what is learned from it would leak.
    """
    read, unread = [], []
    for given in settings.covariates.given:
        try:
            read.append(_covariate(settings, given))
        except ParameterError:
            raise
        except (DumpError, OSError, pl.exceptions.PolarsError, ValueError) as error:
            why = str(error) if isinstance(error, DumpError) else f"{given.path} cannot be read as a table"
            unread.append(Unread(given.name, f"covariate {given.name}: {why}"))
    return tuple(read), tuple(unread)


def _covariate(settings: Settings, given: PublicSeries) -> Covariate:
    files = _files(settings, given)
    table = pl.concat([_rows(file, given, settings.stream.time_zone) for file in files])
    # a later file corrects an earlier one; then the mean of a day
    table = table.unique(["time", "node"], keep="last", maintain_order=True)
    table = table.filter(pl.col("value").is_finite() & pl.col("time").is_not_null())
    table = table.group_by(pl.col("time").dt.date().alias("day"), "node").agg(pl.col("value").mean())
    if table.is_empty():
        raise DumpError(f"{given.path} must have a number on some day; it has none in column {given.value!r}")
    first, last = table["day"].min(), table["day"].max()
    assert isinstance(first, date)
    assert isinstance(last, date)
    n_days = (last - first).days + 1
    if n_days > MOST_DAYS:
        raise DumpError(f"{given.path} must span at most {MOST_DAYS} days; it spans {n_days}")
    rows: dict[str | None, NDArray[np.float64]] = {}
    for (node,), part in table.group_by("node"):
        row = rows.setdefault(None if node is None else str(node), np.full(n_days, np.nan))
        row[(part["day"] - first).dt.total_days().to_numpy()] = part["value"].to_numpy()
    values = _of_nodes(rows, settings.tree, given)
    return Covariate(given.name, (first - ORIGIN).days, values, given.publication_lag_days, given.level)


def _files(settings: Settings, given: PublicSeries) -> list[Path]:
    """Return the files, by name. Raises ParameterError for private ones, DumpError where there are none."""
    place = absolute(given.path, settings.folder)
    inside = sorted(one for one in place.glob("*") if one.suffix in ENDINGS) if place.is_dir() else [place]
    for file in (place, *inside):
        for key, private in (("input", settings.input_folder), ("trusted", settings.trusted_folder)):
            if lies_within(file, private):
                raise ParameterError(
                    f"covariate {given.name}: {file} lies in {key}.folder, which is private: what is learned "
                    "from it would leak, and no ledger would see it; name files that are public"
                )
    if not inside or not all(file.is_file() and file.suffix in ENDINGS for file in inside):
        raise DumpError(f"{given.path} must be a .parquet or .csv file, or a folder of them")
    if len(inside) > MOST_FILES or any(file.stat().st_size > LARGEST_FILE for file in inside):
        raise DumpError(f"{given.path} must have at most {MOST_FILES} files of at most 64 MiB each")
    return inside


def _rows(file: Path, given: PublicSeries, time_zone: str) -> pl.DataFrame:
    """Return time (local), node (null where there is no such column) and value of every row of a file."""
    if file.suffix == ".csv":
        table = pl.read_csv(file, schema_overrides={given.node: pl.String}, try_parse_dates=True)
    else:
        table = pl.read_parquet(file, use_pyarrow=False)
    times = [name for name in ("date", "timestamp") if name in table.columns]
    if len(times) != 1 or given.value not in table.columns:
        raise DumpError(
            f"{file.name} must have a column date or timestamp, and a column {given.value!r} of numbers; it "
            f"has {', '.join(table.columns[:20])}"
        )
    kind, time = table.schema[times[0]], pl.col(times[0])
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        time = time.dt.convert_time_zone(time_zone).dt.replace_time_zone(None)
    elif not isinstance(kind, pl.Datetime | pl.Date):
        raise DumpError(f"column {times[0]} of {file.name} must be of dates or instants; it is {kind}")
    if not table.schema[given.value].is_numeric() and table.schema[given.value] != pl.Boolean:
        raise DumpError(f"column {given.value} of {file.name} must be of numbers")
    node = pl.col(given.node) if given.node in table.columns else pl.lit(None)
    return table.select(
        time.cast(pl.Datetime("us")).alias("time"),
        node.cast(pl.String).alias("node"),
        pl.col(given.value).cast(pl.Float64).alias("value"),
    )


def _of_nodes(
    rows: Mapping[str | None, NDArray[np.float64]], tree: AggregationTree, given: PublicSeries
) -> NDArray[np.float64]:
    """Return a row for each node, or one for all: a node has its own values, else those of the next node
    above that has some, else the mean of those below it. Nodes outside of `nodes` have none.
    """
    if set(rows) == {None}:
        found = np.array([rows[None]])
        if not given.nodes:
            return found
        values = np.repeat(found, len(tree.nodes), axis=0)
    else:
        nothing = np.full(next(iter(rows.values())).size, np.nan)
        values = np.array([rows.get(name, nothing) for name in tree.nodes])
        has = np.array([name in rows for name in tree.nodes])
        if not has.any():
            raise DumpError(
                f"{given.path} must name nodes of the hierarchy in column {given.node!r}; it names "
                f"{', '.join(map(repr, sorted(map(str, rows))[:5]))}"
            )
        for node, parent in enumerate(tree.parents[1:], 1):
            if not has[node] and has[parent]:
                values[node], has[node] = values[parent], True
        for level in reversed(tree.levels):
            for node in level:
                if not has[node]:
                    below = [one for one, up in enumerate(tree.parents) if up == node and has[one]]
                    if below:
                        values[node], has[node] = values[below].mean(axis=0), True
    if given.nodes:
        chosen = np.array([name in given.nodes for name in tree.nodes])
        for node, parent in enumerate(tree.parents[1:], 1):
            chosen[node] |= chosen[parent]
        values[~chosen] = np.nan
    return values

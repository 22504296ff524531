"""What the published folder says of a stream, as frozen values, read from there and from nowhere else."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import Catalogue, Entry, ReleaseStatement, error_columns, read_catalogue
from optstream.catalogue.about import About, read_about
from optstream.catalogue.backends import Storage
from optstream.catalogue.index import DayEntry, day_entries, files_of
from optstream.catalogue.layout import DATA, LARGEST_RELEASE
from optstream.catalogue.metadata import StatedTerms
from optstream.catalogue.read import read_columns, read_file, read_statement
from optstream.catalogue.replicates import Replicates, read_replicates, replicate_columns
from optstream.catalogue.statement import MARGIN
from optstream.errors import PublicationError

MOST_SUMMED = 10_000
"""Nodes that are summed up, level by level from the root: of a million its upper levels."""

SCHEMA = pl.Schema(
    {
        "file_hash": pl.String(),
        "node": pl.String(),
        "mean": pl.Float64(),
        "noise": pl.Float64(),
        "model": pl.Float64(),
        "epsilon": pl.String(),
        "terms": pl.List(pl.String()),
        "size": pl.Int64(),
    }
)
"""A row for each file and node. noise, model: errors of the mean, from the file of errors, else the means of
the steps' own, which are the most that they can be; null where no file says. epsilon: the most that any
window may lose by its release, exact. terms: what it was drawn under, in words; of a day of hours each that
occurs. size: of the file, in bytes.
"""
NO_SUMMARIES = pl.DataFrame(schema=SCHEMA)
_MEANS = {"node": pl.String, "known": pl.Float64, "whole": pl.Boolean}


def read_summaries(path: Path) -> pl.DataFrame:
    """Return what was kept, `SCHEMA`; nothing where there is none, or where its schema is another."""
    with suppress(OSError, pl.exceptions.PolarsError):
        rows = pl.read_parquet(path)
        if rows.schema == SCHEMA:
            return rows
    return NO_SUMMARIES


def _completed(
    known: pl.DataFrame, place: Storage, entries: Sequence[Entry], value: str
) -> tuple[pl.DataFrame, list[Entry]]:
    """Return the summaries of these files alone, and the entries whose file is not the listed one."""
    kept = known.filter(pl.col("file_hash").is_in([entry.file_hash for entry in entries]))
    hashes = set(kept["file_hash"].unique())
    parts, lost = [kept], []
    for entry in entries:
        if entry.file_hash not in hashes:
            try:
                parts.append(_summed_up(place, entry, value))
            except PublicationError:
                lost.append(entry)
    return pl.concat(parts).sort("file_hash", "node"), lost


def _summed_up(place: Storage, entry: Entry, value: str) -> pl.DataFrame:
    """Return the rows of a file; a day's noise is known only if it is known at every step."""
    columns = error_columns(value)
    rows = _upper_levels(read_columns(place, entry, {"step", "node", "level", value, *columns}, set(columns)))
    own = entry.own if isinstance(entry, DayEntry) else (entry,)
    stated = [read_statement(place, one) for one in own]
    terms = list(dict.fromkeys(one.terms_in_words for one in stated))
    noise, model = (pl.col(name).cast(pl.Float64) for name in columns)
    known, whole = pl.col("known").first(), pl.col("whole").first()
    of_model = pl.coalesce(pl.when(whole).then(known), model.mean())
    found = rows.join(_of_means(place, entry, stated[-1]), on="node", how="left").group_by("node")
    return found.agg(
        pl.col(value).cast(pl.Float64).mean().alias("mean"),
        pl.when(noise.null_count() == 0).then(pl.coalesce(known, noise.mean())).alias("noise"),
        pl.when(model.null_count() == 0).then(of_model).alias("model"),
    ).select(
        pl.lit(entry.file_hash).alias("file_hash"),
        "node",
        "mean",
        "noise",
        "model",
        pl.lit(str(max(one.epsilon_of_grant for one in stated))).alias("epsilon"),
        pl.lit(terms, dtype=pl.List(pl.String)).alias("terms"),
        pl.lit(_size(place, entry), dtype=pl.Int64).alias("size"),
    )


def _upper_levels(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the first nodes, level by level: a function of the release alone."""
    first = rows.filter(pl.col("step") == rows["step"].min())
    if first.height <= MOST_SUMMED:
        return rows
    names = first.sort("level", "node").head(MOST_SUMMED)["node"]
    return rows.filter(pl.col("node").is_in(names.implode()))


def _size(place: Storage, entry: Entry) -> int:
    if isinstance(entry, DayEntry) and entry.closed_in is None:
        return sum(_size(place, one) for one in entry.own)
    if isinstance(entry, DayEntry):
        return len(place.read(entry.file, LARGEST_RELEASE))
    return len(read_file(place, entry))


def _of_means(place: Storage, entry: Entry, statement: ReleaseStatement) -> pl.DataFrame:
    """Return the standard error of each node's daily mean, and whether it is of the whole error."""
    if isinstance(entry, DayEntry):  # no file has the covariance of its hours' errors
        return pl.DataFrame(schema=_MEANS)
    found = None
    with suppress(PublicationError):  # `check_files` names what is lost, and there is a bound without it
        found = read_replicates(place, entry, statement)
    if not isinstance(found, Replicates):
        return pl.DataFrame(schema=_MEANS)
    columns = replicate_columns(found.rows)
    means = found.rows.group_by("node").agg(pl.col(columns).cast(pl.Float64).mean())
    known = pl.concat_list(columns).list.std().alias("known")
    return means.select("node", known, pl.lit(found.of == "whole").alias("whole"))


Values = NDArray[np.float64]
MISSING, DAMAGED = "missing", "damaged"
AS_GOOD_AS_NOTHING = 0.9
"""Of a level's typical figure: with an error this large its figures are of no use."""
RECENT_DAYS = 28
"""Days whose steps are drawn; of the days before, their means."""
MOST_POINTS = 60_000
"""Days times nodes that are drawn: at some six bytes a corner of a line, half a megabyte."""
MOST_NODES = 40


@dataclass(frozen=True)
class Node:
    """A node as the published rows have it; parent: None at the root. level: root 0."""

    name: str
    parent: str | None
    level: int


@dataclass(frozen=True, eq=False)
class Daily:
    """Each node's days, (n_nodes, n_days), NaN where unknown; `error` is an upper bound (Minkowski)."""

    first: date
    mean: Values
    error: Values

    @property
    def n_days(self) -> int:
        """How many days there are, gaps included."""
        return int(self.mean.shape[1])


@dataclass(frozen=True, eq=False)
class Recent:
    """The steps of the last days with a release: values and posterior standard errors, NaN where unknown."""

    first: date
    last: date
    days: tuple[date, ...]
    values: tuple[Values, ...]
    errors: tuple[Values, ...]


@dataclass(frozen=True)
class LevelError:
    """Root mean squares of a level's newest figures and errors; is_total: of the whole error."""

    level: int
    size: float
    error: float
    is_total: bool

    @property
    def is_as_good_as_nothing(self) -> bool:
        """Whether the figures are hardly larger than their error."""
        return self.error >= AS_GOOD_AS_NOTHING * self.size


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """A stream by its published folder alone; without nodes where every day was withdrawn."""

    catalogue: Catalogue
    statement: ReleaseStatement | None = None
    nodes: tuple[Node, ...] = ()
    daily: Daily | None = None
    recent: Recent | None = None
    epsilon: Fraction | None = None
    lost: Mapping[date, str] = field(default_factory=dict)
    about: About = field(default_factory=About)
    level_errors: tuple[LevelError, ...] = ()
    has_card: bool = False
    terms: tuple[StatedTerms, ...] = ()

    @cached_property
    def listed(self) -> tuple[Entry, ...]:
        """The days that readers find, rising."""
        return day_entries(self.catalogue.listed)

    @property
    def newest(self) -> Entry | None:
        """The newest listed day whose file can be read."""
        return next((one for one in reversed(self.listed) if one.period not in self.lost), None)

    @property
    def n_drawn(self) -> int:
        """How many nodes have curves."""
        return 0 if self.daily is None else int(self.daily.mean.shape[0])

    @property
    def least(self) -> float | None:
        """The least possible value of the newest release: 0 of counts, None where nothing says."""
        return None if self.statement is None or self.statement.bands is None else 0.0

    @property
    def margin(self) -> str | None:
        """The name of the last level, where the newest release states that it is a margin; else None."""
        stated = None if self.statement is None else self.statement.mechanism.get(MARGIN)
        return stated if isinstance(stated, str) else None

    def title_of(self, level: int) -> str:
        """Return a level's name where a sentence begins: "Level 1", or "Margin sector"."""
        last = max((node.level for node in self.nodes), default=0)
        return f"Level {level}" if self.margin is None or level < last else f"Margin {self.margin}"

    @property
    def level_shares(self) -> tuple[str, ...]:
        """Return each level's share of epsilon, root first, or () where none is stated."""
        stated = None if self.statement is None else self.statement.mechanism.get("level_shares")
        n_levels = len({node.level for node in self.nodes})
        if not isinstance(stated, list) or len(stated) != n_levels:
            return ()
        return tuple(stated) if all(isinstance(share, str) for share in stated) else ()

    @property
    def has_total(self) -> bool:
        """Whether any drawn value says how far it may be from the truth."""
        return self.daily is not None and bool(np.isfinite(self.daily.error).any())


def public_facts(
    place: Storage, catalogue: Catalogue, known: pl.DataFrame
) -> tuple[PublicFacts, pl.DataFrame]:
    """Read the facts of a catalogue's releases, and its files' summaries, which only spare reading."""
    listed = day_entries(catalogue.listed)
    if not listed:
        return PublicFacts(catalogue), NO_SUMMARIES
    value = catalogue.value_column
    there = set(place.names_below(DATA))
    missing = [entry for entry in listed if not files_of(entry) <= there]
    whole = [one for one in listed if files_of(one) <= there]
    newest, steps, spoilt = _read_recent(place, catalogue, whole, listed)
    unread = {entry.period for entry in (*missing, *spoilt)}
    wanted = [one for one in listed if one.period not in unread]
    summaries, damaged = _completed(known, place, wanted, value)
    lost = {entry.period: MISSING for entry in missing}
    lost |= {entry.period: DAMAGED for entry in (*spoilt, *damaged)}
    if spoilt or damaged:
        read_catalogue(place)  # else the place itself cannot be read by now
    # of a lost file too: the watch knows by its size that it is not back yet
    theirs = [entry.file_hash for entry in listed if entry.period in lost]
    kept = pl.concat([summaries, known.filter(pl.col("file_hash").is_in(theirs))]).sort("file_hash", "node")
    if newest is None:
        return PublicFacts(catalogue, lost=lost), kept
    drawn = _drawn(newest.nodes, listed)
    facts = replace(
        newest,
        daily=daily_of(summaries, listed, drawn),
        recent=_recent(steps, listed, drawn, value),
        epsilon=max(map(Fraction, summaries["epsilon"].unique())),
        lost=dict(sorted(lost.items())),
        about=read_about(place),
        terms=_terms(summaries, listed),
    )
    return facts, kept


def _terms(summaries: pl.DataFrame, listed: Sequence[Entry]) -> tuple[StatedTerms, ...]:
    """What the listed days were drawn under, as each one's statement has it; the newest last."""
    of_file = dict(summaries.group_by("file_hash").agg(pl.col("terms").first()).iter_rows())
    found = dict[str, StatedTerms]()
    for entry in listed:
        for words in of_file.get(entry.file_hash, ()):
            before = found.pop(words, StatedTerms(words, entry.period, entry.period, 0))
            found[words] = replace(before, last=entry.period, n_days=before.n_days + 1)
    return tuple(found.values())


def _drawn(nodes: Sequence[Node], listed: Sequence[Entry]) -> list[str]:
    n_days = (listed[-1].period - listed[0].period).days + 1
    return [node.name for node in nodes[: min(MOST_NODES, max(1, MOST_POINTS // n_days))]]


def _newest(catalogue: Catalogue, statement: ReleaseStatement, rows: pl.DataFrame) -> PublicFacts:
    """Return what the newest release that is there says."""
    value = catalogue.value_column
    first = rows.filter(pl.col("step") == rows["step"].min()).sort("level", "node")
    nodes = tuple(Node(*row) for row in first.select("node", "parent", "level").iter_rows())
    columns = dict(zip(("size", "noise", "error"), (value, *error_columns(value)), strict=True))
    typical = [
        (pl.col(column).cast(pl.Float64) ** 2).mean().sqrt().alias(name) for name, column in columns.items()
    ]
    by_level = rows.group_by("level").agg(typical).sort("level")
    errors = tuple(
        LevelError(level, size, noise if error is None else error, error is not None)
        for level, size, noise, error in by_level.iter_rows()
        if size is not None and (noise, error) != (None, None)
    )
    return PublicFacts(catalogue, statement, nodes, level_errors=errors)


def daily_of(summaries: pl.DataFrame, listed: Sequence[Entry], drawn: Sequence[str]) -> Daily:
    """Return the days of some entries, at least one, rising, and of some nodes; others are gaps."""
    first = listed[0].period
    n_days = (listed[-1].period - first).days + 1
    days = pl.DataFrame(
        {
            "file_hash": [entry.file_hash for entry in listed],
            "column": [(entry.period - first).days for entry in listed],
        }
    )
    nodes = pl.DataFrame({"node": drawn}, schema={"node": pl.String}).with_row_index("row")
    rows = summaries.join(days, on="file_hash").join(nodes, on="node")
    mean, error = np.full((2, len(drawn), n_days), np.nan)
    index = (rows["row"].to_numpy(), rows["column"].to_numpy())
    mean[index], error[index] = as_values(rows["mean"]), as_values(rows["model"])
    return Daily(first, mean, error)


Steps = dict[date, pl.DataFrame]


def _read_recent(
    place: Storage, catalogue: Catalogue, entries: Sequence[Entry], listed: Sequence[Entry]
) -> tuple[PublicFacts | None, Steps, list[Entry]]:
    """Return the newest release, the last days' drawn rows, and the entries with other files."""
    value = catalogue.value_column
    noise, model = error_columns(value)
    newest: PublicFacts | None = None
    read: Steps = {}
    spoilt = []
    for entry in reversed(entries):
        if newest is not None and entry.period <= entries[-1].period - timedelta(days=RECENT_DAYS):
            break
        try:
            more = {"parent", "level", noise} if newest is None else set[str]()
            rows = read_columns(place, entry, {"step", "node", value, model} | more, {noise, model})
            newest = newest or _newest(catalogue, read_statement(place, entry), rows)
        except PublicationError:
            spoilt.append(entry)
            continue
        # never all rows of several days: a release may have fifty million
        of_drawn = pl.col("node").is_in(_drawn(newest.nodes, listed))
        read[entry.period] = rows.filter(of_drawn).select("step", "node", value, model)
    return newest, dict(sorted(read.items())), spoilt[::-1]


def _recent(steps: Steps, listed: Sequence[Entry], drawn: Sequence[str], value: str) -> Recent:
    last = listed[-1].period
    first = last - timedelta(days=RECENT_DAYS - 1)
    days = tuple(day for day in steps if day >= first)
    nodes = pl.DataFrame({"node": drawn}, schema={"node": pl.String})
    found: dict[str, list[Values]] = {value: [], error_columns(value)[1]: []}
    for day in days:
        places = nodes.join(steps[day].select("step").unique().sort("step"), how="cross")
        rows = places.join(steps[day], on=["node", "step"], how="left", maintain_order="left")
        for column, parts in found.items():
            parts.append(as_values(rows[column]).reshape(len(drawn), -1))
    return Recent(max(first, listed[0].period), last, days, *map(tuple, found.values()))


def as_values(column: pl.Series) -> Values:
    """Return the values of a column, NaN where it is null."""
    values: Values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return values

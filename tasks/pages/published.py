"""Facts of a stream from its published folder, and from nowhere else."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import polars as pl

from optstream.catalogue import (
    Catalogue,
    Entry,
    ReleaseStatement,
    error_columns,
    estimate_column,
    read_catalogue,
)
from optstream.catalogue.about import About, read_about
from optstream.catalogue.backends import Storage
from optstream.catalogue.index import DayEntry, day_entries, files_of
from optstream.catalogue.layout import DATA
from optstream.catalogue.metadata import StatedTerms
from optstream.catalogue.read import decode_columns, read_columns, read_file, read_statement
from optstream.catalogue.standard_errors import Replicates, read_replicates, replicate_columns
from optstream.catalogue.statement import MARGIN
from optstream.errors import PublicationError
from optstream.stream import days_from
from tasks.pages.render import DAY, Z, counted, day_in_words, seconds, shown, unit_of

MOST_SUMMED = 10_000  # nodes that are summed up, level by level from the root: of a million its upper levels

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
    """Return the kept frame, `SCHEMA`; nothing where there is none, or where its schema is another."""
    with suppress(OSError, pl.exceptions.PolarsError):
        rows = pl.read_parquet(path)
        if rows.schema == SCHEMA:
            return rows
    return NO_SUMMARIES


def _summed_up(place: Storage, entry: Entry, value: str) -> pl.DataFrame:
    """Return the rows of a file; a day's noise is known only if it is known at every step."""
    columns = (*error_columns(value), estimate_column(value))
    wanted = {"step", "node", "level", value, *columns}
    if isinstance(entry, DayEntry):
        rows = read_columns(place, entry, wanted, set(columns))
        stated, size = [read_statement(place, one) for one in entry.own], _size(place, entry)
    else:
        data = read_file(place, entry, verify=True)
        rows, footer = decode_columns(data, entry, wanted, set(columns))
        stated, size = [footer.stated], len(data)
    if rows.height > MOST_SUMMED:
        first = rows.filter(pl.col("step") == rows["step"].min())
        names = first.sort("level", "node").head(MOST_SUMMED)["node"]
        rows = rows.filter(pl.col("node").is_in(names.implode()))
    terms = list(dict.fromkeys(one.terms_in_words for one in stated))
    noise, model, estimate = (pl.col(name).cast(pl.Float64) for name in columns)
    known, whole = pl.col("known").first(), pl.col("whole").first()
    of_model = pl.coalesce(pl.when(whole).then(known), model.mean())
    found = rows.join(_mean_rows(place, entry, stated[-1]), on="node", how="left").group_by("node")
    return found.agg(
        pl.coalesce(estimate, pl.col(value).cast(pl.Float64)).mean().alias("mean"),
        pl.when(noise.null_count() == 0).then(pl.coalesce(known, noise.mean())).alias("noise"),
        pl.when(model.null_count() == 0).then(of_model).alias("model"),
        epsilon=pl.lit(str(max(one.epsilon_of_grant for one in stated))),
        terms=pl.lit(terms, dtype=pl.List(pl.String)),
        size=pl.lit(size, dtype=pl.Int64),
    ).select(pl.lit(entry.file_hash).alias("file_hash"), *[*SCHEMA][1:])


def _size(place: Storage, entry: DayEntry) -> int:
    if entry.closed_in is None:
        return sum(len(read_file(place, one)) for one in entry.own)
    return len(place.read(entry.file))


def _mean_rows(place: Storage, entry: Entry, statement: ReleaseStatement) -> pl.DataFrame:
    """Return the standard error of each node's daily mean, and whether it is of the whole error."""
    found = None
    if not isinstance(entry, DayEntry):  # no file has the covariance of a day's hours' errors
        with suppress(PublicationError):  # `check_files` names lost files, and there is a bound without it
            found = read_replicates(place, entry, statement)
    if not isinstance(found, Replicates):
        return pl.DataFrame(schema=_MEANS)
    columns = replicate_columns(found.rows)
    means = found.rows.group_by("node").agg(pl.col(columns).cast(pl.Float64).mean())
    known = pl.concat_list(columns).list.std().alias("known")
    return means.select("node", known, pl.lit(found.of == "whole").alias("whole"))


MISSING, DAMAGED = "missing", "damaged"
AS_GOOD_AS_NOTHING = 0.9  # of a level's typical figure: with an error this large its figures are of no use
RECENT_DAYS = 28  # days whose steps are drawn; of the days before, their means
MOST_POINTS = 60_000  # days times nodes that are drawn: at some six bytes a corner of a line, half a megabyte
MOST_NODES = 40


class Node(NamedTuple):
    """A node as the published rows have it. is_wide: whether its band is wider than its figures."""

    name: str
    parent: str | None
    level: int
    is_wide: bool = False


class LevelError(NamedTuple):
    """Root mean squares of a level's newest figures and errors; is_total: of the whole error."""

    level: int
    size: float
    error: float
    is_total: bool


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """A stream by its published folder alone; without nodes where every day was withdrawn.

    daily, recent: figures of the drawn nodes, each at the same times, with columns node, at (`seconds`),
    value and error, null where unknown: the mean of each day, its error at most the steps' own (Minkowski),
    and each step of the last days.
    """

    catalogue: Catalogue
    statement: ReleaseStatement | None = None
    nodes: tuple[Node, ...] = ()
    daily: pl.DataFrame | None = None
    recent: pl.DataFrame | None = None
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
        return 0 if self.daily is None else self.daily["node"].n_unique()

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
    def faint(self) -> list[str]:
        """A sentence for each level whose figures are hardly larger than their error."""
        newest, unit, found = self.newest, unit_of(self.catalogue.value_column), []
        for level, size, error, is_total in self.level_errors if newest else ():
            if newest and error >= AS_GOOD_AS_NOTHING * size:
                nodes = counted(sum(node.level == level for node in self.nodes), "node")
                moved = "it is wrong by" if is_total else "noise alone moves it by"
                typical, by = (f"{shown(value)} {unit}".rstrip() for value in (size, error))
                found.append(
                    f"{self.title_of(level)} is as good as nothing: on {day_in_words(newest.period)} a "
                    f"typical figure of its {nodes} is {typical}, and {moved} {by}"
                )
        return found


def public_facts(
    place: Storage, catalogue: Catalogue, known: pl.DataFrame
) -> tuple[PublicFacts, pl.DataFrame]:
    """Read the facts of a catalogue's releases, and its files' summaries, which only spare reading."""
    listed = day_entries(catalogue.listed)
    if not listed:
        return PublicFacts(catalogue), NO_SUMMARIES
    value, there = catalogue.value_column, set(place.names_below(DATA))
    lost = {entry.period: MISSING for entry in listed if not files_of(entry) <= there}
    newest, recent, damaged = _read_recent(place, catalogue, lost, listed)
    wanted = [one for one in listed if one.period not in lost and one not in damaged]
    summaries = known.filter(pl.col("file_hash").is_in([one.file_hash for one in wanted]))
    hashes = set(summaries["file_hash"].unique())
    for entry in wanted:
        if entry.file_hash not in hashes:
            try:
                summaries = summaries.vstack(_summed_up(place, entry, value))
            except PublicationError:
                damaged.append(entry)
    if damaged:
        read_catalogue(place)  # else the place itself cannot be read by now
    lost |= {entry.period: DAMAGED for entry in damaged}
    # of a lost file too: the watch knows by its size that it is not back yet
    theirs = [entry.file_hash for entry in listed if entry.period in lost]
    kept = pl.concat([summaries, known.filter(pl.col("file_hash").is_in(theirs))]).sort("file_hash", "node")
    if newest is None:
        return PublicFacts(catalogue, lost=lost), kept
    at = {entry.file_hash: seconds(entry.period) for entry in listed}
    means = summaries.select(
        "node", at=pl.col("file_hash").replace_strict(at, return_dtype=pl.Int64), value="mean", error="model"
    )
    days, drawn = days_from(listed[0].period, listed[-1].period), _drawn(newest, listed)
    facts = replace(
        newest,
        daily=_on_grid(means, drawn, [seconds(day) for day in days]),
        recent=_on_grid(*recent),
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


def _drawn(newest: PublicFacts, listed: Sequence[Entry]) -> list[str]:
    n_days = (listed[-1].period - listed[0].period).days + 1
    return [node.name for node in newest.nodes[: min(MOST_NODES, max(1, MOST_POINTS // n_days))]]


def _newest(catalogue: Catalogue, statement: ReleaseStatement, rows: pl.DataFrame) -> PublicFacts:
    """Return the statement of the newest release that is there."""
    value = catalogue.value_column
    columns = [pl.col(name).cast(pl.Float64) for name in (value, *error_columns(value))]
    is_wide = (2 * Z * columns[2].mean() > columns[0].abs().mean()).fill_null(value=False)
    known = rows.group_by("node", "parent", "level").agg(is_wide.alias("is_wide")).sort("level", "node")
    nodes = tuple(Node(*row) for row in known.iter_rows())
    by_level = rows.group_by("level").agg([(one**2).mean().sqrt() for one in columns]).sort("level")
    errors = tuple(
        LevelError(level, size, noise if error is None else error, error is not None)
        for level, size, noise, error in by_level.iter_rows()
        if size is not None and (noise, error) != (None, None)
    )
    return PublicFacts(catalogue, statement, nodes, level_errors=errors)


_FIGURES = pl.Schema({"node": pl.String(), "at": pl.Int64(), "value": pl.Float64(), "error": pl.Float64()})
Figures = tuple[pl.DataFrame, list[str], list[int]]
"""Rows of `PublicFacts.recent`, and the nodes and times that it has."""


def _read_recent(
    place: Storage, catalogue: Catalogue, lost: Mapping[date, str], listed: Sequence[Entry]
) -> tuple[PublicFacts | None, Figures, list[Entry]]:
    """Return the newest release, each step of the last days, and the entries with other files."""
    value = catalogue.value_column
    noise, model = error_columns(value)
    first = max(listed[0].period, listed[-1].period - timedelta(days=RECENT_DAYS - 1))
    newest, drawn, damaged = None, list[str](), list[Entry]()
    frames, at = [pl.DataFrame(schema=_FIGURES)], list[int]()
    for entry in reversed([one for one in listed if one.period not in lost]):
        if newest is not None and entry.period < first:
            break
        try:
            more = {"parent", "level", noise} if newest is None else set[str]()
            rows = read_columns(place, entry, {"step", "node", value, model} | more, {noise, model})
            if newest is None:
                newest = _newest(catalogue, read_statement(place, entry), rows)
                drawn = _drawn(newest, listed)
        except PublicationError:
            damaged.append(entry)
            continue
        n_steps, begin = rows["step"].n_unique(), seconds(entry.period)
        steps = pl.col("step").rank("dense").cast(pl.Int64) - 1
        timed = rows.with_columns(at=begin + DAY * steps // n_steps)
        # never all rows of several days: a release may have fifty million
        own = timed.filter(pl.col("node").is_in(drawn)).select("node", "at", value=value, error=model)
        if entry.period >= first:
            frames.append(own.cast(_FIGURES))
            at += [begin + DAY * step // n_steps for step in range(n_steps)]
    gaps = {seconds(day) for day in days_from(first, listed[-1].period)}.difference(at)
    return newest, (pl.concat(frames), drawn, sorted([*at, *gaps])), damaged


def _on_grid(rows: pl.DataFrame, nodes: Sequence[str], at: Sequence[int]) -> pl.DataFrame:
    times = pl.DataFrame({"at": at}, schema={"at": pl.Int64})
    grid = pl.DataFrame({"node": nodes}, schema={"node": pl.String}).join(times, how="cross")
    return grid.join(rows, on=["node", "at"], how="left", maintain_order="left")

"""What the published folder says of a stream, as frozen values, read from there and from nowhere else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import Catalogue, Entry, ReleaseStatement, error_columns, read_catalogue
from optstream.catalogue.about import About, read_about
from optstream.catalogue.backends import Storage
from optstream.catalogue.index import day_entries, files_of
from optstream.catalogue.layout import DATA
from optstream.catalogue.metadata import StatedTerms
from optstream.catalogue.read import read_columns, read_statement
from optstream.catalogue.statement import MARGIN
from optstream.errors import PublicationError
from tasks.pages.summaries import Summaries

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
    """Each node's days, (n_nodes, n_days), from the first listed day to the last without a gap.

    mean: of the day's steps; NaN where nothing is published. error: the mean of the steps' posterior standard
    errors, which is the most that the standard error of the day's mean can be (Minkowski), or that of the
    mean itself where the release has a file of errors; NaN where the files do not say.
    """

    first: date
    mean: Values
    error: Values

    @property
    def n_days(self) -> int:
        """How many days there are, gaps included."""
        return int(self.mean.shape[1])


@dataclass(frozen=True, eq=False)
class Recent:
    """Each node's steps of the last days, from `first` to `last`, the last listed day.

    days: those with a release, rising. values: for each of them (n_nodes, n_steps of that day); NaN where the
    node is not in it. errors: posterior standard errors of the same shape; NaN where the file does not say.
    """

    first: date
    last: date
    days: tuple[date, ...]
    values: tuple[Values, ...]
    errors: tuple[Values, ...]


@dataclass(frozen=True)
class LevelError:
    """How large a level's figures are and how wrong: root mean squares over the newest day's nodes and steps.

    error: the whole error where the release states it (`is_total`), else that of the noise alone.
    """

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
    """A stream by its published folder alone.

    `daily`, `recent`, `statement` and `epsilon` are None, and there are no nodes, where every day was
    withdrawn.

    statement: of the newest listed release that is there. nodes: of that release, root first, level by level.
    daily, recent: in the nodes' order, for the first of them (`n_drawn`), as many as a page draws. epsilon:
    the most that any window may lose, the largest that a listed release states. lost: of listed days, what
    their file is, `MISSING` or `DAMAGED`; they are shown as gaps. about: publisher, licence and names of
    nodes. level_errors: of the newest listed release that is there, where it states errors. has_card: whether
    the folder has a deployment card. terms: what the listed days were drawn under, the newest last.
    """

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
        """Each level's share of epsilon, root first, as the newest release states it; () where it states
        none.
        """
        stated = None if self.statement is None else self.statement.mechanism.get("level_shares")
        n_levels = len({node.level for node in self.nodes})
        if not isinstance(stated, list) or len(stated) != n_levels:
            return ()
        return tuple(stated) if all(isinstance(share, str) for share in stated) else ()

    @property
    def has_total(self) -> bool:
        """Whether any drawn value says how far it may be from the truth."""
        return self.daily is not None and bool(np.isfinite(self.daily.error).any())


def public_facts(place: Storage, catalogue: Catalogue, known: Summaries) -> tuple[PublicFacts, Summaries]:
    """Read the facts of a catalogue's releases, and the summaries of its files for the next time.

    known: summaries by the hash of the file that they were made from, so that no old file is read again. They
    only spare reading: the facts are the same without any, as long as no old file was altered. A listed file
    that is missing, or that was read and is not the one that the catalogue names, is `PublicFacts.lost`.
    Raises PublicationError if the folder cannot be read.
    """
    listed = day_entries(catalogue.listed)
    if not listed:
        return PublicFacts(catalogue), Summaries.empty()
    value = catalogue.value_column
    there = set(place.names_below(DATA))
    missing = [entry for entry in listed if not files_of(entry) <= there]
    newest, steps, spoilt = _read_recent(
        place, [one for one in listed if files_of(one) <= there], listed, value
    )
    unread = {entry.period for entry in (*missing, *spoilt)}
    summaries, damaged = known.completed(place, [one for one in listed if one.period not in unread], value)
    lost = {entry.period: MISSING for entry in missing}
    lost |= {entry.period: DAMAGED for entry in (*spoilt, *damaged)}
    if spoilt or damaged:
        read_catalogue(place)  # else the place itself cannot be read by now
    # of a lost file too: the watch knows by its size that it is not back yet
    kept = summaries.joined(known, [entry for entry in listed if entry.period in lost])
    if newest is None:
        return PublicFacts(catalogue, lost=lost), kept
    facts = PublicFacts(
        catalogue,
        newest.statement,
        newest.nodes,
        daily_of(summaries, listed, newest.drawn),
        _recent(steps, listed, newest.drawn, value),
        max(map(Fraction, summaries.rows["epsilon"].unique())),
        dict(sorted(lost.items())),
        read_about(place),
        newest.level_errors,
        terms=_terms(summaries, listed),
    )
    return facts, kept


def _terms(summaries: Summaries, listed: Sequence[Entry]) -> tuple[StatedTerms, ...]:
    """What the listed days were drawn under, as each one's statement has it; the newest last."""
    of_file = dict(summaries.rows.group_by("file_hash").agg(pl.col("terms").first()).iter_rows())
    found = dict[str, StatedTerms]()
    for entry in listed:
        for words in of_file.get(entry.file_hash, ()):
            before = found.pop(words, StatedTerms(words, entry.period, entry.period, 0))
            found[words] = replace(before, last=entry.period, n_days=before.n_days + 1)
    return tuple(found.values())


@dataclass(frozen=True)
class _Newest:
    """The newest release that is there. drawn: the nodes that the page itself draws."""

    statement: ReleaseStatement
    nodes: tuple[Node, ...]
    drawn: list[str]
    level_errors: tuple[LevelError, ...]


def _newest(statement: ReleaseStatement, rows: pl.DataFrame, n_days: int, value: str) -> _Newest:
    first = rows.filter(pl.col("step") == rows["step"].min()).sort("level", "node")
    nodes = tuple(Node(*row) for row in first.select("node", "parent", "level").iter_rows())
    drawn = [node.name for node in nodes[: min(MOST_NODES, max(1, MOST_POINTS // n_days))]]
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
    return _Newest(statement, nodes, drawn, errors)


def daily_of(summaries: Summaries, listed: Sequence[Entry], drawn: Sequence[str]) -> Daily:
    """Return the days of some entries, at least one, rising, and of some nodes, in the nodes' order.

    summaries: of the entries' files. Other days of their span are gaps.
    """
    first = listed[0].period
    n_days = (listed[-1].period - first).days + 1
    days = pl.DataFrame(
        {
            "file_hash": [entry.file_hash for entry in listed],
            "column": [(entry.period - first).days for entry in listed],
        }
    )
    nodes = pl.DataFrame({"node": drawn}, schema={"node": pl.String}).with_row_index("row")
    rows = summaries.rows.join(days, on="file_hash").join(nodes, on="node")
    mean, error = np.full((2, len(drawn), n_days), np.nan)
    index = (rows["row"].to_numpy(), rows["column"].to_numpy())
    mean[index], error[index] = as_values(rows["mean"]), as_values(rows["model"])
    return Daily(first, mean, error)


Steps = dict[date, pl.DataFrame]


def _read_recent(
    place: Storage, entries: Sequence[Entry], listed: Sequence[Entry], value: str
) -> tuple[_Newest | None, Steps, list[Entry]]:
    """The newest release that is there; the rows of the last days, of the nodes that are drawn; and the
    entries whose file is not the one that is listed.
    """
    noise, model = error_columns(value)
    n_days = (listed[-1].period - listed[0].period).days + 1
    newest: _Newest | None = None
    read: Steps = {}
    spoilt = []
    for entry in reversed(entries):
        if newest is not None and entry.period <= entries[-1].period - timedelta(days=RECENT_DAYS):
            break
        try:
            more = {"parent", "level", noise} if newest is None else set[str]()
            rows = read_columns(place, entry, {"step", "node", value, model} | more, {noise, model})
            newest = newest or _newest(read_statement(place, entry), rows, n_days, value)
        except PublicationError:
            spoilt.append(entry)
            continue
        # never all rows of several days: a release may have fifty million
        read[entry.period] = rows.filter(pl.col("node").is_in(newest.drawn)).select(
            "step", "node", value, model
        )
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

"""Gather what a page says from the published folder, and from nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import polars as pl

from optstream.catalogue import Catalogue, Entry, error_columns, read_catalogue
from optstream.catalogue.about import read_about
from optstream.catalogue.backends import Storage
from optstream.catalogue.deployment_card import StatedTerms
from optstream.catalogue.index import day_entries, files_of
from optstream.catalogue.layout import DATA
from optstream.catalogue.read import read_columns, read_statement
from optstream.catalogue.statement import ReleaseStatement
from optstream.errors import PublicationError
from tasks.reports.facts import (
    DAMAGED,
    MISSING,
    RECENT_DAYS,
    Daily,
    LevelError,
    Node,
    PublicFacts,
    Recent,
    Values,
    as_values,
)
from tasks.reports.summaries import Summaries

MOST_POINTS = 60_000
"""Days times nodes that are drawn: at some six bytes a corner of a line, half a megabyte."""
MOST_NODES = 40
FIGURES = ("mean", "least", "most", "noise", "model")


def public_facts(place: Storage, catalogue: Catalogue, known: Summaries) -> tuple[PublicFacts, Summaries]:
    """Read the facts of a catalogue's releases, and the summaries of its files for the next time.

    known: summaries by the hash of the file that they were made from, so that no old file is read again. They
    only spare reading: the facts are the same without any, as long as no old file was altered. A listed file
    that is missing, or that was read and is not the one that the catalogue names, is `PublicFacts.lost`.
    Raises PublicationError if the folder cannot be read.
    """
    listed = day_entries(catalogue.listed)
    if not listed:
        return PublicFacts(catalogue, None, (), None, None), Summaries.empty()
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
    kept = summaries.beside(known, [entry for entry in listed if entry.period in lost])
    if newest is None:
        return PublicFacts(catalogue, None, (), None, None, lost=lost), kept
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
    """What a page says of the newest release that is there. drawn: the nodes that the page itself draws."""

    statement: ReleaseStatement
    nodes: tuple[Node, ...]
    drawn: list[str]
    level_errors: tuple[LevelError, ...]


def _newest(statement: ReleaseStatement, rows: pl.DataFrame, n_days: int, value: str) -> _Newest:
    first = rows.filter(pl.col("step") == rows["step"].min()).sort("level", "node")
    nodes = tuple(Node(*row) for row in first.select("node", "parent", "level").iter_rows())
    drawn = [node.name for node in nodes[: min(MOST_NODES, max(1, MOST_POINTS // n_days))]]
    return _Newest(statement, nodes, drawn, _level_errors(rows, value))


def _level_errors(rows: pl.DataFrame, value: str) -> tuple[LevelError, ...]:
    """How large each level's figures are and how wrong, on one day; of levels whose error is stated."""
    columns = dict(zip(("size", "noise", "model"), (value, *error_columns(value)), strict=True))
    typical = [
        (pl.col(column).cast(pl.Float64) ** 2).mean().sqrt().alias(name) for name, column in columns.items()
    ]
    found = rows.group_by("level").agg(typical).sort("level")
    return tuple(
        LevelError(level, size, noise if model is None else model, model is not None)
        for level, size, noise, model in found.iter_rows()
        if size is not None and (noise, model) != (None, None)
    )


def daily_of(summaries: Summaries, listed: Sequence[Entry], drawn: Sequence[str]) -> Daily:
    """Return the days of some entries, at least one, rising, and of some nodes, in the nodes' order.

    summaries: of the entries' files. Other days of their span are gaps.
    """
    first = listed[0].period
    n_days = (listed[-1].period - first).days + 1
    filled = {name: np.full((len(drawn), n_days), np.nan) for name in FIGURES}
    days = pl.DataFrame(
        {
            "file_hash": [entry.file_hash for entry in listed],
            "column": [(entry.period - first).days for entry in listed],
        }
    )
    nodes = pl.DataFrame({"node": drawn}, schema={"node": pl.String}).with_row_index("row")
    rows = summaries.rows.join(days, on="file_hash").join(nodes, on="node")
    index = (rows["row"].to_numpy(), rows["column"].to_numpy())
    for name, array in filled.items():
        array[index] = as_values(rows[name])
    steps = np.zeros(n_days, dtype=np.int64)
    steps[rows["column"].to_numpy()] = rows["steps"].to_numpy()
    return Daily(first, **filled, steps=steps.tolist())


Steps = dict[date, pl.DataFrame]


def _read_recent(
    place: Storage, entries: Sequence[Entry], listed: Sequence[Entry], value: str
) -> tuple[_Newest | None, Steps, list[Entry]]:
    """The newest release that is there; the rows of the last days, of the nodes that are drawn; and the
    entries whose file is not the one that is listed.
    """
    noise, model = error_columns(value)
    columns, n_days = {"step", "node", value, noise, model}, (listed[-1].period - listed[0].period).days + 1
    newest: _Newest | None = None
    read: Steps = {}
    spoilt = []
    for entry in reversed(entries):
        if newest is not None and entry.period <= entries[-1].period - timedelta(days=RECENT_DAYS):
            break
        try:
            more = {"parent", "level"} if newest is None else set[str]()
            rows = read_columns(place, entry, columns | more, {noise, model})
            newest = newest or _newest(read_statement(place, entry), rows, n_days, value)
        except PublicationError:
            spoilt.append(entry)
            continue
        # never all rows of several days: a release may have fifty million
        read[entry.period] = rows.filter(pl.col("node").is_in(newest.drawn))
    return newest, dict(sorted(read.items())), spoilt[::-1]


def _recent(steps: Steps, listed: Sequence[Entry], drawn: Sequence[str], value: str) -> Recent:
    last = listed[-1].period
    first = last - timedelta(days=RECENT_DAYS - 1)
    days = tuple(day for day in steps if day >= first)
    nodes = pl.DataFrame({"node": drawn}, schema={"node": pl.String})
    found: dict[str, list[Values]] = {column: [] for column in (value, *error_columns(value))}
    for day in days:
        places = nodes.join(steps[day].select("step").unique().sort("step"), how="cross")
        rows = places.join(steps[day], on=["node", "step"], how="left", maintain_order="left")
        for column, parts in found.items():
            parts.append(as_values(rows[column]).reshape(len(drawn), -1))
    return Recent(max(first, listed[0].period), last, days, *map(tuple, found.values()))

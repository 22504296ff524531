"""Gather what a page says from the published folder, and from nothing else."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import polars as pl

from optstream.catalogue import Catalogue, Entry, error_columns
from optstream.catalogue.columns import read_columns, read_statement
from optstream.catalogue.places import Place
from tasks.pages.facts import RECENT_DAYS, Daily, Node, PublicFacts, Recent, Values
from tasks.pages.summaries import Summaries

MOST_POINTS = 60_000
"""Days times nodes that are drawn: at some six bytes a corner of a line, half a megabyte."""
MOST_NODES = 40


def public_facts(place: Place, catalogue: Catalogue, known: Summaries) -> tuple[PublicFacts, Summaries]:
    """The facts of a catalogue's releases, and the summaries of its files, for the next time.

    known: summaries by the hash of the file that they were made from, so that no old file is read again.
    They only spare reading: the facts are the same without any. Raises PublicationError for a file that is
    missing, or is not the one that the catalogue names.
    """
    listed = [entry for entry in catalogue.entries if not entry.withdrawn]
    if not listed:
        return PublicFacts(catalogue, None, (), None, None), Summaries.empty()
    newest, value = listed[-1], catalogue.value_column
    nodes = _nodes(place, newest)
    summaries = known.completed(place, listed, value, error_columns(value)[0])
    n_days = (newest.period - listed[0].period).days + 1
    drawn = [node.name for node in nodes[: min(MOST_NODES, max(1, MOST_POINTS // n_days))]]
    facts = PublicFacts(
        catalogue,
        read_statement(place, newest),
        nodes,
        _daily(summaries, listed, drawn),
        _recent(place, listed, drawn, value),
    )
    return facts, summaries


def _nodes(place: Place, entry: Entry) -> tuple[Node, ...]:
    """Root first, level by level, by name within a level."""
    rows = read_columns(place, entry, {"step", "node", "parent", "level"})
    first = rows.filter(pl.col("step") == rows["step"].min()).sort("level", "node")
    return tuple(Node(*row) for row in first.select("node", "parent", "level").iter_rows())


def _daily(summaries: Summaries, listed: Sequence[Entry], drawn: Sequence[str]) -> Daily:
    first = listed[0].period
    n_days = (listed[-1].period - first).days + 1
    at = {name: number for number, name in enumerate(drawn)}
    filled = {name: np.full((len(drawn), n_days), np.nan) for name in ("mean", "least", "most", "noise")}
    days = pl.DataFrame(
        {
            "file_hash": [entry.file_hash for entry in listed],
            "column": [(entry.period - first).days for entry in listed],
        }
    )
    nodes = pl.DataFrame({"node": list(drawn), "row": list(at.values())})
    rows = summaries.rows.join(days, on="file_hash").join(nodes, on="node")
    index = (rows["row"].to_numpy(), rows["column"].to_numpy())
    for name, array in filled.items():
        array[index] = rows[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Daily(first, **filled)


def _recent(place: Place, listed: Sequence[Entry], drawn: Sequence[str], value: str) -> Recent:
    last = listed[-1].period
    first = last - timedelta(days=RECENT_DAYS - 1)
    some = [entry for entry in listed if entry.period >= first]
    noise_column = error_columns(value)[0]
    values, noise = [], []
    for entry in some:
        rows = read_columns(place, entry, {"step", "node", value, noise_column})
        n_steps = rows["step"].n_unique()
        if noise_column not in rows.columns:
            rows = rows.with_columns(pl.lit(None, dtype=pl.Float64).alias(noise_column))
        parts = rows.sort("node", "step").partition_by("node", as_dict=True)
        by_node = {name: part for (name,), part in parts.items()}
        values.append(_stacked(by_node, drawn, value, n_steps))
        noise.append(_stacked(by_node, drawn, noise_column, n_steps))
    days = tuple(entry.period for entry in some)
    return Recent(max(first, listed[0].period), last, days, tuple(values), tuple(noise))


def _stacked(by_node: dict[str, pl.DataFrame], drawn: Sequence[str], column: str, n_steps: int) -> Values:
    nothing = np.full(n_steps, np.nan)
    return np.array(
        [
            by_node[name][column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
            if name in by_node
            else nothing
            for name in drawn
        ]
    )

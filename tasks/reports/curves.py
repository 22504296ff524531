"""The figures that the data users' page loads when they are looked at, made of published files alone.

A file holds one kind of figure for a block of neighbouring nodes: `days`, the mean of each day of a year, or
`steps`, each step of a month. Its bytes, little-endian:

    "OSC1", the length of the header as uint32, the header as JSON, filled up with spaces to a multiple of 8;
    then the header's `columns`, one after the other: `value` as float64, the others as float32.

A column is (n_nodes, n_places), node by node; NaN where nothing is known. float64 is what the releases have;
standard errors are published with six significant digits, which float32 holds. A file's name is the SHA-256
of its bytes (`optstream.catalogue.page`): it never changes, and the same releases give the same files.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import Entry, error_columns
from optstream.catalogue.backends import Storage
from optstream.catalogue.layout import CURVES, curves_file, is_hash
from optstream.catalogue.read import read_columns
from optstream.errors import PublicationError
from tasks.reports.facts import Daily, Node, PublicFacts, Recent, as_values
from tasks.reports.public import daily_of
from tasks.reports.summaries import Summaries

Values = NDArray[np.float64]
Put = Callable[[Iterable[bytes]], Sequence[str]]
"""Puts files of figures where the page finds them; returns their hashes, in their order."""
MAGIC = b"OSC1"
BLOCK = 64
"""Nodes of a file: a month of half-hours is some 2 MB, a year of days 300 KB."""
COLUMNS = ("value", "noise", "model")


@dataclass(frozen=True)
class CurveFiles:
    """Names of files, relative to the published folder, by year ("2016") or month ("2016-02") and by block.

    days: empty where the page itself holds the days of all nodes. steps: of the months with a release.
    """

    days: Mapping[str, Sequence[str]] = field(default_factory=dict)
    steps: Mapping[str, Sequence[str]] = field(default_factory=dict)


def encode(kind: str, first: date, steps: Sequence[int], start: int, columns: Mapping[str, Values]) -> bytes:
    """Return the bytes of a file of figures; the same figures give the same bytes.

    kind: "days" or "steps". steps: how many each day has from the first on, gaps included as 0. start: number
    of the first node. columns: (n_nodes, n_places) each, `value` among them; others that know nothing are
    left out.
    """
    kept = {
        name: columns[name]
        for name in COLUMNS
        if name in columns and (name == "value" or np.isfinite(columns[name]).any())
    }
    header = {
        "kind": kind,
        "first": first.isoformat(),
        "steps": list(steps),
        "start": start,
        "count": int(columns["value"].shape[0]),
        "columns": list(kept),
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with np.errstate(over="ignore"):  # an error of more than 10^38 is as good as none
        arrays = [one.astype("<f8" if name == "value" else "<f4") for name, one in kept.items()]
    return b"".join([MAGIC, struct.pack("<I", len(text)), text, *(one.tobytes() for one in arrays)])


def of_days(daily: Daily, nodes: range | None = None) -> bytes:
    """Return the means of all days of `daily`, of all nodes or of those with these numbers."""
    some = nodes or range(len(daily.mean))
    columns = {"value": daily.mean[some], "noise": daily.noise[some], "model": daily.model[some]}
    return encode("days", daily.first, daily.steps, some.start, columns)


def of_recent(recent: Recent) -> bytes:
    """Return the steps of the last days."""
    return of_steps(
        recent.first,
        (recent.last - recent.first).days + 1,
        {
            day: {"value": recent.values[n], "noise": recent.noise[n], "model": recent.model[n]}
            for n, day in enumerate(recent.days)
        },
    )


def of_steps(first: date, n_days: int, days: Mapping[date, Mapping[str, Values]], start: int = 0) -> bytes:
    """Return the steps of n_days from the first on. days: columns, (n_nodes, n_steps), of those there are."""
    found = [days.get(first + timedelta(days=number)) for number in range(n_days)]
    steps = [0 if one is None else int(one["value"].shape[1]) for one in found]
    there = [one for one in found if one is not None]
    n_nodes = there[0]["value"].shape[0] if there else 0
    columns = {
        name: np.concatenate([one[name] for one in there], axis=1) if there else np.empty((n_nodes, 0))
        for name in COLUMNS
    }
    return encode("steps", first, steps, start, columns)


def make_curves(
    place: Storage,
    facts: PublicFacts,
    summaries: Summaries,
    known: Mapping[str, Sequence[str]],
    put: Put,
) -> tuple[CurveFiles, dict[str, list[str]]]:
    """Put all files of figures that the page of these facts names; return their names, and what is known now.

    summaries: of the listed files. known: hashes of files by what they were made of, as
    the last time returned them; the names are the same whatever is known. Raises PublicationError if the
    folder cannot be written.
    """
    if facts.daily is None:
        return CurveFiles(), {}
    there = {name.rpartition("/")[2].removesuffix(".bin") for name in place.names_below(CURVES)}
    listed = [entry for entry in facts.listed if entry.period not in facts.lost]
    named: dict[str, dict[str, list[str]]] = {"days": {}, "steps": {}}
    kept: dict[str, list[str]] = {}
    kinds = [("steps", "%Y-%m"), ("days", "%Y")] if len(facts.nodes) > facts.n_drawn else [("steps", "%Y-%m")]
    for kind, span in kinds:
        for name, group in groupby(listed, key=lambda entry: entry.period.strftime(span)):
            entries = list(group)
            key = _key(kind, facts, entries)
            hashes = list(known.get(key, ()))
            if not hashes or not there.issuperset(hashes):
                made = _days(facts, entries, summaries) if kind == "days" else _steps(place, facts, entries)
                hashes = list(put(made))
            kept[key] = hashes
            named[kind][name] = [curves_file(digest) for digest in hashes]
    return CurveFiles(named["days"], named["steps"]), kept


def _key(kind: str, facts: PublicFacts, entries: Sequence[Entry]) -> str:
    """What files are made of: releases, nodes, and this format."""
    made_of = [
        MAGIC.decode(),
        BLOCK,
        kind,
        facts.catalogue.value_column,
        [node.name for node in facts.explored],
        [entry.file_hash for entry in entries],
    ]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


def _blocks(nodes: Sequence[Node]) -> Iterator[range]:
    for start in range(0, len(nodes), BLOCK):
        yield range(start, min(start + BLOCK, len(nodes)))


def _days(facts: PublicFacts, entries: Sequence[Entry], summaries: Summaries) -> Iterator[bytes]:
    daily = daily_of(summaries, entries, [node.name for node in facts.explored])
    for block in _blocks(facts.explored):
        yield of_days(daily, block)


def _steps(place: Storage, facts: PublicFacts, entries: Sequence[Entry]) -> Iterator[bytes]:
    first = entries[0].period.replace(day=1)
    n_days = (entries[-1].period - first).days + 1
    days = {}
    for entry in entries:
        try:
            days[entry.period] = _columns_of_day(place, facts, entry)
        except PublicationError:
            continue  # damaged since it was summed up: a gap, and `optstream ledger verify` names it
    for block in _blocks(facts.explored):
        part = {day: {name: one[block] for name, one in columns.items()} for day, columns in days.items()}
        yield of_steps(first, n_days, part, block.start)


def _columns_of_day(place: Storage, facts: PublicFacts, entry: Entry) -> dict[str, Values]:
    """Return (n_nodes, n_steps) of each column, in the order of the nodes that are explored."""
    value = facts.catalogue.value_column
    noise, model = error_columns(value)
    rows = read_columns(place, entry, {"step", "node", value, noise, model}, {noise, model})
    number = pl.DataFrame(
        {"node": [node.name for node in facts.explored]}, schema={"node": pl.String}
    ).with_row_index("row")
    rows = rows.join(number, on="node")
    steps = rows["step"].rank("dense").to_numpy() - 1
    n_steps = int(steps.max()) + 1 if rows.height else 0
    found = {}
    for name, column in zip(COLUMNS, (value, noise, model), strict=True):
        found[name] = np.full((len(facts.explored), n_steps), np.nan)
        found[name][rows["row"].to_numpy(), steps] = as_values(rows[column])
    return found


def read_known(path: Path) -> dict[str, list[str]]:
    """Return what `make_curves` kept in a file; nothing where there is none, or something else."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        key: hashes
        for key, hashes in document.items()
        if isinstance(hashes, list) and hashes and all(map(is_hash, hashes))
    }

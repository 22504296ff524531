"""The page of a node: its published curve with bands, days before, children, and replaced releases."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import PurePosixPath
from typing import Any
from unicodedata import combining, normalize
from zoneinfo import ZoneInfo

import polars as pl

from optstream.catalogue import Entry, error_columns, read_catalogue
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.layout import SUPERSEDED, folder_of, numbers_and_hash
from optstream.catalogue.read import read_columns, read_statement
from optstream.errors import PublicationError
from optstream.stream import day_of, days_from
from tasks.config import Settings
from tasks.pages import render
from tasks.pages.render import Chart, chart, line, quantity_of, unit_of

COLUMNS = {
    "at": pl.Int64(),
    "node": pl.String(),
    "value": pl.Float64(),
    "noise": pl.Float64(),
    "error": pl.Float64(),
}
MOST_REPLACED = 40  # files of a day that are read: a page must answer, however many there are
MOST_CHILDREN = 20  # that are stacked each by itself; the rest together
MOST_FOUND = 100
SPANS = (1, 7, 28)  # days that a page shows; the first is where it begins
MOST_DAYS = 92
MOST_DAYS_REPLACED = 7
"""Of a longer span only the newest figures are shown: each day may have been estimated many times."""
LINES = {
    "error": ("band of the total error", "the files do not state it"),
    "noise": ("band of the noise alone", "the files do not state it"),
    "day-before": ("the day before", "nothing is published of it"),
    "week-before": ("a week before", "nothing is published of it"),
    "replaced": ("earlier vintages and revisions", f"none of up to {MOST_DAYS_REPLACED} days"),
    "child": ("children, stacked", "the node has none"),
}
"""What can be shown next to the curve: its name, and why it cannot be where it is not there."""


@dataclass(frozen=True)
class Span:
    first: date
    last: date

    @property
    def n_days(self) -> int:
        return (self.last - self.first).days + 1

    def moved(self, days: int) -> "Span":
        return Span(self.first + timedelta(days=days), self.last + timedelta(days=days))


def find_nodes(settings: Settings, text: str) -> tuple[tuple[str, str], ...]:
    """Return codes and names, at most `MOST_FOUND`, that hold a text, whatever its case and accents."""
    named = ((node, settings.called(node)) for node in settings.dated_hierarchy.nodes())
    return tuple(islice((one for one in named if _plain(text) in _plain(one[1])), MOST_FOUND))


def _plain(text: str) -> str:
    letters = (one for one in normalize("NFD", text) if not combining(one))
    return "".join(letters).casefold().strip()


def node_page(settings: Settings, node: str, span: Span) -> dict[str, Any]:
    """Return the values of the template, by name. Raises PublicationError as `read_nodes`."""
    periods = settings.dated_hierarchy.periods
    later = [tree for first, tree in periods if first is not None and first > span.last]
    upto = [tree for first, tree in periods if first is None or first <= span.last]
    # that of the span's last day; where the node is none of it, the nearest one that has it
    tree = next(tree for tree in (*reversed(upto), *later) if node in tree.nodes)
    above, children = tree.parents[tree.nodes.index(node)], tree.children_of(node)
    curve = node_chart(settings, node, span, children)
    own = curve["spans"][0]["lines"][0]
    there = {one["kind"] for one in own} | {key for one in own for key in ("error", "noise") if key in one}
    band = next((kind for kind in ("error", "noise") if kind in there), None)
    return {
        "node": node,
        "called": settings.called,
        "parent": tree.nodes[above] if above >= 0 else None,
        "children": children,
        "span": span,
        "earlier": span.moved(-span.n_days),
        "later": span.moved(span.n_days),
        "spans": [Span(span.last - timedelta(days=n_days - 1), span.last) for n_days in SPANS],
        "curve": curve,
        # kind, name, whether it is shown at first, and why it cannot be
        "shown": [
            (kind, name, kind == band, "" if kind in there else why) for kind, (name, why) in LINES.items()
        ],
    }


def node_chart(settings: Settings, node: str, span: Span, children: Sequence[str] = ()) -> Chart:
    """Return a node's published curve, and those of `LINES` that exist. Raises as `read_nodes`."""
    called, stacked = settings.called, children[:MOST_CHILDREN]
    rows = read_nodes(settings, {node, *stacked}, days_from(span.first - timedelta(days=7), span.last))
    begin = datetime.combine(span.first, time(), ZoneInfo(settings.stream.time_zone)).timestamp()
    own = rows.filter((pl.col("node") == node) & (pl.col("at") >= int(begin)))
    at, value = own["at"].to_list(), own["value"].to_list()

    def on_times(values: Mapping[int, float], days_later: int = 0) -> list[float | None]:
        return [values.get(one - days_later * render.DAY) for one in at]

    def values_of(name: str) -> dict[int, float]:
        return dict(rows.filter(pl.col("node") == name).select("at", "value").iter_rows())

    lines = [line(called(node), value, error=own["error"].to_list(), noise=own["noise"].to_list())]
    for kind, n_days in (("day-before", 1), ("week-before", 7)):
        before = on_times(values_of(node), n_days)
        if any(one is not None for one in before):
            lines.append(line(LINES[kind][0], before, kind))
    parts = [on_times(values_of(child)) for child in stacked]
    stack = [line(called(child), part, "child") for child, part in zip(stacked, parts, strict=True)]
    if n_others := len(children) - len(stack):
        lists = zip(value, *parts, strict=True)
        left = [None if None in known else whole - sum(known) for whole, *known in lists]
        stack.append(line(f"{n_others} others", left, "child"))
    if span.n_days <= MOST_DAYS_REPLACED:
        replaced = _read_replaced(settings, node, days_from(span.first, span.last))
        lines += [line(label, on_times(old), "replaced") for label, old in replaced.items()]
    return chart(
        quantity_of(settings.published.value),
        unit_of(settings.published.value),
        [render.span("each step", at, [[*lines, *stack]])],
        nodes=[called(node)],
        zone=settings.stream.time_zone,
        least=0.0 if settings.counts_known else None,
    )


def read_nodes(settings: Settings, nodes: Collection[str], days: Collection[date]) -> pl.DataFrame:
    """Return published figures of these nodes and days, `COLUMNS`; PublicationError for an altered file."""
    place = open_storage(settings.published_folder)
    catalogue = read_catalogue(place)
    frames = [pl.DataFrame(schema=COLUMNS)]
    for entry in catalogue.listed:
        if day_of(entry.period) in days:
            frames.append(_rows(place, entry, catalogue.value_column, nodes))
    return pl.concat(frames).sort("node", "at")


def _read_replaced(settings: Settings, node: str, days: Collection[date]) -> dict[str, dict[int, float]]:
    """Return a node's replaced figures by "revision 0, vintage 1", the oldest first, where readable."""
    place = open_storage(settings.published_folder)
    value = read_catalogue(place).value_column
    found: dict[tuple[int, int], dict[int, float]] = {}
    for day in days:
        names = [PurePosixPath(name).name for name in place.names_below(folder_of(SUPERSEDED, day))]
        known = filter(None, (numbers_and_hash(SUPERSEDED, name) for name in names))
        for _, digest in islice(known, MOST_REPLACED):
            old = Entry(
                period=day, revision=0, vintage=0, file_hash=digest, rows_hash=digest, ledger_head="unknown"
            )
            with suppress(PublicationError):
                stated, rows = read_statement(place, old), _rows(place, old, value, {node})
                figures = found.setdefault((stated.revision, stated.vintage), {})
                figures.update(rows.select("at", "value").iter_rows())
    return {f"revision {one}, vintage {other}": found[one, other] for one, other in sorted(found)}


def _rows(place: Storage, entry: Entry, value: str, nodes: Collection[str]) -> pl.DataFrame:
    errors = error_columns(value)
    rows = read_columns(place, entry, {"timestamp", "node", value, *errors}, {"timestamp", *errors})
    return rows.filter(pl.col("node").is_in(list(nodes)) & pl.col("timestamp").is_not_null()).select(
        pl.col("timestamp").dt.epoch("s").alias("at"), "node", value=value, noise=errors[0], error=errors[1]
    )

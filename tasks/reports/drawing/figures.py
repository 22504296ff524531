"""The tables of a node on a page, and the plot of one day for the orchestrator's pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from optstream.catalogue.about import called
from tasks.reports.drawing.paths import Scale, band, line
from tasks.reports.facts import Daily, Node, PublicFacts
from tasks.reports.numbers import MONTHS, day_in_words, shown, ticks

Values = NDArray[np.float64]
Z = 1.96
"""Standard deviations on each side of a band: 95 % of normal noise."""


@dataclass(frozen=True)
class Plot:
    """A plot as values that a template shows.

    line, band: SVG paths in a box `width` wide.
    y_labels, x_labels: text and percent from top and left.
    words: what the plot shows, in a sentence.
    """

    title: str
    width: int
    line: str
    band: str
    y_labels: tuple[tuple[str, float], ...]
    x_labels: tuple[tuple[str, float], ...]
    words: str


@dataclass(frozen=True)
class TableRow:
    """A day, or a month of days."""

    when: str
    mean: str
    least: str
    most: str
    noise: str


@dataclass(frozen=True)
class Figure:
    """A node's table. rows: the newest first."""

    node: Node
    place: str
    rows: tuple[TableRow, ...]


def figures_of(facts: PublicFacts) -> tuple[Figure, ...]:
    """The tables of the drawn nodes: the last days one by one, and the months before them."""
    if facts.daily is None or facts.recent is None:
        return ()
    n_recent = (facts.recent.last - facts.recent.first).days + 1
    return tuple(
        Figure(node, _place(facts, node), _rows(facts.daily, number, facts.daily.n_days - n_recent))
        for number, node in enumerate(facts.nodes[: facts.n_drawn])
    )


def _place(facts: PublicFacts, node: Node) -> str:
    if node.parent is None:
        return "the root"
    title = facts.title_of(node.level)
    return f"part of {called(node.parent, facts.about.nodes)}, {title[0].lower()}{title[1:]}"


def _rows(daily: Daily, number: int, split: int) -> tuple[TableRow, ...]:
    """The newest first: days from column `split` on, months before it."""
    days = (
        _row(daily, number, day_in_words(daily.first + timedelta(days=column)), column, column + 1)
        for column in reversed(range(split, daily.n_days))
        if np.isfinite(daily.mean[number, column])
    )
    return (*days, *reversed(list(_month_rows(daily, number, split))))


def plot_of(
    title: str,
    width: int,
    places: Values,
    values: Values,
    errors: Values,
    x_labels: tuple[tuple[str, float], ...],
    subject: str,
    unit: str,
    least: float | None = None,
) -> Plot:
    """Values and the band of their errors, (n,) each, at places from 0 to width; NaN where nothing is known.

    subject: what the values are, for the sentence that stands for the picture. least: what no value lies
    below, nor a band.
    """
    lower, upper = values - Z * errors, values + Z * errors
    if least is not None:
        lower = np.maximum(lower, least)
    seen = np.concatenate([values, lower, upper])
    seen = seen[np.isfinite(seen)]
    marks = ticks(float(seen.min()), float(seen.max())) if seen.size else ticks(0.0, 1.0)
    scale = Scale(marks[0], marks[-1])
    known = values[np.isfinite(values)]
    words = f"{subject[:1].upper()}{subject[1:]}: nothing published"
    if known.size:
        words = (
            f"{subject[:1].upper()}{subject[1:]}: from {shown(float(known.min()))} to "
            f"{shown(float(known.max()))} {unit}, last {shown(float(known[-1]))} {unit}".strip()
        )
    return Plot(
        title,
        width,
        line(places, values, scale),
        band(places, lower, upper, scale) if np.isfinite(errors).any() else "",
        tuple((shown(mark), scale.percent(mark)) for mark in marks),
        x_labels,
        words,
    )


def _month_rows(daily: Daily, number: int, stop: int) -> Iterator[TableRow]:
    """The months of the columns before `stop`, rising; those without a day are left out."""
    start = 0
    while start < stop:
        day = daily.first + timedelta(days=start)
        after = date(day.year + day.month // 12, day.month % 12 + 1, 1)
        end = min(stop, (after - daily.first).days)
        n_known = int(np.isfinite(daily.mean[number, start:end]).sum())
        if n_known:
            name = f"{MONTHS[day.month - 1]} {day.year}, {n_known} day{'' if n_known == 1 else 's'}"
            yield _row(daily, number, name, start, end)
        start = end


def _row(daily: Daily, number: int, when: str, start: int, end: int) -> TableRow:
    """The row of a node's columns from `start` on, before `end`."""
    noise = daily.noise[number, start:end]
    said = noise[np.isfinite(noise)]
    return TableRow(
        when,
        shown(float(np.nanmean(daily.mean[number, start:end]))),
        shown(float(np.nanmin(daily.least[number, start:end]))),
        shown(float(np.nanmax(daily.most[number, start:end]))),
        shown(float(said.mean()) if said.size else float("nan")),
    )

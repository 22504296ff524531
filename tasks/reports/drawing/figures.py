"""The curves of a node, ready for a page: paths, labels, words for those who do not see them, a table."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

import numpy as np
from numpy.typing import NDArray

from optstream.catalogue.about import called
from tasks.reports.drawing.paths import Scale, band, dots, line
from tasks.reports.facts import Daily, Node, PublicFacts, Recent
from tasks.reports.numbers import MONTHS, day_in_words, shown, ticks

Values = NDArray[np.float64]
Z = 1.96
"""Standard deviations on each side of a band: 95 % of normal noise."""
UNITS_A_DAY = 100
"""Of the box of the last days."""
PERCENT_A_LETTER = 2.6
"""The width of a letter below a curve, of the narrowest plot: 360 px of page leave it some 266."""


@dataclass(frozen=True)
class Plot:
    """A plot as values that a template shows.

    line, dots, band: SVG paths in a box `width` wide; dots are values by themselves, which a line hides.

    y_labels, x_labels: text and percent from top and left.
    words: what the plot shows, in a sentence.
    """

    title: str
    width: int
    line: str
    dots: str
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
    """A node's. days, months: the newest first."""

    node: Node
    place: str
    plots: tuple[Plot, ...]
    days: tuple[TableRow, ...]
    months: tuple[TableRow, ...]


def figures_of(facts: PublicFacts, unit: str, quantity: str, most: int | None = None) -> tuple[Figure, ...]:
    """A figure for each drawn node, or for the first of them, at most `most`."""
    if facts.daily is None or facts.recent is None:
        return ()
    named = partial(called, facts=facts.about.nodes)
    draw = partial(_figure, facts.daily, facts.recent, unit, facts.least)
    return tuple(
        draw(number, node, f"{quantity} of {named(node.name)}", _place(facts, node))
        for number, node in enumerate(facts.nodes[: facts.n_drawn][:most])
    )


def _place(facts: PublicFacts, node: Node) -> str:
    if node.parent is None:
        return "the root"
    title = facts.title_of(node.level)
    return f"part of {called(node.parent, facts.about.nodes)}, {title[0].lower()}{title[1:]}"


def _figure(
    daily: Daily,
    recent: Recent,
    unit: str,
    least: float | None,
    number: int,
    node: Node,
    subject: str,
    place: str,
) -> Figure:
    plots = [_recent_plot(recent, number, subject, unit, least)]
    n_recent = (recent.last - recent.first).days + 1
    if daily.n_days > n_recent:
        plots.append(_daily_plot(daily, number, subject, unit, least))
    split = daily.n_days - n_recent
    days = tuple(
        _row(daily, number, day_in_words(daily.first + timedelta(days=column)), column, column + 1)
        for column in reversed(range(split, daily.n_days))
        if np.isfinite(daily.mean[number, column])
    )
    months = tuple(_month_rows(daily, number, split))
    return Figure(node, place, tuple(plots), days, months[::-1])


def _recent_plot(recent: Recent, number: int, subject: str, unit: str, least: float | None) -> Plot:
    n_days = (recent.last - recent.first).days + 1
    known = {
        (day - recent.first).days: (values[number], errors[number])
        for day, values, errors in zip(recent.days, recent.values, recent.model, strict=True)
    }
    gap = np.array([np.nan])
    days = [known.get(offset, (gap, gap)) for offset in range(n_days)]
    places = [
        UNITS_A_DAY * (offset + (np.arange(own.size) + 0.5) / own.size)
        for offset, (own, _) in enumerate(days)
    ]
    x_labels = _that_fit(
        (f"{day.day} {MONTHS[day.month - 1]}", round(100 * offset / n_days, 2))
        for offset in range(0, n_days, 7 if n_days > 14 else -(-n_days // 5))
        if (day := recent.first + timedelta(days=offset))
    )
    all_places, all_values, all_errors = map(np.concatenate, (places, *zip(*days, strict=True)))
    title = f"Step by step{_in(unit)}, {day_in_words(recent.first)} to {day_in_words(recent.last)}"
    words = f"{subject}, step by step"
    return plot_of(
        title, UNITS_A_DAY * n_days, all_places, all_values, all_errors, x_labels, words, unit, least
    )


def _daily_plot(daily: Daily, number: int, subject: str, unit: str, least: float | None) -> Plot:
    last = daily.first + timedelta(days=daily.n_days - 1)
    title = f"Daily means{_in(unit)}, {day_in_words(daily.first)} to {day_in_words(last)}"
    places = np.arange(daily.n_days) + 0.5
    return plot_of(
        title,
        daily.n_days,
        np.floor(places),
        daily.mean[number],
        daily.model[number],
        _that_fit(_date_labels(daily.first, daily.n_days)),
        f"daily means of {subject}",
        unit,
        least,
    )


def _in(unit: str) -> str:
    return f", in {unit}" if unit else ""


def _that_fit(labels: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Those that end before their plot does; the last day stands in its title."""
    return tuple((text, left) for text, left in labels if left + PERCENT_A_LETTER * len(text) <= 100)


def _date_labels(first: date, n_days: int) -> Iterator[tuple[str, float]]:
    """Some first days of years, or of months in short spans; at most seven."""
    days = [first + timedelta(days=number) for number in range(n_days)]
    by_year = n_days > 2 * 366
    starts = [day for day in days if day.day == 1 and (day.month == 1 or not by_year)]
    every = max(1, -(-len(starts) // 7))
    for day in starts[::every]:
        label = str(day.year) if by_year else f"{MONTHS[day.month - 1]} {day.year}"
        yield label, round(100 * (day - first).days / n_days, 2)


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
        dots(places, values, scale),
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

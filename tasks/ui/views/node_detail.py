"""One node: its curve with bands, its children stacked, and the day and the week before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from optstream.stream import days_from
from tasks.reports.drawing.figures import Z

DAY = 86_400
MOST_CHILDREN = 20
"""That are stacked each by itself; the rest together."""
SPANS = (1, 7, 28)
"""Days that a page shows; the first is where it begins."""
MOST_DAYS = 92


@dataclass(frozen=True)
class Series:
    """A line of the plot, on the times of all. kind: "value", "noise-low", "noise-high", "error-low",
    "error-high", "day-before", "week-before", "replaced" or "child"; the page stacks children, the first at
    the bottom.
    """

    label: str
    kind: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class NodeCurve:
    """Lines of equal length. at: starts of steps in seconds since 1970, rising; None: not published."""

    at: tuple[int, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Span:
    """Days from the first to the last."""

    first: date
    last: date

    @property
    def n_days(self) -> int:
        """How many they are."""
        return (self.last - self.first).days + 1

    def moved(self, days: int) -> "Span":
        """Return as many days, so many later."""
        return Span(self.first + timedelta(days=days), self.last + timedelta(days=days))

    def of_length(self, n_days: int) -> "Span":
        """Return so many days that end with the same."""
        return Span(self.last - timedelta(days=n_days - 1), self.last)

    def days(self) -> list[date]:
        """Return the days."""
        return days_from(self.first, self.last)

    def with_week_before(self) -> list[date]:
        """Return the days that a page of it needs: the week before, too."""
        return days_from(self.first - timedelta(days=7), self.last)


def node_curve(
    rows: pl.DataFrame,
    node: str,
    children: Sequence[str],
    begin: int,
    replaced: Mapping[str, pl.DataFrame] | None = None,
    called: Callable[[str], str] = str,
    least: float | None = None,
) -> NodeCurve:
    """Return the lines of a node, over the times at which it is published. Pure.

    rows: as `tasks.ui.node_facts.read_nodes` gives them, of the node and the children that are stacked, which
    are in the order of the stack; those before `begin` are for the day and the week before. replaced: what
    was published of the node before, by vintage and revision. called: what a person is told of a node.
    least: what no value lies below, nor a band.
    """
    stacked = children[:MOST_CHILDREN]
    by_node = {name: rows.filter(pl.col("node") == name) for name in (node, *stacked)}
    own = by_node[node].filter(pl.col("at") >= begin)
    at = own["at"].to_list()
    before = (Series(label, "replaced", _on(at, old)) for label, old in (replaced or {}).items())
    stack = [Series(called(child), "child", _on(at, by_node[child])) for child in stacked]
    if n_others := len(children) - len(stack):
        stack.append(Series(f"{n_others} others", "child", _left(own["value"].to_list(), stack)))
    lines = _lines(own, by_node[node], called(node), at, least)
    return NodeCurve(tuple(at), (*lines, *stack, *before))


def _on(at: Sequence[int], rows: pl.DataFrame) -> tuple[float | None, ...]:
    """The values at these times; None where there is none."""
    values = dict(rows.select("at", "value").iter_rows())
    return tuple(values.get(one) for one in at)


def _lines(
    own: pl.DataFrame, whole: pl.DataFrame, label: str, at: Sequence[int], least: float | None
) -> Iterator[Series]:
    """The node's own. whole: with the days before. least: as `node_curve`."""
    yield Series(label, "value", tuple(own["value"].to_list()))
    for kind in ("error", "noise"):
        if own[kind].null_count() < own.height:
            low, high = own["value"] - Z * own[kind], own["value"] + Z * own[kind]
            yield Series(f"{kind}, from", f"{kind}-low", tuple(low.clip(lower_bound=least).to_list()))
            yield Series(f"{kind}, to", f"{kind}-high", tuple(high.to_list()))
    for before, kind, days in (("the day before", "day-before", 1), ("a week before", "week-before", 7)):
        moved = _on([one - days * DAY for one in at], whole)
        if any(one is not None for one in moved):
            yield Series(before, kind, moved)


def _left(whole: Sequence[float], parts: Sequence[Series]) -> tuple[float | None, ...]:
    """What is left of a whole at each time; None where a part is not known."""
    left = []
    for value, *known in zip(whole, *(one.values for one in parts), strict=True):
        left.append(None if None in known else value - sum(known))
    return tuple(left)

"""What the page of a node shows, from the published folder."""

from datetime import datetime, time
from itertools import islice
from typing import Any
from unicodedata import combining, normalize
from zoneinfo import ZoneInfo

from optstream.stream import AggregationTree
from tasks.config import Settings
from tasks.reports.drawing.figures import Z
from tasks.reports.numbers import quantity_of, unit_of
from tasks.ui.node_facts import read_nodes, read_replaced
from tasks.ui.views.node_detail import MOST_CHILDREN, SPANS, NodeCurve, Span, node_curve

MOST_ROWS = 500
"""Of the table, the newest."""
MOST_FOUND = 100
MOST_DAYS_REPLACED = 7
"""Of a longer span only the newest figures are shown: each day may have been estimated many times."""


def find_nodes(settings: Settings, text: str) -> tuple[tuple[str, str], ...]:
    """Return codes and names of the nodes whose name or code holds a text, whatever its case and accents.

    In the tree's order, at most `MOST_FOUND`; an empty text finds all.
    """
    named = ((node, settings.called(node)) for node in settings.dated_hierarchy.nodes())
    return tuple(islice((one for one in named if _plain(text) in _plain(one[1])), MOST_FOUND))


def _plain(text: str) -> str:
    letters = (one for one in normalize("NFD", text) if not combining(one))
    return "".join(letters).casefold().strip()


def node_page(settings: Settings, node: str, span: Span) -> dict[str, Any]:
    """Return the values of the template, by name.

    Raises PublicationError as `read_nodes`.
    """
    rows, zone = read_nodes(settings, {node}, span.days()), ZoneInfo(settings.stream.time_zone)
    tree, value = _tree_with(settings, node, span), settings.published.value
    above = tree.parents[tree.nodes.index(node)]
    return {
        "node": node,
        "called": settings.called,
        "parent": tree.nodes[above] if above >= 0 else None,
        "children": tree.children_of(node),
        "quantity": quantity_of(value),
        "unit": unit_of(value),
        "span": span,
        "zone": zone.key,
        "earlier": span.moved(-span.n_days),
        "later": span.moved(span.n_days),
        "spans": [span.of_length(n_days) for n_days in SPANS],
        "table": [
            (moment_in(zone, at), value, None if noise is None else Z * noise)
            for at, value, noise in rows.select("at", "value", "noise").tail(MOST_ROWS).reverse().iter_rows()
        ],
    }


def curve_of(settings: Settings, node: str, span: Span) -> NodeCurve:
    """Return the lines of a node's page. Raises PublicationError as `read_nodes`."""
    children = _tree_with(settings, node, span).children_of(node)
    stacked = children[:MOST_CHILDREN]
    rows = read_nodes(settings, {node, *stacked}, span.with_week_before())
    short = span.n_days <= MOST_DAYS_REPLACED
    replaced = read_replaced(settings, node, span.days()) if short else {}
    least = 0.0 if settings.counts_known else None
    return node_curve(rows, node, children, _begin(settings, span), replaced, settings.called, least)


def _tree_with(settings: Settings, node: str, span: Span) -> AggregationTree:
    """The tree of the span's last day; where the node is none of it, the nearest one that has it."""
    periods = settings.dated_hierarchy.periods
    later = [tree for first, tree in periods if first is not None and first > span.last]
    upto = [tree for first, tree in periods if first is None or first <= span.last]
    return next(tree for tree in (*reversed(upto), *later) if node in tree.nodes)


def moment_in(zone: ZoneInfo, at: int) -> str:
    """Return "2016-06-02 23:30 +02:00" of seconds since 1970; the offset tells the hours of autumn apart."""
    local = datetime.fromtimestamp(at, zone)
    return f"{local:%Y-%m-%d %H:%M} {local.isoformat()[-6:]}"


def _begin(settings: Settings, span: Span) -> int:
    """The first day's local midnight, in seconds since 1970."""
    return int(datetime.combine(span.first, time(), ZoneInfo(settings.stream.time_zone)).timestamp())

"""Plots as JSON that `static/chart.js` draws; times are seconds since 1970, of zone "UTC" perhaps local."""

from collections.abc import Sequence
from datetime import date
from math import isfinite
from typing import Any

from optstream.stream import Hour, day_of

Z = 1.96
"""Standard deviations on each side of a band: 95 % of normal noise."""
DIGITS = 6
"""Significant ones of a drawn value: files have the published numbers unrounded."""
DAY = 86_400
Numbers = Sequence[float | None]
Chart = dict[str, Any]


def chart(
    quantity: str, unit: str, spans: Sequence[Chart], *, nodes: Sequence[str] = (), zone: str = "UTC",
    least: float | None = None, few: bool = False,
) -> Chart:  # fmt: skip
    """Return a document; `nodes` has a name for each list of lines of a span, `least` ends the bands."""
    return {
        "quantity": quantity[:1].upper() + quantity[1:], "unit": unit, "z": Z, "least": least, "zone": zone,
        "nodes": list(nodes), "spans": list(spans), "few": few,
    }  # fmt: skip


def span(label: str, at: Sequence[int], lines: Sequence[Sequence[Chart]]) -> Chart:
    """Return a span of time. lines: of `line`, as many as `at`, for each node."""
    return {"label": label, "at": list(at), "lines": [list(own) for own in lines]}


def line(
    label: str, values: Numbers, kind: str = "value", *,
    error: Numbers | None = None, noise: Numbers | None = None,
) -> Chart:  # fmt: skip
    """Return a line. kind: how it is drawn: "value", "several", "child" (stacked), "day-before",
    "week-before", "replaced", "stairs", "limit", "bars". error, noise: half widths of bands, divided by `Z`.
    """
    bands = {name: own for name, own in (("error", error), ("noise", noise)) if own and any(map(_known, own))}
    return {"label": label, "kind": kind, "values": rounded(values)} | {
        name: rounded(own) for name, own in bands.items()
    }


def rounded(values: Numbers) -> list[float | None]:
    """Return six significant digits of each, None where it is not known."""
    return [float(f"{one:.{DIGITS}g}") if one is not None and isfinite(one) else None for one in values]


def _known(one: float | None) -> bool:
    return one is not None and isfinite(one)


def seconds(period: date) -> int:
    """Return the local clock time at which a day or an hour begins, as if it were UTC's."""
    hour = period.hour if isinstance(period, Hour) else 0
    return (day_of(period) - date(1970, 1, 1)).days * DAY + 3600 * hour

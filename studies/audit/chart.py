"""The audit's chart: what was measured beside what is claimed and what the accountant says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt

from tasks.planning.advice.chart import BLUE, GREY, INK, RED, Layers, framed, heading, inline, write_file

MEASURED, CLAIMED, ACCOUNTANT = "at least (measured)", "claimed", "the accountant's figure"
KINDS = {"ours": "our mechanisms and histories", "control": "broken on purpose", "twin": "their honest twins"}
WIDTH, ROW, LARGEST = 420, 19, 60


def write_chart(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write it; rows as `AuditRow.to_document`. Raises ParameterError unless path ends in .svg or .png."""
    write_file(draw(rows), path)


def draw(rows: Sequence[Mapping[str, Any]]) -> alt.VConcatChart:
    """A panel for each kind that is present: a bar to the lower bound, ticks at claim and accountant."""
    panels = [
        _panel([row for row in rows if row["kind"] == kind], title)
        for kind, title in KINDS.items()
        if any(row["kind"] == kind for row in rows)
    ]
    error = max((row["error"] for row in rows), default=0.0)
    title = heading(
        "Epsilon measured from below",
        f"Each bar holds with probability {1 - error:.10g}; past its claim the guarantee is false.",
    )
    whole = alt.vconcat(*panels, spacing=22, title=title, padding=14, background="white")
    chart: alt.VConcatChart = whole.resolve_scale(x="shared", color="shared")
    return framed(chart)


def _panel(rows: Sequence[Mapping[str, Any]], title: str) -> Layers:
    names = [f"{row['mechanism']}: {row['neighbours']}" for row in rows]
    figures = [
        {"name": name, "figure": figure, "epsilon": row[column]}
        for name, row in zip(names, rows, strict=True)
        for figure, column in ((MEASURED, "lower_bound"), (CLAIMED, "claimed"), (ACCOUNTANT, "accountant"))
        if row[column] is not None and not (figure == CLAIMED and row["claimed"] == row["accountant"])
    ]
    scale = alt.Scale(type="symlog", constant=0.5, domain=[0, LARGEST])
    axis = alt.Axis(values=[0, 0.5, 1, 2, 5, 10, 20, 50], title="epsilon", format="~g", labelFontSize=12)
    x = alt.X("epsilon:Q", scale=scale, axis=axis)
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=560, labelFontSize=11.5))
    color = alt.Color(
        "figure:N",
        scale=alt.Scale(domain=[MEASURED, CLAIMED, ACCOUNTANT], range=[BLUE, RED, GREY]),
        legend=alt.Legend(title=None, orient="top", labelColor=INK, labelFontSize=12),
    )
    base = alt.Chart(inline(figures), title=alt.TitleParams(title, anchor="start", color=INK))
    bars = base.transform_filter(alt.datum.figure == MEASURED).mark_bar(height=9)
    ticks = base.transform_filter(alt.datum.figure != MEASURED).mark_tick(thickness=3, size=15, opacity=1)
    return alt.layer(bars.encode(x=x, y=y, color=color), ticks.encode(x=x, y=y, color=color)).properties(
        width=WIDTH, height=ROW * len(rows)
    )

"""The chart of temporal leakage: what each time point loses to one who knows the chain."""

from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import altair as alt
import numpy as np

from studies.leakage.charged_history import History
from studies.leakage.temporal import Leakage
from tasks.planning.advice.chart import BLUE, GREY, INK, RED, Layers, framed, heading, inline, write_file

WIDTH, HEIGHT = 720, 300
MOST_STEPS, MOST_POINTS = 240, 2000
"""Up to so many steps are drawn one by one, else the worst of each day, at most so many points in all."""
HIGHEST_BOUND = 2
"""A bound above so many times the worst leakage is told, not drawn: the lines would lie on the floor."""
# dashes and weights differ, for readers in grey
STYLES = {
    "total": (INK, [1, 0]),
    "backward": (BLUE, [7, 3]),
    "forward": (RED, [2, 2]),
    "epsilon": (GREY, [10, 3, 2, 3]),
}
LABELS = {
    "total": "total",
    "backward": "backward (from the past)",
    "forward": "forward (from the future)",
    "epsilon": "epsilon, without the chain",
}


def write_chart(found: Leakage, path: Path) -> None:
    """Write it. Raises ParameterError unless path ends in .svg or .png."""
    write_file(draw(found), path)


def draw(found: Leakage) -> Layers:
    """Lines over time, and the bound; a long history is drawn by the worst of neighbouring points."""
    points = points_of(found)
    labels, styles = list(LABELS.values()), list(STYLES.values())
    legend = alt.Legend(title=None, orient="top", labelFontSize=12.5, labelLimit=300, symbolSize=400)
    color = alt.Scale(domain=labels, range=[color for color, _ in styles])
    dash = alt.Scale(domain=labels, range=[dash for _, dash in styles])
    axis = alt.Axis(labelFontSize=12, labelOverlap=True, format=_date_format(found), tickCount=8)
    lines = (
        alt.Chart(inline(points))
        .transform_fold([*labels], as_=["what", "leakage"])
        .mark_line(strokeWidth=2, point=len(points) == 1)
        .encode(
            x=alt.X("time:T", title=None, scale=alt.Scale(type="utc"), axis=axis),
            y=alt.Y("leakage:Q", title="leakage (epsilon)", scale=alt.Scale(domainMin=0)),
            color=alt.Color("what:N", sort=labels, legend=legend, scale=color),
            strokeDash=alt.StrokeDash("what:N", sort=labels, scale=dash),
        )
    )
    chart: Layers = alt.layer(lines, *_bound(found)).properties(
        width=WIDTH, height=HEIGHT, title=_heading(found), padding=14, background="white"
    )
    return framed(chart)


def points_of(found: Leakage) -> list[dict[str, str | float]]:
    """What is drawn: time and the four figures of each point. Of a summary a point has the worst of each."""
    history, size = found.history, _block(found)
    daily = _daily(history)
    columns = {}
    for name, series, _ in found.rows:
        values = history.worst_of_days(series) if daily else series
        columns[LABELS[name]] = np.maximum.reduceat(values, np.arange(0, values.size, size)).tolist()
    times = _times(history, daily)[::size]
    return [
        {"time": moment, **{label: values[number] for label, values in columns.items()}}
        for number, moment in enumerate(times)
    ]


def _daily(history: History) -> bool:
    return history.by == "period" or history.epsilons.size > MOST_STEPS


def _block(found: Leakage) -> int:
    """How many days, or steps, a point stands for."""
    history = found.history
    return -(-len(history.days) // MOST_POINTS) if _daily(history) else 1


def _times(history: History, daily: bool) -> list[str]:
    """From the first local midnight in equal steps, so steps are off by an hour where the clock has moved."""
    step = timedelta(days=1) if daily else timedelta(minutes=history.calendar.step_minutes)
    first = datetime.combine(history.days[0], time(), UTC)
    n_points = len(history.days) if daily else history.epsilons.size
    return [(first + number * step).isoformat() for number in range(n_points)]


def _date_format(found: Leakage) -> str:
    return "%Y-%m-%d" if _daily(found.history) else "%m-%d %H:%M"


def _drawn_bound(found: Leakage) -> bool:
    return found.bound <= HIGHEST_BOUND * float(found.total.max())


def _bound(found: Leakage) -> list[Layers]:
    """A thin line at the bound, named beside its right end."""
    if not _drawn_bound(found):
        return []
    base = alt.Chart(inline([{"bound": found.bound, "label": f"bound {found.bound:g}"}]))
    rule = base.mark_rule(color=INK, strokeWidth=0.8).encode(y="bound:Q")
    label = base.mark_text(align="left", color=INK, fontSize=12).encode(
        y="bound:Q", x=alt.value(WIDTH + 6), text="label:N"
    )
    return [alt.layer(rule, label)]


def _heading(found: Leakage) -> alt.TitleParams:
    by_step, size = found.history.by == "step", _block(found)
    worst = "the worst step of " if by_step and _daily(found.history) else "the worst of " if size > 1 else ""
    each = f"; each point is {worst}{'a day' if size == 1 else f'{size} days'}" if worst else ""
    far = "" if _drawn_bound(found) else f"; the bound {found.bound:g} is far above"
    return heading(
        f"{found.stream}: what one who knows the chain learns about one {'step' if by_step else 'day'}",
        f"Chain of {found.chain.forward.n_states} states{each}{far}.",
    )

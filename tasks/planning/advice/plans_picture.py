"""The picture of `optstream advise`: expected errors of all plans, level by level."""

from pathlib import Path

import altair as alt

from tasks.planning.advice.chart import BLUE, GREY, INK, RED, framed, heading, inline, write_file
from tasks.planning.advice.propose_plans import PlanAdvice, StreamAdvice

WIDTH, ROW_HEIGHT = 210, 17
KINDS = {"best": BLUE, "as configured": RED, "other": GREY}
SHAPES = ["circle", "diamond", "square"]


def draw_plans(advice: PlanAdvice, path: Path) -> None:
    """Draw the expected error of every plan by the size of its node, a panel a level, a row of them a stream.
    Raises ParameterError unless path ends in .svg or .png.
    """
    streams = [_panels(one) for one in advice.streams]
    chart = alt.vconcat(*streams, title=heading("Expected errors of plans", "from public facts alone"))
    write_file(framed(chart.resolve_scale(x="shared")), path)


def _panels(advice: StreamAdvice) -> alt.FacetChart:
    compared = advice.compared
    marked = {id(compared.configured): "as configured", id(compared.best): "best"}
    rows = [
        {
            "plan": plan.choice.label,
            "level": compared.levels[level],
            "error": one.error / one.size,
            "kind": marked.get(id(plan), "other"),
        }
        for plan in compared.plans
        for level, one in enumerate(plan.expected)
        if one.size
    ]
    order = [plan.choice.label for plan in compared.plans]
    kinds = alt.Scale(domain=list(KINDS), range=list(KINDS.values()))
    legend = alt.Legend(title=None, orient="bottom")
    points = (
        alt.Chart()
        .mark_point(size=60, filled=True, opacity=1)
        .encode(
            x=alt.X(
                "error:Q",
                title="error by typical size",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(tickCount=3, labelOverlap=True),
            ),
            y=alt.Y("plan:N", sort=order, title=None, axis=alt.Axis(labelLimit=340, grid=True)),
            color=alt.Color("kind:N", scale=kinds, legend=legend),
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=list(KINDS), range=SHAPES), legend=legend),
        )
    )
    layers = alt.layer(points, data=inline(rows)).properties(width=WIDTH, height=ROW_HEIGHT * len(order))
    header = alt.Header(title=compared.settings.stream.name, labelColor=INK, titleColor=INK)
    return layers.facet(column=alt.Column("level:N", header=header, sort=list(compared.levels)))

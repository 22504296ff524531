"""The chart of one released day: panels of nodes, each with its truth and a band of 95 %."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import altair as alt
import polars as pl
import vl_convert

from optstream.errors import ParameterError

FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
INK, BLUE, GRID = "#1a1a1a", "#08519c", "#e4e4e4"
PALE = "#c6dbef"
RELEASED, TRUTH = "released", "simulated truth"
BAND = "95 % band"
PANEL_WIDTH, PANEL_HEIGHT = 372, 250
SYMBOL = 110
Axes = dict[str, alt.X | alt.Y]


def draw(
    released: pl.DataFrame,
    truth: pl.DataFrame,
    band: pl.DataFrame | None = None,
    *,
    names: Mapping[str, str],
    title: str,
    subtitle: Sequence[str] = (),
    step_hours: float = 0.5,
) -> alt.HConcatChart:
    """A panel for each node of `names`, in order: released and true load, and the band around the released.

    released, truth: columns node, step, load_mw. band: columns node, step, half_width_mw, or None.
    Steps count from midnight; loads are drawn in GW.
    Raises ParameterError if a node has no rows.
    """
    panels = [
        _panel(
            _of_node(released, node, "released"),
            _of_node(truth, node, "truth"),
            None if band is None else _of_node(band, node, "band"),
            name,
            step_hours,
            y_title=number == 0,
        )
        for number, (node, name) in enumerate(names.items())
    ]
    heading = alt.TitleParams(
        title, subtitle=list(subtitle), anchor="start", fontSize=17, offset=16,
        subtitleFontSize=12.5, subtitlePadding=6, subtitleLineHeight=17, subtitleColor=INK,
    )  # fmt: skip
    return (
        alt.hconcat(*panels, spacing=26, title=heading, padding=14, background="white")
        .resolve_scale(y="independent", color="shared", strokeDash="shared", fill="shared", stroke="shared")
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_title(color=INK, fontWeight="bold")
        .configure_axis(
            labelColor=INK, titleColor=INK, titleFontWeight="normal", labelFontSize=12, titleFontSize=12,
            gridColor=GRID, domainColor=INK, tickColor=INK,
        )
        .configure_legend(
            labelColor=INK, labelFontSize=12.5, labelLimit=500, title=None, orient="bottom", columnPadding=18,
            padding=9, offset=8,
        )
    )  # fmt: skip


def _of_node(rows: pl.DataFrame, node: str, what: str) -> pl.DataFrame:
    chosen = rows.filter(pl.col("node") == node).sort("step")
    if chosen.is_empty():
        raise ParameterError(f"the {what} frame has no rows of node {node!r}")
    return chosen


def _panel(
    released: pl.DataFrame,
    truth: pl.DataFrame,
    band: pl.DataFrame | None,
    name: str,
    step_hours: float,
    y_title: bool,
) -> alt.LayerChart:
    hour = (pl.col("step") * step_hours).alias("hour")
    rows = pl.concat(
        frame.select("step", hour, (pl.col("load_mw") / 1000).alias("load"), pl.lit(label).alias("line"))
        for frame, label in ((truth, TRUTH), (released, RELEASED))
    )
    axes = {
        "x": alt.X(
            "hour:Q",
            title="hours since local midnight",
            scale=alt.Scale(domain=[0, max(24.0, rows["hour"].max())], nice=False),
            axis=alt.Axis(values=list(range(0, 25, 3)), grid=False, labelFlush=False),
        ),
        "y": alt.Y(
            "load:Q",
            title="load (GW)" if y_title else None,
            scale=alt.Scale(zero=False),
            axis=alt.Axis(tickCount=6),
        ),
    }
    marks = [_lines(rows, axes)]
    note = ""
    if band is not None:
        half = band.select("step", (pl.col("half_width_mw") / 1000).alias("half"))
        marks.insert(0, _area(rows.filter(pl.col("line") == RELEASED).join(half, on="step"), axes))
        typical, level = _mean(band["half_width_mw"]), _mean(released["load_mw"])
        note = f"band: ±{typical / 1000:.1f} GW on average, {100 * typical / level:.0f} % of the mean load"
    panel_title = alt.TitleParams(
        name, subtitle=note, fontSize=14, subtitleFontSize=12, subtitleColor=INK, subtitlePadding=4,
        anchor="start", frame="group", offset=10,
    )  # fmt: skip
    return alt.layer(*marks).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=panel_title)


def _lines(rows: pl.DataFrame, axes: Axes) -> alt.Chart:
    order = [RELEASED, TRUTH]
    legend = alt.Legend(symbolType="M-2.6,0L2.6,0", symbolSize=SYMBOL, symbolStrokeWidth=2.4, labelOffset=14)
    return (
        alt.Chart(rows)
        .mark_line(strokeWidth=2.4)
        .encode(
            **axes,
            color=alt.Color("line:N", scale=alt.Scale(domain=order, range=[BLUE, INK]), legend=legend),
            strokeDash=alt.StrokeDash("line:N", scale=alt.Scale(domain=order, range=[[1, 0], [3, 3]])),
        )
    )


def _area(rows: pl.DataFrame, axes: Axes) -> alt.Chart:
    legend = alt.Legend(symbolType="square", symbolSize=SYMBOL, symbolStrokeWidth=0, symbolOpacity=1)
    fill = alt.Fill("what:N", scale=alt.Scale(domain=[BAND], range=[PALE]), legend=legend)
    edges = rows.select(
        "hour",
        (pl.col("load") - pl.col("half")).alias("load"),
        (pl.col("load") + pl.col("half")).alias("upper"),
        pl.lit(BAND).alias("what"),
    )
    return alt.Chart(edges).mark_area(opacity=1).encode(**axes, y2="upper:Q", fill=fill)


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean())


def write_file(chart: alt.TopLevelMixin, path: Path) -> None:
    """Write a chart. Raises ParameterError unless path ends in .svg or .png."""
    document = chart.to_json()
    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(document), encoding="utf-8")
    elif path.suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(document, scale=2))
    else:
        raise ParameterError(f"a chart is written as .svg or .png; got {path.name}")

"""One kind of chart for all experiments: panels of lines, told apart by shape and dash as well."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from optstream.errors import ParameterError

# What all charts share: colours that print in grey, and how a chart becomes a file.

FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
INK, BLUE, RED, GREY, GRID = "#1a1a1a", "#08519c", "#a50f15", "#636363", "#e4e4e4"
PIXELS_PER_POINT = 2

STYLES = (
    # colour, dash, shape: each is enough to tell lines apart
    (INK, [1, 0], "square"),
    (GREY, [6, 3], "triangle-up"),
    (BLUE, [1, 0], "circle"),
    (RED, [2, 2], "diamond"),
    ("#4d9221", [8, 2, 2, 2], "cross"),
    ("#8c510a", [4, 4], "triangle-down"),
    ("#969696", [1, 3], "triangle-right"),
    ("#762a83", [10, 3], "triangle-left"),
    ("#e08214", [1, 0], "stroke"),
)
WIDTH, HEIGHT = 190, 150
Rows = Sequence[dict[str, Any]]


def inline(rows: Rows) -> alt.Data:
    """The rows as a chart's own data."""
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]  # Altair leaves Data without types


def write_file(chart: alt.TopLevelMixin, path: Path) -> None:
    """Write a chart. Raises ParameterError unless path ends in .svg or .png."""
    document = chart.to_json()
    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(document), encoding="utf-8")
    elif path.suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(document, scale=PIXELS_PER_POINT))
    else:
        raise ParameterError(f"a chart is written as .svg or .png; got {path.name}")


def panels(
    rows: Rows,
    *,
    series: Sequence[str],
    x_title: str,
    y_title: str,
    x_order: Sequence[Any] | None = None,
    columns: Sequence[str],
    panel_rows: Sequence[str] = ("",),
    log_y: bool = True,
    log_x: bool = False,
    shared_y: bool = True,
    y_format: str = "~s",
    x_angle: int = 0,
) -> alt.TopLevelMixin:
    """Lines with points. rows: dicts of x, y, series, column, row. x_order: the values of an ordinal axis;
    None for a numeric one.
    """
    legend = alt.Legend(
        title=None, orient="bottom", columns=4, labelLimit=320, symbolSize=90, symbolStrokeWidth=2
    )
    x: alt.X = (
        alt.X("x:Q", title=x_title, scale=alt.Scale(type="log" if log_x else "linear", nice=False))
        if x_order is None
        else alt.X("x:N", title=x_title, sort=list(x_order), axis=alt.Axis(labelAngle=x_angle))
    )
    y = alt.Y(
        "y:Q", title=y_title, scale=alt.Scale(type="log" if log_y else "linear", zero=False, nice=not log_y),
        axis=alt.Axis(tickCount=5, format=y_format),
    )  # fmt: skip
    looks: list[dict[str, Any]] = [
        {"scale": alt.Scale(domain=list(series), range=list(own)), "legend": legend}
        for own in zip(*STYLES[: len(series)], strict=True)
    ]
    colors, dashes, shapes = looks
    base = alt.Chart().encode(x=x, y=y, color=alt.Color("series:N", **colors))
    dash, shape = alt.StrokeDash("series:N", **dashes), alt.Shape("series:N", **shapes)
    layers = alt.layer(
        base.mark_line(strokeWidth=1.8).encode(strokeDash=dash),
        base.mark_point(size=46, filled=True, opacity=1).encode(shape=shape),
        data=inline(rows),
    ).properties(width=WIDTH, height=HEIGHT)
    header = alt.Header(title=None, labelFontSize=12, labelColor=INK)
    facets: dict[str, Any] = {"column": alt.Column("column:N", sort=list(columns), header=header)}
    if len(panel_rows) > 1:
        facets["row"] = alt.Row("row:N", sort=list(panel_rows), header=header)
    chart: alt.FacetChart = (
        layers.facet(**facets)
        .resolve_scale(y="shared" if shared_y else "independent", x="shared" if x_order else "independent")
        .configure(aria=False, font=FONT, background="white", padding=8)
        .configure_view(stroke="#bdbdbd")
        .configure_axis(labelColor=INK, titleColor=INK, gridColor=GRID, domainColor=INK, tickColor=INK,
                        titleFontWeight="normal", labelFontSize=11, titleFontSize=11.5)
        .configure_legend(labelColor=INK, labelFontSize=11.5)
    )  # fmt: skip
    return chart


def write_panels(path: Path, rows: Rows, **options: Any) -> None:
    """Draw and write, .svg or .png. Raises ParameterError for another suffix."""
    write_file(panels(rows, **options), path)

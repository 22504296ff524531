"""What all charts share: colours that print in grey, and how a chart becomes a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import altair as alt
import vl_convert

from optstream.errors import ParameterError

FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
INK, BLUE, RED, GREY, GRID = "#1a1a1a", "#08519c", "#a50f15", "#636363", "#e4e4e4"
PIXELS_PER_POINT = 2
Layers = alt.LayerChart | alt.FacetChart
"""What Altair makes of layers."""
Chart = TypeVar("Chart", alt.VConcatChart, Layers)


def inline(rows: Sequence[Mapping[str, Any]]) -> alt.Data:
    """The rows as a chart's own data."""
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]  # Altair leaves Data without types


def heading(title: str, subtitle: str) -> alt.TitleParams:
    """Return a chart's title, with a line below it."""
    return alt.TitleParams(
        title, subtitle=subtitle, anchor="start", fontSize=17, subtitleFontSize=12.5, subtitleColor=INK,
        offset=14,
    )  # fmt: skip


def framed(chart: Chart) -> Chart:
    """Return the chart in the font and colours of all."""
    made: Chart = (
        chart.configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(labelColor=INK, titleColor=INK, gridColor=GRID, domainColor=INK, tickColor=INK)
    )
    return made


def write_file(chart: alt.TopLevelMixin, path: Path) -> None:
    """Write a chart. Raises ParameterError unless path ends in .svg or .png."""
    document = chart.to_json()
    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(document), encoding="utf-8")
    elif path.suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(document, scale=PIXELS_PER_POINT))
    else:
        raise ParameterError(f"a chart is written as .svg or .png; got {path.name}")

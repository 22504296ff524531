"""The README's picture: the last released day, nation and largest region, with the simulated truth.

    python -m docs.generate.picture --config demo/optstream.toml --into docs/pictures

It reads what `make demo` left: the configuration, the published folder and the simulated dumps. It writes
released-day.svg and released-day.png, offline. The band is of the whole error, as the files state it. Real
dumps are refused: a picture of them with their release would be raw data.
"""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import vl_convert
from numpy.typing import NDArray

from optstream import read_published
from optstream.catalogue import error_columns
from optstream.errors import ConfigurationError, DumpError
from optstream.estimation.estimate import BAND
from tasks.config import Settings, load_settings
from tasks.ingest.arrivals import place_of
from tasks.operate.simulate import FRENCH_REGIONS, aggregated_day, as_laid_out

INK, BLUE, PALE, GRID = "#1a1a1a", "#08519c", "#c6dbef", "#e4e4e4"
RELEASED, TRUTH, BAND_NAME = "released", "simulated truth", "95 % band"
SEED = 0  # of `make demo`


def make_picture(settings: Settings) -> alt.HConcatChart:
    """Return the picture. Raises DumpError for dumps that are not this simulation's, PublicationError as
    `read_published`."""
    value, tree = settings.published.value, settings.tree_of(date.min)
    rows = read_published(settings.published_folder)
    day = rows["date"].max()
    assert isinstance(day, date)
    rows = rows.filter(pl.col("date") == day).sort("node", "step")
    order = sorted(range(len(tree.nodes)), key=lambda node: tree.nodes[node])
    half = BAND * pl.col(error_columns(value)[1])
    rows = rows.select(
        "node",
        pl.col("step") * settings.calendar.step_minutes / 60,
        value=pl.col(value) / 1000,
        true=pl.Series(simulated_truth(settings, day)[order].ravel()) / 1000,
        lowest=(pl.col(value) - half) / 1000,
        highest=(pl.col(value) + half) / 1000,
    )
    means = rows.filter(pl.col("node").is_in(tree.leaves)).group_by("node").agg(pl.col("value").mean())
    largest = means.sort("value", "node")["node"][-1]
    panels = [
        _panel(rows.filter(pl.col("node") == node), name)
        for node, name in ((tree.nodes[0], "France"), (largest, FRENCH_REGIONS[largest].name))
    ]
    privacy = settings.privacy
    subtitle = [
        f"Epsilon {float(privacy.epsilon):g} in any window of {privacy.window} steps of "
        f"{settings.calendar.step_minutes} minutes, for changes of one customer's reading up to "
        f"{float(privacy.alpha):g} MW.",
        f"{settings.mechanism.name} estimates each step from noisy sums; the band is of the whole error.",
    ]
    title = alt.TitleParams(
        f"One released day: {day:%d %B %Y}", subtitle=subtitle, anchor="start", fontSize=17, offset=16
    )
    return (
        alt.hconcat(*panels, spacing=26, title=title, padding=14, background="white")
        .resolve_scale(y="independent")
        .configure(font="DejaVu Sans, Verdana, Arial, sans-serif")
        .configure_view(stroke=None)
        .configure_title(color=INK, subtitleColor=INK, subtitleFontSize=12.5, subtitlePadding=6)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", gridColor=GRID)
        .configure_legend(labelFontSize=12.5, title=None, orient="bottom", columnPadding=18)
    )


def _panel(rows: pl.DataFrame, name: str) -> alt.LayerChart:
    typical = float((rows["highest"] - rows["lowest"]).to_numpy().mean()) / 2
    share = typical / float(rows["value"].to_numpy().mean())
    note = f"band: ±{typical:.1f} GW on average, {share:.0%} of the mean load".replace("%", " %")
    kinds = [BAND_NAME, RELEASED, TRUTH]
    hours = alt.Axis(values=list(range(0, 25, 3)), grid=False)
    base = alt.Chart(rows.with_columns(pl.lit(kind).alias(kind) for kind in kinds)).encode(
        alt.X("step:Q", title="hours since local midnight", scale=alt.Scale(domain=[0, 24]), axis=hours)
    )

    def encoded(chart: alt.Chart, column: str, kind: str) -> alt.Chart:
        color = alt.Color(f"{kind}:N", scale=alt.Scale(domain=kinds, range=[PALE, BLUE, INK]))
        return chart.encode(alt.Y(column, title="load (GW)", scale=alt.Scale(zero=False)), color=color)

    marks = (
        encoded(base.mark_area(opacity=1), "lowest:Q", BAND_NAME).encode(y2="highest:Q"),
        encoded(base.mark_line(strokeWidth=2.4), "value:Q", RELEASED),
        encoded(base.mark_line(strokeWidth=2.4, strokeDash=[3, 3]), "true:Q", TRUTH),
    )
    title = alt.TitleParams(name, subtitle=note, anchor="start", frame="group", offset=10)
    return alt.layer(*marks).properties(width=372, height=250, title=title)


def simulated_truth(settings: Settings, day: date) -> NDArray[np.float64]:
    """Return what the dumps hold at every node, (n_nodes, n_steps), if they are the simulation's."""
    if settings.metered:
        raise ConfigurationError("the picture is of aggregated input; input.schema is metered")
    layout, tree, rows = settings.input_of(day), settings.tree_of(date.min), []
    for leaf in tree.leaves:
        expected = aggregated_day(leaf, day, settings.calendar, SEED)
        laid_out = as_laid_out(expected, layout)
        folder = settings.input_folder / place_of(leaf, day)
        try:
            found = pl.read_parquet(folder / "*.parquet", columns=laid_out.columns, hive_partitioning=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DumpError(f"{folder} holds no readable dump; run `make demo` first") from error
        if not found.equals(laid_out):
            raise DumpError(f"{folder} is not the dump of `make demo`; real data are not drawn")
        rows.append(expected["value"].to_numpy())
    return tree.add_up(np.array(rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture that the command line asks for."""
    parser = argparse.ArgumentParser(description="Draw one released day with its simulated truth.")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the demo's configuration")
    parser.add_argument("--into", type=Path, default=Path("docs/pictures"), metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    document = make_picture(load_settings(chosen.config)).to_json()
    svg = vl_convert.vegalite_to_svg(document)
    (chosen.into / "released-day.svg").write_text(svg, encoding="utf-8")
    (chosen.into / "released-day.png").write_bytes(vl_convert.vegalite_to_png(document, scale=2))


if __name__ == "__main__":
    main()

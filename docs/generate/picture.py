"""The README's picture: one released day, nation and region, with the simulated truth.

    python -m docs.generate.picture --config demo/optstream.toml --into docs/pictures

It reads what `make demo` left behind: the configuration, the published folder and the simulated dumps. It
writes released-day.svg and released-day.png, offline. The band is of the whole error, as the files state it.
Real dumps are refused: a picture of them with their release would be raw data.
"""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from docs.generate.day_chart import draw, write_file
from optstream import read_published
from optstream.catalogue import error_columns
from optstream.errors import ConfigurationError, DumpError, ParameterError
from optstream.estimation.estimate import BAND
from tasks.config import Settings, load_settings
from tasks.ingest.arrivals import place_of
from tasks.operate.simulate import FRENCH_REGIONS, aggregated_day, as_laid_out


def make_picture(settings: Settings, day: date | None, region: str | None, seed: int, into: Path) -> Path:
    """Write released-day.svg and .png into a folder; return the SVG's path.

    day: the last that is published, if None. region: the leaf with most load, if None. seed: of the
    simulated dumps. Raises DumpError for dumps that are not this simulation's, ParameterError for a day that
    is not published or a region that is no leaf, PublicationError as `read_published`.
    """
    value = settings.published.value
    _, whole = error_columns(value)
    released = read_published(settings.published_folder).rename({value: "load_mw", whole: "error_mw"})
    if day is None:
        day = released["date"].max()
    released = released.filter(pl.col("date") == day)
    if day is None or released.is_empty():
        raise ParameterError(
            f"{settings.published_folder} has no published rows of {day or 'any day'}; name a day that it has"
        )
    leaves = released.filter(pl.col("node").is_in(settings.tree_of(date.min).leaves))
    if region is None:
        region = str(leaves.group_by("node").agg(pl.col("load_mw").sum()).sort("load_mw", "node")["node"][-1])
    elif region not in settings.tree_of(date.min).leaves:
        known = ", ".join(settings.tree_of(date.min).leaves)
        raise ParameterError(f"region {region!r} is no leaf of the hierarchy; the leaves are {known}")
    chart = draw(
        released,
        _by_node(settings, simulated_truth(settings, day, seed), "load_mw"),
        released.select("node", "step", half_width_mw=BAND * pl.col("error_mw")),
        names={node: _title(node) for node in (settings.tree_of(date.min).nodes[0], region)},
        title=f"One released day: {day:%d %B %Y}".replace(": 0", ": "),
        subtitle=_subtitle(settings),
        step_hours=settings.calendar.step_minutes / 60,
    )
    into.mkdir(parents=True, exist_ok=True)
    svg = into / "released-day.svg"
    for file in (svg, svg.with_suffix(".png")):
        write_file(chart, file)
    return svg


def simulated_truth(settings: Settings, day: date, seed: int) -> NDArray[np.float64]:
    """What the dumps hold at every node, (n_nodes, n_steps), if they are the simulation's of this seed."""
    if settings.metered:
        raise ConfigurationError("the picture is of aggregated input; input.schema is metered")
    layout, rows = settings.input_of(day), []
    for leaf in settings.tree_of(date.min).leaves:
        expected = aggregated_day(leaf, day, settings.calendar, seed)
        laid_out = as_laid_out(expected, layout)
        folder = settings.input_folder / place_of(leaf, day)
        try:
            found = pl.read_parquet(folder / "*.parquet", columns=laid_out.columns, hive_partitioning=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DumpError(f"{folder} holds no readable dump; simulate the day first") from error
        if not found.equals(laid_out):
            raise DumpError(
                f"{folder} is not the simulated dump of seed {seed}; real data are not drawn: name the seed "
                "that the dumps were simulated with, or simulate them"
            )
        rows.append(expected["value"].to_numpy())
    return settings.tree_of(date.min).add_up(np.array(rows))


def _by_node(settings: Settings, values: NDArray[np.float64], column: str) -> pl.DataFrame:
    n_nodes, n_steps = values.shape
    nodes, steps = np.repeat(settings.tree_of(date.min).nodes, n_steps), np.tile(np.arange(n_steps), n_nodes)
    return pl.DataFrame({"node": nodes, "step": steps.astype(np.int32), column: values.ravel()})


def _title(node: str) -> str:
    if node == "FR":
        return "France"
    return FRENCH_REGIONS[node].name if node in FRENCH_REGIONS else node


def _subtitle(settings: Settings) -> list[str]:
    privacy = settings.privacy
    return [
        f"Epsilon {float(privacy.epsilon):g} in any window of {privacy.window} steps of "
        f"{settings.calendar.step_minutes} minutes, for changes of one customer's reading up to "
        f"{float(privacy.alpha):g} MW.",
        f"{settings.mechanism.name} estimates each step from noisy sums; the band is of the whole error.",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture that the command line asks for."""
    parser = argparse.ArgumentParser(description="Draw one released day with its simulated truth.")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the demo's configuration")
    parser.add_argument("--date", type=date.fromisoformat, help="a published day (default: the last)")
    parser.add_argument("--region", metavar="CODE", help="a leaf (default: the one with most load)")
    parser.add_argument("--seed", type=int, default=0, help="what the dumps were simulated with (default: 0)")
    parser.add_argument("--into", type=Path, default=Path("docs/pictures"), metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    settings = load_settings(chosen.config)
    print(make_picture(settings, chosen.date, chosen.region, chosen.seed, chosen.into))


if __name__ == "__main__":
    main()

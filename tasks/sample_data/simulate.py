"""Simulated dumps, to try everything without anybody's data.

The simulated truth is public: its randomness is numpy's, seeded, and not that of the noise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from optstream.catalogue.backends import Location, StoreUrl
from optstream.errors import ParameterError
from optstream.stream import Calendar
from tasks.config import Layout
from tasks.ingest.arrival.parts import EVERY
from tasks.sample_data.load_shapes import daily_load, day_generator, region_of, stable_hash
from tasks.sample_data.write_dumps import dump_folder, write_dump

PLAIN = Layout(value="load_mw")
NO_CELLS: Mapping[str, tuple[str, str]] = {}
Schema = Literal["aggregated", "metered"]
CUSTOMER_MEAN_KW = 1.0
"""Mean draw of a simulated customer; a reading is the energy of its step, in kWh."""


@dataclass(frozen=True)
class Simulated:
    """What was written: dumps are (region, day) pairs; `n_kept` of them lay there already, the same."""

    folder: Path
    n_written: int
    n_kept: int


def simulate(
    folder: Location,
    *,
    leaves: Sequence[str],
    calendar: Calendar,
    days: Iterable[date],
    seed: int = 0,
    schema: Schema = "aggregated",
    layout_of: Callable[[date], Layout] = lambda day: PLAIN,
    mean: float | None = None,
    customers_per_leaf: int = 30,
    counts: bool = False,
    cells: Mapping[str, tuple[str, str]] = NO_CELLS,
) -> Simulated:
    """Write one dump for each leaf and day: `<folder>/region=<leaf>/date=<day>/part-0.parquet` and a marker.
    Where the layout has a column of regions it is one for each day: `<folder>/date=<day>/part-0.parquet`.

    A leaf that is the code of a French region gets that region's public mean, unless `mean` is given; any
    other leaf gets a mean around `mean` (1000 without one) by its name. With "metered", each leaf has
    `customers_per_leaf` customers with readings in kWh a step instead, and `mean` is their mean draw in kW.
    cells: of leaves that are cells, the region, whose public mean their means add up to, and the node of the
    margin. layout_of: how each day's dumps are laid out. counts: readings are rounded to whole numbers.
    Timestamps: UTC for day "elapsed", wall clock without zone for day "fixed".
    The same seed, leaf and day give the same dump, whatever range is asked for; a second run changes nothing.

    Raises ParameterError for a store, a mean of 0 or less and a name that no folder can have; DumpError where
    another dump already lies.
    """
    if isinstance(folder, StoreUrl):
        raise ParameterError(
            f"dumps are made up in a folder of this machine, not in {folder}: make them where input.folder "
            "is a path, and copy them"
        )
    if mean is not None and not mean > 0:
        raise ParameterError(f"mean of simulate must be greater than 0; got {mean!r}")
    days = tuple(days)
    for leaf in leaves:
        dump_folder(folder, leaf, days[0])  # a bad name is refused before anything is written
    written = asked = 0
    for day in days:
        layout = layout_of(day)
        parts = {leaf: (leaf,) for leaf in leaves} if layout.region is None else {EVERY: leaves}
        periods = calendar.periods_of(day)
        asked += len(parts) * len(periods)
        for part, own in parts.items():
            found = []
            for leaf in own:
                if schema == "metered":
                    rows = metered_day(leaf, day, calendar, seed, mean, customers_per_leaf)
                else:
                    rows = aggregated_day(leaf, day, calendar, seed, mean, cells)
                if counts:
                    rows = rows.with_columns(pl.col("value").round())
                found.append(rows.with_columns(region=pl.lit(leaf)) if part == EVERY else rows)
            rows = as_laid_out(pl.concat(found), layout, cells)
            for period in periods:
                of_period = pl.col(layout.timestamp).is_in(_stamps(period, calendar).implode())
                own_rows = rows if period == day else rows.filter(of_period)
                written += write_dump(
                    folder, part, period, own_rows, marker=layout.marker, file_list=layout.file_list
                )
    return Simulated(folder, written, asked - written)


def as_laid_out(
    rows: pl.DataFrame, layout: Layout, cells: Mapping[str, tuple[str, str]] = NO_CELLS
) -> pl.DataFrame:
    """The columns timestamp, value and, where they are, customer and region under the layout's names.

    cells: of each leaf its region and its node of the margin, where these are two columns.
    Values are in the column's own unit: times the factor they are the reading, as the nearest float.
    """
    if layout.factor != 1:
        own = [float(Fraction(str(value)) / layout.factor) for value in rows["value"]]
        rows = rows.with_columns(value=pl.Series(own, dtype=pl.Float64))
    names = {"timestamp": layout.timestamp, "value": layout.value, "customer": layout.customer}
    if layout.margin is not None:
        of_row = [cells[leaf] for leaf in rows["region"]]
        rows = rows.with_columns(
            pl.Series("region", [region for region, _ in of_row]),
            pl.Series(layout.margin, [node for _, node in of_row]),
        )
    names |= {} if layout.region is None else {"region": layout.region}
    return rows.rename(names, strict=False)


def aggregated_day(
    leaf: str,
    day: date,
    calendar: Calendar,
    seed: int,
    mean: float | None,
    cells: Mapping[str, tuple[str, str]] = NO_CELLS,
) -> pl.DataFrame:
    """One leaf's day: columns timestamp and value (rounded to 0.1), a row a step."""
    whole, node = cells.get(leaf, (leaf, None))
    region = region_of(whole, mean)
    if node is not None:  # its node's share of the region, the same in all regions
        sizes = {one: 1 + stable_hash(one) % 4 for own, one in cells.values() if own == whole}
        region = region._replace(mean_mw=region.mean_mw * sizes[node] / sum(sizes.values()))
    load = daily_load(region, leaf, day, calendar, seed)
    return pl.DataFrame({"timestamp": _stamps(day, calendar), "value": np.round(load, 1)})


def metered_day(
    leaf: str, day: date, calendar: Calendar, seed: int, mean: float | None, n_customers: int
) -> pl.DataFrame:
    """One leaf's day: columns customer, timestamp, value (kWh, rounded to 0.001), a row a customer and step.

    Customers differ in size permanently, and their readings jump as appliances do, around the common shape.
    """
    mean_kw = CUSTOMER_MEAN_KW if mean is None else mean
    energy = mean_kw * calendar.step_minutes / 60
    shape = daily_load(region_of(leaf, None)._replace(mean_mw=1.0), leaf, day, calendar, seed)
    sizes = np.random.default_rng(np.random.SeedSequence([seed, stable_hash(leaf)])).gamma(
        3.0, 1 / 3, n_customers
    )
    jumps = day_generator(seed, day, f"meters {leaf}").gamma(0.8, 1 / 0.8, (n_customers, shape.size))
    readings = np.round(energy * sizes[:, None] * shape * jumps, 3)
    names = [f"{leaf}-{number:05d}" for number in range(n_customers)]
    stamps = _stamps(day, calendar)
    return pl.DataFrame(
        {
            "customer": np.repeat(names, shape.size),
            "timestamp": pl.concat([stamps] * n_customers),
            "value": readings.ravel(),
        }
    )


def _stamps(day: date, calendar: Calendar) -> pl.Series:
    if calendar.day == "fixed":
        return pl.Series(calendar.local_times(day), dtype=pl.Datetime("us"))
    return pl.Series(calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))

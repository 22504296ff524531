"""Simulated dumps. The truth is public: its randomness is numpy's, seeded, and not that of the noise."""

import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.errors import DumpError, ParameterError
from optstream.storage.store import StoreUrl
from optstream.stream import Calendar, Lattice
from tasks.config import Input, Settings
from tasks.config.schema import OF_FILES
from tasks.ingest.arrivals import EVERY, leaves_of, parts_of, place_of

# What simulated load looks like: public means of the French regions, and a rough shape around them.

Values = NDArray[np.float64]


class Region(NamedTuple):
    """Rounded figures of a region. Seasons and Sunday are ratios: to the year, and to a working day."""

    name: str
    mean_mw: float
    winter: float
    summer: float
    sunday: float


FRENCH_REGIONS = {
    "11": Region("Île-de-France", 8310, 1.25, 0.74, 0.86),
    "24": Region("Centre-Val de Loire", 2150, 1.27, 0.76, 0.85),
    "27": Region("Bourgogne-Franche-Comté", 2490, 1.20, 0.79, 0.81),
    "28": Region("Normandie", 3260, 1.22, 0.78, 0.87),
    "32": Region("Hauts-de-France", 5850, 1.19, 0.80, 0.86),
    "44": Region("Grand Est", 5310, 1.19, 0.79, 0.82),
    "52": Region("Pays de la Loire", 3140, 1.23, 0.78, 0.80),
    "53": Region("Bretagne", 2560, 1.25, 0.76, 0.81),
    "75": Region("Nouvelle-Aquitaine", 4990, 1.21, 0.85, 0.87),
    "76": Region("Occitanie", 4270, 1.23, 0.87, 0.88),
    "84": Region("Auvergne-Rhône-Alpes", 7690, 1.21, 0.81, 0.85),
    "93": Region("Provence-Alpes-Côte d'Azur", 4660, 1.22, 0.90, 0.93),
}
"""RTE éCO2mix definitive 2016, yearly means, rounded (54,680 MW together); ratios likewise, two digits."""

# Hour of the clock and load relative to the day's mean: a few knots, two digits, after the same source's
# national mean of winter and summer working days. Weather and noise below are made up.
WINTER_DAY = {
    0: 1.00, 4: 0.85, 7: 1.02, 9: 1.08, 13: 1.06, 16.5: 0.99, 19: 1.12, 22: 0.97, 23: 1.00, 24: 1.00,
}  # fmt: skip
SUMMER_DAY = {0: 0.97, 4.5: 0.80, 8: 0.99, 12.5: 1.14, 16: 1.08, 19: 1.06, 22: 0.97, 23: 1.04, 24: 0.97}

MEMORY_DAYS = 30
DAY_TO_DAY = 0.75
"""Weather is AR(1) from day to day; after MEMORY_DAYS a shock is below a thousandth, and left out."""
SHARED_WEATHER, OWN_WEATHER, OWN_NOISE = 0.035, 0.012, 0.004
"""Standard deviations relative to the load: of the weather in winter, and of the noise from step to step."""


def region_of(leaf: str) -> Region:
    """A French region's figures by its code; else figures around 1000 by a hash of the name."""
    if leaf in FRENCH_REGIONS:
        return FRENCH_REGIONS[leaf]
    return Region(leaf, 1000.0 * (0.5 + stable_hash(leaf) / 2**32), 1.22, 0.80, 0.85)


def stable_hash(text: str) -> int:
    """32 bits of a text, the same in every process."""
    return zlib.crc32(text.encode("utf-8"))


def daily_load(region: Region, leaf: str, day: date, calendar: Calendar, seed: int) -> Values:
    """Return the load of one leaf at each step of a day, (n_steps,): a function of its arguments alone."""
    hours = np.array([stamp.hour + stamp.minute / 60 for stamp in calendar.local_times(day)])
    since = (day - date(day.year, 1, 25)).days + hours / 24
    coldness = np.cos(2 * np.pi * since / 365.25)  # 1 in late January, -1 in late July
    first, second = (region.winter - region.summer) / 2, (region.winter + region.summer) / 2 - 1
    season = 1 + first * coldness + second * (2 * coldness**2 - 1)
    heated = (1 + coldness) / 2
    clock = heated * _clock_curve(WINTER_DAY, hours) + (1 - heated) * _clock_curve(SUMMER_DAY, hours)
    weather = (0.3 + 0.7 * heated) * (
        SHARED_WEATHER * weather_of(seed, day, hours, "") + OWN_WEATHER * weather_of(seed, day, hours, leaf)
    )
    noise = OWN_NOISE * day_generator(seed, day, leaf).standard_normal(hours.size)
    # working days against the weekend, with mean 1 over a week; a night belongs to the day before it
    factors = np.array([1.0] * 5 + [1 - 0.65 * (1 - region.sunday), region.sunday])
    factors /= factors.mean()
    before, now = float(factors[day.weekday() - 1]), float(factors[day.weekday()])
    week = before + (now - before) * np.minimum(hours / 7, 1.0)
    load: Values = region.mean_mw * season * week * clock * (1 + weather + noise)
    return np.maximum(load, 0.0)


def day_generator(seed: int, day: date, purpose: str) -> np.random.Generator:
    """The randomness of one day and purpose (a leaf; "" is shared by all), whatever else is simulated."""
    return np.random.default_rng(np.random.SeedSequence([seed, day.toordinal(), stable_hash(purpose)]))


def _clock_curve(knots: dict[float, float], hours: Values) -> Values:
    """The day's curve, eased from knot to knot, with mean 1."""
    places, heights = np.array(list(knots)), np.array(list(knots.values()))

    def eased(at: Values) -> Values:
        last = np.clip(np.searchsorted(places, at, side="right") - 1, 0, len(places) - 2)
        share = (at - places[last]) / (places[last + 1] - places[last])
        result: Values = heights[last] + (heights[last + 1] - heights[last]) * (1 - np.cos(np.pi * share)) / 2
        return result

    return eased(hours) / float(np.mean(eased(np.arange(0, 24, 0.25))))


def weather_of(seed: int, day: date, hours: Values, purpose: str) -> Values:
    """AR(1) from day to day with variance 1, a straight line between midnights; "" is shared by all."""
    days = [day + timedelta(days=offset) for offset in range(-MEMORY_DAYS, 2)]
    shocks = np.array([day_generator(seed, each, f"weather {purpose}").standard_normal() for each in days])
    weights = np.sqrt(1 - DAY_TO_DAY**2) * DAY_TO_DAY ** np.arange(MEMORY_DAYS, -1, -1.0)
    today, tomorrow = shocks[:-1] @ weights, shocks[1:] @ weights
    result: Values = today + (tomorrow - today) * hours / 24
    return result


# Writing raw dumps as a supplier would: a folder a region and day, or one a day; whole or absent.

PART = "part-0.parquet"
LAYOUT = Input(schema="aggregated", value="load_mw")


def write_dump(folder: Path, region: str, day: date, rows: pl.DataFrame, layout: Input = LAYOUT) -> bool:
    """Write one dump, whole with its marker; False if the same was there, DumpError if another was."""
    target, announcement = folder / place_of(region, day), layout.announcement
    text = f"{PART}\n" if layout.file_list else ""
    if target.exists():
        if not _holds(target, rows):
            raise DumpError(
                f"{target} already holds another dump; nothing is overwritten: write into another folder, "
                "or remove that one"
            )
        if (target / announcement).exists():  # the folder itself where there is no marker
            return False
        (target / announcement).write_text(text, encoding="utf-8")
        return True
    staging = target.parent / f".writing-{target.name}-{os.getpid()}"
    staging.mkdir(parents=True, exist_ok=True)
    try:
        rows.write_parquet(staging / PART)
        if announcement:
            (staging / announcement).write_text(text, encoding="utf-8")
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return True


def _holds(target: Path, rows: pl.DataFrame) -> bool:
    if [found.name for found in target.glob("*.parquet")] != [PART]:
        return False
    with suppress(pl.exceptions.PolarsError, OSError):
        return pl.read_parquet(target / PART, hive_partitioning=False).equals(rows)
    return False


NO_CELLS: Mapping[str, tuple[str, str]] = {}
CUSTOMERS = 30  # of a simulated leaf
CUSTOMER_MEAN_KW = 1.0  # mean draw of a simulated customer; a reading is the energy of its step, in kWh


def simulate(settings: Settings, days: Sequence[date], seed: int = 0) -> list[bool]:
    """Write a dump a leaf and day, the same in any range; of each return False if the same was there."""
    folder, calendar = settings.input_folder, settings.calendar
    if isinstance(folder, StoreUrl):
        raise ParameterError(
            f"dumps are made up in a folder of this machine, not in {folder}: make them where input.folder "
            "is a path, and copy them"
        )
    if not all(settings.input_of(day).is_usual for day in days):
        raise ParameterError(
            "dumps are made up in the usual layout, as Parquet files: leave the keys of [input] out that "
            f"describe another one, {', '.join(OF_FILES)}"
        )
    done: list[bool] = []
    for day in days:
        layout, periods, tree = settings.input_of(day), calendar.periods(day, day), settings.tree_of(day)
        cells = tree.cells if isinstance(tree, Lattice) else NO_CELLS
        for part in parts_of(settings, day) if periods else ():
            found = []
            for leaf in leaves_of(settings, day, (part,)):
                if settings.metered:
                    rows = metered_day(leaf, day, calendar, seed)
                else:
                    rows = aggregated_day(leaf, day, calendar, seed, cells)
                found.append(rows.with_columns(region=pl.lit(leaf)) if part == EVERY else rows)
            rows = pl.concat(found)
            rows = rows.with_columns(pl.col("value").round()) if settings.privacy.counts else rows
            rows = as_laid_out(rows, layout, cells)
            for period in periods:
                own_rows = rows.filter(pl.col(layout.timestamp).is_in(_stamps(period, calendar).implode()))
                done.append(write_dump(folder, part, period, own_rows, layout))
    return done


def as_laid_out(
    rows: pl.DataFrame, layout: Input, cells: Mapping[str, tuple[str, str]] = NO_CELLS
) -> pl.DataFrame:
    """Return the columns under the layout's names, values divided by the factor."""
    if layout.factor != 1:
        own = [float(Fraction(str(value)) / layout.factor) for value in rows["value"]]
        rows = rows.with_columns(value=pl.Series(own, dtype=pl.Float64))
    names = {"timestamp": layout.stamp_columns[0], "value": layout.value, "customer": layout.customer}
    if layout.margin is not None:
        of_row = [cells[leaf] for leaf in rows["region"]]
        rows = rows.with_columns(
            pl.Series("region", [region for region, _ in of_row]),
            pl.Series(layout.margin, [node for _, node in of_row]),
        )
    names |= {} if layout.region is None else {"region": layout.region}
    return rows.rename(names, strict=False)


def aggregated_day(
    leaf: str, day: date, calendar: Calendar, seed: int, cells: Mapping[str, tuple[str, str]] = NO_CELLS
) -> pl.DataFrame:
    """One leaf's day: columns timestamp and value (rounded to 0.1), a row a step."""
    whole, node = cells.get(leaf, (leaf, None))
    region = region_of(whole)
    if node is not None:  # its node's share of the region, the same in all regions
        sizes = {one: 1 + stable_hash(one) % 4 for own, one in cells.values() if own == whole}
        region = region._replace(mean_mw=region.mean_mw * sizes[node] / sum(sizes.values()))
    load = daily_load(region, leaf, day, calendar, seed)
    return pl.DataFrame({"timestamp": _stamps(day, calendar), "value": np.round(load, 1)})


def metered_day(leaf: str, day: date, calendar: Calendar, seed: int) -> pl.DataFrame:
    """Return one leaf's day: customer, timestamp, value (kWh, to 0.001), a row a customer and step."""
    energy = CUSTOMER_MEAN_KW * calendar.step_minutes / 60
    shape = daily_load(region_of(leaf)._replace(mean_mw=1.0), leaf, day, calendar, seed)
    sizes = np.random.default_rng(np.random.SeedSequence([seed, stable_hash(leaf)])).gamma(
        3.0, 1 / 3, CUSTOMERS
    )
    jumps = day_generator(seed, day, f"meters {leaf}").gamma(0.8, 1 / 0.8, (CUSTOMERS, shape.size))
    readings = np.round(energy * sizes[:, None] * shape * jumps, 3)
    names = [f"{leaf}-{number:05d}" for number in range(CUSTOMERS)]
    stamps = _stamps(day, calendar)
    return pl.DataFrame(
        {
            "customer": np.repeat(names, shape.size),
            "timestamp": pl.concat([stamps] * CUSTOMERS),
            "value": readings.ravel(),
        }
    )


def _stamps(day: date, calendar: Calendar) -> pl.Series:
    if calendar.day == "fixed":
        return pl.Series(calendar.local_times(day), dtype=pl.Datetime("us"))
    return pl.Series(calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))

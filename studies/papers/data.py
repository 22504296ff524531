"""What the experiments run on: the public files of a folder, or made-up series where there is none."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.errors import DumpError
from optstream.stream import Calendar, days_from
from optstream.stream.covariate import Covariate
from studies.evaluation import Cell, Counts, Load, StudyData
from studies.evaluation.data import ALL_YEARS, Span
from studies.evaluation.experiments import COUNTED_STEPS, INFORMED_WEATHER
from studies.evaluation.metrics import LEARNED_DAYS
from studies.evaluation.streams import DAYS_AFTER, MOST_LEAD_DAYS, STREAM_SPANS
from studies.evaluation.studies import SPANS
from tasks.config.schema import public_holidays
from tasks.operate.simulate import FRENCH_REGIONS, daily_load, shared_weather

LOAD, FLU, UNEMPLOYMENT = (
    "rte_regional_load_2013_2016.parquet",
    "flu_ilinet_weekly.parquet",
    "unemployment_monthly.parquet",
)
TEMPERATURE = "temperature_regional_daily_2016.parquet"
LOAD_COLUMNS = ("timestamp_local", "region_code", "load_mw")
SIMULATED = "simulated"
CALENDAR = Calendar(30, "Europe/Paris", "fixed")
FORECAST_REGION = "84"
"""Auvergne-Rhône-Alpes, as in the paper."""
PUBLIC_YEAR = (date(2015, 1, 1), date(2015, 12, 31))
FIRST_NEEDED = date(2016, 1, 1)
COUNTED_MONTH = date(2016, 2, 1)

Values = NDArray[np.float64]


def read_study_data(folder: Path, cells: Iterable[Cell]) -> StudyData:
    """The load of the days that the cells need, flu and unemployment, from the files of a folder.

    Raises DumpError for a file that is not there, lacks a column or has gaps.
    """
    cells = list(cells)
    names, before = read_load(folder / LOAD, *PUBLIC_YEAR)
    first, last = needed_days(cells)
    _, values = read_load(folder / LOAD, first, last)
    holidays = public_holidays("FR", range(first.year, last.year + 1))
    load = Load(values, names, first, holidays, FIRST_NEEDED)
    if any(cell.mechanism == INFORMED_WEATHER for cell in cells):
        since, temperatures = read_temperature(folder / TEMPERATURE, names)
        load = replace(load, covariates=(_weather(since, temperatures),))
    found = _study_data(load, before, read_flu(folder), read_unemployment(folder))
    return replace(found, history=_history(cells, partial(read_load, folder / LOAD)))


def simulated_study_data(cells: Iterable[Cell], seed: int = 0) -> StudyData:
    """Made-up load, calibrated on public means of the French regions, and made-up counts. Reads no file."""
    cells = list(cells)
    first, last = needed_days(cells)
    weather = [shared_weather(seed, day) for day in days_from(first, last)]
    load = Load(
        _simulated(first, last, seed)[1], tuple(FRENCH_REGIONS), first, origin=FIRST_NEEDED,
        covariates=(_weather(first, np.array([weather])),),
    )  # fmt: skip
    generator = np.random.default_rng(seed)
    weeks = np.arange(COUNTED_STEPS["flu"])
    flu = 4500 * (1.1 + np.cos(2 * np.pi * (weeks - 17) / 52)) * generator.lognormal(0.0, 0.1, weeks.size)
    months = 280 + np.cumsum(generator.normal(0.0, 8.0, COUNTED_STEPS["unemployment"]))
    unemployment: Values = np.maximum(months, 50.0)
    found = _study_data(load, load.values[:7], np.round(flu), np.round(unemployment))
    return replace(found, history=_history(cells, partial(_simulated, seed=seed)))


def _weather(first_day: date, values: Values) -> Covariate:
    """Values a day from `first_day` on, as a covariate of a load whose origin is `FIRST_NEEDED`."""
    return Covariate("temperature", (first_day - FIRST_NEEDED).days, values)


def _simulated(first: date, last: date, seed: int) -> tuple[tuple[str, ...], Values]:
    days = days_from(first, last)
    values = [
        [daily_load(region, name, day, CALENDAR, seed) for name, region in FRENCH_REGIONS.items()]
        for day in days
    ]
    return tuple(FRENCH_REGIONS), np.round(np.array(values), 1)


def _history(
    cells: Iterable[Cell], read: Callable[[date, date], tuple[tuple[str, ...], Values]]
) -> Load | None:
    """The load of the days that studies of a stream's past need; None if there is no such cell."""
    spans = [STREAM_SPANS[cell.span] for cell in cells if cell.study == "stream"]
    spans += [Span.of_day(cell.span) for cell in cells if cell.study == "unusual"]
    if not spans:
        return None
    first = min(span.first for span in spans) - timedelta(days=MOST_LEAD_DAYS)
    last = max(span.last for span in spans) + timedelta(days=DAYS_AFTER)
    first, last = max(first, ALL_YEARS.first), min(last, ALL_YEARS.last)
    names, values = read(first, last)
    holidays = public_holidays("FR", range(first.year, last.year + 1))
    return Load(values, names, first, holidays, ALL_YEARS.first)


def needed_days(cells: Iterable[Cell]) -> tuple[date, date]:
    """The first and last day that some cell reads, lead days included; February's at least."""
    spans = {cell.span for cell in cells} & set(SPANS) | {"2016-02"}
    first = min(SPANS[span].first - timedelta(days=LEARNED_DAYS) for span in spans)
    return max(first, FIRST_NEEDED), max(SPANS[span].last for span in spans)


def _study_data(load: Load, before: Values, flu: Values, unemployment: Values) -> StudyData:
    moves = np.abs(np.diff(before.transpose(1, 0, 2).reshape(before.shape[1], -1)))
    region = FORECAST_REGION if FORECAST_REGION in load.regions else load.regions[0]
    start = load.index_of(COUNTED_MONTH)
    month = load.of_region(region)[start:].reshape(-1)
    counts = (
        Counts("flu", "visits a week", flu, "1", 316.0, 5000.0, 52, 1),
        Counts("unemployment", "thousands", unemployment, "0.001", 30.0, 300.0, 12, 1),
        Counts("load", "MW", month, "0.001", 100.0, 5000.0, 48, 48),
    )
    short = {one.name: replace(one, values=one.values[: COUNTED_STEPS[one.name]]) for one in counts}
    for name, one in short.items():
        if one.values.size != COUNTED_STEPS[name]:
            raise DumpError(
                f"the series {name} must have {COUNTED_STEPS[name]} steps; it has {one.values.size}"
            )
    return StudyData(
        load,
        short,
        region,
        largest_move_mw=float(moves.max()),
        usual_move_mw=float(moves.mean()),
    )


def read_load(file: Path, first: date, last: date) -> tuple[tuple[str, ...], Values]:
    """Return regions, and their load of these days, (n_days, n_regions, 48). Raises DumpError for gaps."""
    rows = read_rows(file, LOAD_COLUMNS, first, last).sort("day", "region_code", "timestamp_local")
    names, n_days = tuple(sorted(set(rows["region_code"]))), (last - first).days + 1
    if rows.height != n_days * len(names) * CALENDAR.slots or rows["load_mw"].null_count():
        raise DumpError(
            f"{file} must have one value for each region and each of {CALENDAR.slots} slots a day, "
            f"{first} to {last}"
        )
    return names, rows["load_mw"].to_numpy().reshape(n_days, len(names), CALENDAR.slots)


def read_rows(file: Path, columns: Sequence[str], first: date, last: date) -> pl.DataFrame:
    """Return the rows of the days first to last, their local day in the column `day`.

    The last of the columns is the value: it goes through its text, so that a 32-bit value stays the decimal
    that was delivered. Raises DumpError for a file that cannot be read, lacks a column or a day.
    """
    source = _read(file)
    if missing := [name for name in columns if name not in source.columns]:
        raise DumpError(f"{file} lacks the column {', '.join(missing)}; is it the file that was meant?")
    day = pl.col("timestamp_local").dt.date()
    rows = source.select(*columns, day.alias("day")).filter(pl.col("day").is_between(first, last))
    days = days_from(first, last)
    if absent := sorted(set(days) - set(rows["day"])):
        raise DumpError(
            f"{file} has no rows on {absent[0]} ({len(absent)} of {len(days)} days); ask for others"
        )
    return rows.with_columns(pl.col(columns[-1]).cast(pl.String).cast(pl.Float64))


def read_temperature(file: Path, names: Sequence[str]) -> tuple[date, Values]:
    """Return the first day and the regions' mean temperatures in °C, (n_regions, n_days).

    Raises DumpError for a file that cannot be read, or without the regions.
    """
    found = _read(file).pivot(on="region_code", index="date", values="t_mean_c").sort("date")
    if missing := [name for name in names if name not in found.columns]:
        raise DumpError(f"{file} has no temperatures of {', '.join(missing)}")
    first: date = found["date"][0]
    return first, found.select(names).to_numpy().T


def read_flu(folder: Path) -> Values:
    """Visits for influenza-like illness at age 5 to 24, nation, weekly, 2006 week 40 to 2010 week 39.

    Raises DumpError for a file that cannot be read.
    """
    place = pl.col("year") * 100 + pl.col("week")
    rows = _read(folder / FLU).filter(
        (pl.col("region_type") == "National") & place.is_between(200640, 201039)
    )
    visits: Values = rows.sort("year", "week")["age_5_24"].to_numpy().astype(np.float64)
    return visits


def read_unemployment(folder: Path) -> Values:
    """Unemployment level in thousands, monthly, from 1972-01. Raises DumpError as `read_flu`."""
    people: Values = _read(folder / UNEMPLOYMENT).sort("month")["thousands"].to_numpy().astype(np.float64)
    return people


def _read(file: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DumpError(
            f"{file} cannot be read; name the folder with --data, or {SIMULATED!r} for made-up series"
        ) from error

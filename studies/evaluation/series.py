"""The public series: load of the French regions, temperatures, flu and unemployment; or made-up load."""

import hashlib
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.errors import DumpError
from optstream.stream import AggregationTree, Calendar, days_from
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from tasks.config.schema import public_holidays
from tasks.operate.simulate import FRENCH_REGIONS, daily_load, weather_of

LOAD, FLU, UNEMPLOYMENT = (
    "rte_regional_load_2013_2016.parquet",
    "flu_ilinet_weekly.parquet",
    "unemployment_monthly.parquet",
)
TEMPERATURE = "temperature_regional_daily_2016.parquet"
LOAD_COLUMNS = ("timestamp_local", "region_code", "load_mw")
SIMULATED = "simulated"
CALENDAR = Calendar(30, "Europe/Paris", "fixed")
STEPS = 48
LAST = date(2016, 12, 31)

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Load:
    """Days of load in MW, (n_days, n_regions, 48) from the first on; the row is the day of the stream."""

    values: Values
    regions: tuple[str, ...]
    first_day: date
    temperature: Covariate | None = None

    @property
    def tree(self) -> AggregationTree:
        """The nation above its regions."""
        return AggregationTree.from_parents({"nation": None} | dict.fromkeys(self.regions, "nation"))

    @property
    def public_days(self) -> PublicDays:
        """The calendar, with public holidays."""
        holidays = public_holidays("FR", range(self.first_day.year, LAST.year + 1))
        return PublicDays.from_date(self.first_day, STEPS, holidays)

    @cached_property
    def digest(self) -> str:
        """Which data these are."""
        digest = hashlib.sha256(repr((self.regions, self.first_day, self.temperature)).encode())
        digest.update(np.ascontiguousarray(self.values).tobytes())
        return digest.hexdigest()

    def rows(self, first: date, last: date, lead_days: int) -> slice:
        """Return the rows of the days first to last, and of days before them."""
        start = (first - self.first_day).days - lead_days
        return slice(max(start, 0), (last - self.first_day).days + 1)


def load_from(source: str, first: date) -> Load:
    """Return the load from a day to the end of 2016, with the temperatures of 2016."""
    if source == SIMULATED:
        days = days_from(first, LAST)
        values = [
            [daily_load(at, name, day, CALENDAR, 0) for name, at in FRENCH_REGIONS.items()] for day in days
        ]
        hours = np.arange(24.0)  # a day's mean of the weather that moves all leaves together
        weather = np.array([[np.mean(weather_of(0, day, hours, "")) for day in days]])
        temperature = Covariate("temperature", 0, weather)
        return Load(np.round(np.array(values), 1), tuple(FRENCH_REGIONS), first, temperature)
    names, found = read_load(Path(source, LOAD), first, LAST)
    since, degrees = read_temperature(Path(source, TEMPERATURE), names)
    return Load(found, names, first, Covariate("temperature", (since - first).days, degrees))


def read_load(file: Path, first: date, last: date) -> tuple[tuple[str, ...], Values]:
    """Return regions, and their load of these days, (n_days, n_regions, 48)."""
    source = _read(file)
    if missing := [name for name in LOAD_COLUMNS if name not in source.columns]:
        raise DumpError(f"{file} lacks the column {', '.join(missing)}; is it the file that was meant?")
    day = pl.col("timestamp_local").dt.date().alias("day")
    rows = source.select(*LOAD_COLUMNS, day).filter(pl.col("day").is_between(first, last))
    rows = rows.sort("day", "region_code", "timestamp_local")
    names, n_days = tuple(sorted(set(rows["region_code"]))), (last - first).days + 1
    if not names or rows.height != n_days * len(names) * STEPS or rows["load_mw"].null_count():
        raise DumpError(
            f"{file} must have one value for each region and each of {STEPS} slots a day, {first} to {last}"
        )
    load = rows["load_mw"].cast(pl.String).cast(pl.Float64).to_numpy()
    return names, load.reshape(n_days, len(names), STEPS)


def read_temperature(file: Path, names: tuple[str, ...]) -> tuple[date, Values]:
    """Return the first day and the regions' mean temperatures in °C, (n_regions, n_days)."""
    found = _read(file).pivot(on="region_code", index="date", values="t_mean_c").sort("date")
    if missing := [name for name in names if name not in found.columns]:
        raise DumpError(f"{file} has no temperatures of {', '.join(missing)}")
    first: date = found["date"][0]
    return first, found.select(names).to_numpy().T


def read_flu(folder: Path) -> Values:
    """Return visits for influenza-like illness at age 5 to 24, weekly, 2006 week 40 to 2010 week 39."""
    week = pl.col("year") * 100 + pl.col("week")
    rows = _read(folder / FLU).filter((pl.col("region_type") == "National") & week.is_between(200640, 201039))
    visits: Values = rows.sort("year", "week")["age_5_24"].to_numpy().astype(np.float64)
    return visits


def read_unemployment(folder: Path) -> Values:
    """Return the unemployment level in thousands, monthly, from 1972-01. Raises DumpError as `read_flu`."""
    people: Values = _read(folder / UNEMPLOYMENT).sort("month")["thousands"].to_numpy().astype(np.float64)
    return people


def _read(file: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DumpError(
            f"{file} cannot be read; name the folder with --data, or {SIMULATED!r} for made-up series"
        ) from error

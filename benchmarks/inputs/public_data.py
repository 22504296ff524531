"""Reads the public series, and writes two of them as daily dumps.

The French load of several years (one Parquet file: timestamp_local, wall clock with 48 slots on every day;
region_code; load_mw), half-hourly household meters (customer_id, timestamp_local, energy_kwh), flu visits and
unemployment. The files that RTE itself hands out are read by `optstream import-rte`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.inputs.fixture import metered
from optstream import AggregationTree
from optstream.errors import DumpError, ParameterError
from optstream.stream import days_from
from tasks.sample_data.load_shapes import stable_hash
from tasks.sample_data.rte import RegionLoad, write_loads
from tasks.sample_data.write_dumps import write_dump
from tasks.studies.evaluation.data import CALENDAR, LOAD, read_flu, read_unemployment

ZONES = ("zone-0", "zone-1", "zone-2", "zone-3")
LOAD_COLUMNS = ("timestamp_local", "region_code", "load_mw")


@dataclass(frozen=True, eq=False)
class Load:
    """Load in MW, (n_days, n_leaves, n_steps), in tree.leaves order, and each day's first step."""

    tree: AggregationTree
    load_mw: NDArray[np.float64]
    first_steps: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PublicSeries:
    """Plain series, (n_periods, n_series, n_steps), in `unit`, and the promise under which they are released.

    window: steps. alpha: one person's change of a step. n_points: of OptStream and Fourier. threshold: of L1
    sampling. deviation: how far a series is taken to move in a step, a round number that everybody knows.
    """

    name: str
    unit: str
    values: NDArray[np.float64]
    first_steps: tuple[int, ...]
    window: int
    alpha: str
    resolution: str
    n_points: int
    threshold: str
    deviation: float


def read_load(data: Path, first: date, last: date) -> Load:
    """Read the days first to last; data is the folder or the file.

    Raises DumpError for a file that is not there or has gaps.
    """
    rows = _rows(_load_file(data), LOAD_COLUMNS, first, last).sort("day", "region_code", "timestamp_local")
    codes, days, n_steps = sorted(set(rows["region_code"])), days_from(first, last), CALENDAR.slots
    if rows.height != len(days) * len(codes) * n_steps or rows["load_mw"].null_count():
        raise DumpError(f"{data} must have one value for each region and each of {n_steps} slots a day")
    return Load(
        tree=AggregationTree.from_parents({"FR": None} | dict.fromkeys(codes, "FR")),
        load_mw=rows["load_mw"].to_numpy().reshape(len(days), len(codes), n_steps),
        first_steps=tuple(CALENDAR.first_step(day) for day in days),
    )


def load_of_2016(data: Path) -> PublicSeries:
    """Return the load of the 12 French regions in 2016, half-hours by day. Raises as `read_load`."""
    year = read_load(data, date(2016, 1, 1), date(2016, 12, 31))
    return PublicSeries(
        "load", "MW", year.load_mw, year.first_steps,
        window=48, alpha="1", resolution="0.001", n_points=10, threshold="1000", deviation=100.0,
    )  # fmt: skip


def flu(data: Path) -> PublicSeries:
    """Return visits for influenza-like illness at age 5 to 24, weekly, whole years from 2006 week 40."""
    values, starts = _whole_years(read_flu(data), 52)
    return PublicSeries(
        "flu", "visits", values, starts,
        window=52, alpha="1", resolution="1", n_points=10, threshold="2000", deviation=316.0,
    )  # fmt: skip


def unemployment(data: Path) -> PublicSeries:
    """Return the unemployment level, thousands, monthly, whole years from 1972."""
    values, starts = _whole_years(read_unemployment(data), 12)
    return PublicSeries(
        "unemployment", "thousands", values, starts,
        window=12, alpha="0.001", resolution="0.001", n_points=4, threshold="50", deviation=30.0,
    )  # fmt: skip


SERIES: dict[str, Callable[[Path], PublicSeries]] = {
    "load": load_of_2016,
    "flu": flu,
    "unemployment": unemployment,
}


def lay_out_load(data: Path, first: date, last: date, into: Path) -> int:
    """Write region=<code>/date=<day>/part-0.parquet and marker for every region and day; count the new.

    data is the folder or the file. Nulls stay as they are: judging a dump is the contract's task. Raises
    DumpError for a file that cannot be read or lacks a day, or where another dump lies.
    """
    rows = _rows(_load_file(data), LOAD_COLUMNS, first, last)
    rows = rows.sort("region_code", "timestamp_local").with_row_index("line", 1)
    rows = rows.select("region_code", pl.col("timestamp_local").alias("timestamp"), "load_mw", "line")
    loads = [
        RegionLoad(data.name, code, rows.filter(region_code=code).drop("region_code"))
        for code in rows["region_code"].unique(maintain_order=True)
    ]
    return write_loads(loads, into).n_written


def lay_out_meters(data: Path, first: date, last: date, into: Path) -> int:
    """Write region=zone-<number>/date=<day>/part-0.parquet and marker for every zone and day; count the new.

    The file says nothing of where a household lives, so each is put into one of four zones. Gaps stay gaps;
    a zone without a household on some day gets no dump on it. Raises DumpError as `lay_out_load`.
    """
    rows = _rows(data, ["customer_id", "timestamp_local", "energy_kwh"], first, last)
    rows = rows.sort("customer_id", "timestamp_local").with_columns(
        pl.col("customer_id").replace_strict(zones(rows["customer_id"])).alias("zone")
    )
    dumps = rows.rename({"timestamp_local": "timestamp"}).group_by("zone", "day", maintain_order=True)
    columns = ["customer_id", "timestamp", "energy_kwh"]
    return sum(write_dump(into, str(zone), day, dump.select(columns)) for (zone, day), dump in dumps)


def meters_configuration(dumps: Path) -> str:
    """Return the configuration that reads the meters' dumps: the same 48 slots on every local day."""
    return metered(dumps, ZONES, "Australia/Sydney", "fixed")


def zones(customers: pl.Series) -> dict[str, str]:
    """Return the zone of each customer, by a hash of the name alone."""
    return {name: ZONES[stable_hash(name) % len(ZONES)] for name in customers.unique(maintain_order=True)}


def _load_file(data: Path) -> Path:
    return data / LOAD if data.is_dir() else data


def _rows(data: Path, columns: Sequence[str], first: date, last: date) -> pl.DataFrame:
    """The rows of the days asked for, by their local day in the column `day`; the last column is the value.

    Values go through their text, so that a 32-bit value stays the decimal that was delivered.
    """
    if last < first:
        raise ParameterError(f"the last day must not come before the first; got {first} to {last}")
    if not data.is_file():
        raise DumpError(f"{data} is not a file; name the data with --data or OPTSTREAM_DATA")
    try:
        source = pl.scan_parquet(data, glob=False)
        if missing := [name for name in columns if name not in source.collect_schema().names()]:
            raise DumpError(f"{data} lacks the column {', '.join(missing)}; is it the file that was meant?")
        day = pl.col("timestamp_local").dt.date()
        rows = source.select(*columns, day.alias("day")).filter(day.is_between(first, last)).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DumpError(f"{data} cannot be read as the Parquet file that was meant") from error
    days = days_from(first, last)
    if absent := sorted(set(days) - set(rows["day"])):
        raise DumpError(
            f"{data} has no rows on {absent[0]} ({len(absent)} of {len(days)} days); ask for others"
        )
    return rows.with_columns(pl.col(columns[-1]).cast(pl.String).cast(pl.Float64))


def _whole_years(values: NDArray[np.float64], length: int) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Whole years of a single series, each a period, and their first steps."""
    whole = len(values) // length
    return values[: whole * length].reshape(whole, 1, length), tuple(range(0, whole * length, length))

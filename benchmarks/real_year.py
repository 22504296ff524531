"""The real load of 2016 as the benchmarks take it: 366 days of 48 slots, 12 regions."""

import argparse
import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.lay_out import days_of, read_days
from optstream import AggregationTree
from optstream.errors import DumpError
from optstream.stream import Calendar

FILE = "rte_regional_load_2013_2016.parquet"
FIRST, LAST = date(2016, 1, 1), date(2016, 12, 31)
CALENDAR = Calendar(30, "Europe/Paris", "fixed")


@dataclass(frozen=True, eq=False)
class RealYear:
    """Load in MW, (n_days, n_leaves, n_steps), in tree.leaves order, and each day's first step."""

    tree: AggregationTree
    load_mw: NDArray[np.float64]
    first_steps: tuple[int, ...]


def add_data_option(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add --data, which the environment's OPTSTREAM_DATA stands in for."""
    given = os.environ.get("OPTSTREAM_DATA")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", default=Path(given) if given else None,
        required=required and given is None,
        help=f"folder that holds {FILE}, or that file (default: the environment's OPTSTREAM_DATA)",
    )  # fmt: skip


def read_year(data: Path, first: date = FIRST, last: date = LAST) -> RealYear:
    """Read the days first to last. Raises DumpError for a file that is not there or has gaps."""
    file = data / FILE if data.is_dir() else data
    rows = read_days(file, ["timestamp_local", "region_code", "load_mw"], first, last)
    rows = rows.sort("day", "region_code", "timestamp_local")
    codes = sorted(set(rows["region_code"]))
    days, n_steps = days_of(first, last), CALENDAR.slots
    if rows.height != len(days) * len(codes) * n_steps or rows["load_mw"].null_count():
        raise DumpError(f"{file} must have one value for each region and each of {n_steps} slots a day")
    # Through the text, so that a 32-bit value stays the decimal that was delivered.
    load = rows["load_mw"].cast(pl.String).cast(pl.Float64).to_numpy()
    return RealYear(
        tree=AggregationTree.from_parents({"FR": None} | dict.fromkeys(codes, "FR")),
        load_mw=load.reshape(len(days), len(codes), n_steps),
        first_steps=tuple(CALENDAR.first_step(day) for day in days),
    )

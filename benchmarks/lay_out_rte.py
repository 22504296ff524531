"""Lay RTE's regional load of several years, gathered in one Parquet file, out as daily dumps, one a region.

    python benchmarks/lay_out_rte.py --data FILE --from 2016-02-01 --to 2016-02-29 --into DUMPS

The files that RTE itself hands out are read by `optstream import-rte`; what is read here is written as there.

FILE has the columns timestamp_local (wall clock, 48 slots on every day), region_code and load_mw. The dumps
have timestamp (wall clock, no zone) and load_mw. With --configuration RTE.toml it also writes the
configuration that reads them: `optstream init`'s, but with the same 48 slots on every local day.
"""

import sys
from datetime import date
from pathlib import Path

import polars as pl

from benchmarks.lay_out import command_line, read_days
from tasks.import_rte import RegionLoad, rte_configuration, write_loads


def lay_out_rte(data: Path, first: date, last: date, into: Path) -> int:
    """Write region=<code>/date=<day>/part-0.parquet and marker for every region and day; how many were new.

    Nulls stay as they are: judging a dump is the contract's task. Raises DumpError (see `read_days`), or
    where another dump lies.
    """
    rows = read_days(data, ["timestamp_local", "region_code", "load_mw"], first, last)
    rows = rows.sort("region_code", "timestamp_local").with_row_index("line", 1)
    # Through the text, so that a 32-bit value stays the decimal that was delivered.
    load = pl.col("load_mw").cast(pl.String).cast(pl.Float64)
    rows = rows.select("region_code", pl.col("timestamp_local").alias("timestamp"), load, "line")
    loads = [
        RegionLoad(data.name, code, rows.filter(region_code=code).drop("region_code"))
        for code in rows["region_code"].unique(maintain_order=True)
    ]
    return write_loads(loads, into).n_written


if __name__ == "__main__":
    sys.exit(
        command_line(
            "Lay RTE's regional load out as daily dumps, one a region.", lay_out_rte, rte_configuration
        )
    )

"""Lay RTE's regional load out as daily dumps, one a region, as a supplier would deliver them.

    python benchmarks/lay_out_rte.py --data FILE --from 2016-02-01 --to 2016-02-29 --into DUMPS

FILE has the columns timestamp_local (wall clock, 48 slots on every day), region_code and load_mw. The dumps
have timestamp (wall clock, no zone) and load_mw. With --configuration RTE.toml it also writes the
configuration that reads them: `optstream init`'s, but with the same 48 slots on every local day.
"""

import json
import re
import sys
from datetime import date
from pathlib import Path

import polars as pl

from benchmarks.lay_out import command_line, read_days, write_days
from optstream.errors import ParameterError
from tasks.example import EXAMPLE


def lay_out_rte(data: Path, first: date, last: date, into: Path) -> int:
    """Write region=<code>/date=<day>/part-0.parquet and marker for every region and day; how many were new.

    Nulls stay as they are: judging a dump is the contract's task. Raises DumpError (see `read_days`), or
    where another dump lies.
    """
    rows = read_days(data, ["timestamp_local", "region_code", "load_mw"], first, last)
    # Through the text, so that a 32-bit value stays the decimal that was delivered.
    rows = rows.sort("region_code", "timestamp_local").with_columns(
        pl.col("timestamp_local").alias("timestamp"), pl.col("load_mw").cast(pl.String).cast(pl.Float64)
    )
    return write_days(rows, "region_code", into, ["timestamp", "load_mw"])


def rte_configuration(dumps: Path) -> str:
    """The configuration that reads these dumps: the example's, with fixed slots."""
    text = EXAMPLE
    changes = {
        r"^day = .*$": 'day = "fixed"                   # RTE delivers 48 slots on every local day',
        r'^folder = "dumps"$': f"folder = {json.dumps(str(dumps))}",
    }
    for pattern, line in changes.items():
        text, n_changed = re.subn(pattern, lambda _, line=line: line, text, flags=re.MULTILINE)
        if n_changed != 1:
            raise ParameterError(f"the example must have one line like {pattern}; it has {n_changed}")
    return text


if __name__ == "__main__":
    sys.exit(
        command_line(
            "Lay RTE's regional load out as daily dumps, one a region.", lay_out_rte, rte_configuration
        )
    )

"""What the two lay-out scripts share: reading one file of many days, and their command line."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import polars as pl

from optstream.errors import DumpError, OptStreamError, ParameterError
from optstream.stream import days_from
from tasks.write_dumps import write_dump

LayOut = Callable[[Path, date, date, Path], int]
Configuration = Callable[[Path], str]


def days_of(first: date, last: date) -> list[date]:
    """Every day from first to last. Raises ParameterError if the last comes before the first."""
    if last < first:
        raise ParameterError(f"the last day must not come before the first; got {first} to {last}")
    return days_from(first, last)


def read_days(data: Path, columns: Sequence[str], first: date, last: date) -> pl.DataFrame:
    """The rows of the days asked for, by their local day in the column `day`.

    Raises DumpError if the file cannot be read, lacks a column or has no row for one of the days.
    """
    if not data.is_file():
        raise DumpError(f"{data} is not a file; name the data with --data or OPTSTREAM_DATA")
    days = days_of(first, last)
    try:
        source = pl.scan_parquet(data, glob=False)
        missing = [name for name in columns if name not in source.collect_schema().names()]
        if missing:
            raise DumpError(f"{data} lacks the column {', '.join(missing)}; is it the file that was meant?")
        local_day = pl.col("timestamp_local").dt.date()
        rows = (
            source.select(*columns, local_day.alias("day"))
            .filter(local_day.is_between(first, last))
            .collect()
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DumpError(f"{data} cannot be read as the Parquet file that was meant") from error
    absent = sorted(set(days) - set(rows["day"]))
    if absent:
        raise DumpError(
            f"{data} has no rows on {absent[0]} ({len(absent)} of {len(days)} days); ask for others"
        )
    return rows


def write_days(rows: pl.DataFrame, region: str, into: Path, columns: Sequence[str]) -> int:
    """Write one dump for each value of the columns `region` and `day`; return how many were new."""
    written = 0
    for (name, day), dump in rows.group_by(region, "day", maintain_order=True):
        written += write_dump(into, str(name), day, dump.select(columns))
    return written


def command_line(
    description: str, lay_out: LayOut, configuration: Configuration, arguments: Sequence[str] | None = None
) -> int:
    """Parse, lay out, say what was done; errors in one line, status 2."""
    parser = argparse.ArgumentParser(description=description)
    given = os.environ.get("OPTSTREAM_DATA")
    parser.add_argument(
        "--data", type=Path, metavar="FILE", required=given is None, default=Path(given) if given else None,
        help="the Parquet file to lay out (default: the environment's OPTSTREAM_DATA)",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="first", type=_day, required=True, metavar="DATE", help="the first day"
    )
    parser.add_argument("--to", dest="last", type=_day, required=True, metavar="DATE", help="the last day")
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER", help="where the dumps go")
    parser.add_argument(
        "--configuration",
        type=Path,
        metavar="FILE",
        help="also write a configuration that reads the dumps (a new file)",
    )
    chosen = parser.parse_args(arguments)
    try:
        if chosen.configuration and chosen.configuration.exists():
            raise ParameterError(f"{chosen.configuration} exists; name a new file for the configuration")
        written = lay_out(chosen.data, chosen.first, chosen.last, chosen.into)
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{written} dumps written into {chosen.into} (those that lay there already are the same)")
    if chosen.configuration:
        chosen.configuration.write_text(configuration(chosen.into.absolute()), encoding="utf-8")
        print(f"configuration written: {chosen.configuration}")
    return 0


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a day is written 2016-02-29; got {text!r}") from None

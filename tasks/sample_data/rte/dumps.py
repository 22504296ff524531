"""What was read becomes dumps, a region and day each, and a configuration that reads them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from optstream.errors import DumpError, ParameterError
from tasks.config.example import EXAMPLE
from tasks.sample_data.rte.files import RegionLoad
from tasks.sample_data.write_dumps import write_dump

SLOTS = 48
"""Half-hours of every local day in RTE's files."""


@dataclass(frozen=True)
class Imported:
    """What an import did; a dump is one region's day.

    n_files: RTE's that were read. regions: their codes, sorted. n_kept: dumps that lay there already, the
    same. n_incomplete: of all dumps, those that lack a half-hour or a reading, and which the raw contract
    will refuse. n_empty: days of a region without any reading; nothing is written for them, so that the day
    waits for a later file.
    """

    folder: Path
    n_files: int
    regions: tuple[str, ...]
    n_written: int
    n_kept: int
    n_incomplete: int
    n_empty: int


def write_loads(loads: Sequence[RegionLoad], into: Path) -> Imported:
    """Write region=<code>/date=<day>/part-0.parquet and its marker for every region and day.

    The dumps have the columns timestamp (wall clock, without zone) and load_mw (float, null where absent).
    Raises DumpError where two files disagree, and nothing was written; or where another dump lies there,
    after which a second run goes on; ParameterError where no file was given.
    """
    if not loads:
        raise ParameterError("name at least one of RTE's files to import")
    rows = _together(loads)
    dumps = rows.select("timestamp", "load_mw")
    days = rows.with_row_index("start").group_by(
        "region", day=pl.col("timestamp").dt.date(), maintain_order=True
    )
    written = incomplete = empty = n_dumps = 0
    for region, day, start, n_rows, n_readings in days.agg(
        pl.col("start").first(), n_rows=pl.len(), n_readings=pl.col("load_mw").count()
    ).iter_rows():
        if n_readings == 0:
            empty += 1
            continue
        n_dumps += 1
        incomplete += n_readings < SLOTS
        written += write_dump(into, region, day, dumps.slice(start, n_rows))
    regions = tuple(sorted({load.region for load in loads}))
    return Imported(into, len(loads), regions, written, n_dumps - written, incomplete, empty)


def _together(loads: Sequence[RegionLoad]) -> pl.DataFrame:
    """Columns region, timestamp, load_mw of all files, in order, each half-hour once."""
    rows = pl.concat(
        load.rows.with_columns(region=pl.lit(load.region), file=pl.lit(number, pl.Int32))
        for number, load in enumerate(loads)
    )
    rows = rows.sort("region", "timestamp", "file")
    rows = rows.unique(["region", "timestamp", "load_mw"], keep="first", maintain_order=True)
    clashes = rows.filter(pl.struct("region", "timestamp").is_duplicated())
    if clashes.height:
        first, second = clashes[0], clashes[1]
        raise DumpError(
            f"{loads[second['file'].item()].file}: line {second['line'].item()}: another reading of region "
            f"{first['region'].item()}, {first['timestamp'].item()}, than in "
            f"{loads[first['file'].item()].file}, line {first['line'].item()}; import one vintage of each day"
        )
    return rows


def rte_configuration(dumps: Path) -> str:
    """Return the text of a configuration that reads imported dumps: the example's, but for two lines."""
    text = EXAMPLE
    folder = f"folder = {json.dumps(str(dumps), ensure_ascii=False)}"
    for start, line in (('day = "elapsed"', 'day = "fixed"'), ('folder = "dumps"', folder)):
        text = re.sub(f"^{start}.*$", line.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text

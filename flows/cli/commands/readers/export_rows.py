"""`optstream export`: some nodes and days of a published folder as a file that other tools load."""

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer

from flows.cli.console import Terminal
from flows.cli.options import (
    Json,
    PublicKeys,
    WordsError,
    asks,
    day_option,
    examples,
    flag,
    names_in,
    new_app,
)
from optstream.catalogue.about import read_about
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.hierarchy_table import find_hierarchy
from optstream.catalogue.layout import ABOUT, HIERARCHY
from optstream.catalogue.metadata.csvw import METADATA, csvw
from optstream.catalogue.metadata.dataset import dataset_of
from optstream.catalogue.metadata.write_metadata import to_bytes
from optstream.catalogue.reading.read import catalogue_reader
from optstream.catalogue.reading.selection import as_sdmx_csv, exported_columns, rows_of, with_names
from optstream.catalogue.signing import check_signature, read_public_keys
from optstream.catalogue.sums.period_sums import Period, period_sums
from optstream.catalogue.sums.read_sum import errors_of_days

app = new_app()


@app.command(
    epilog=examples(
        "optstream export published --from 2016-02-01 --to 2016-02-07 --output week.csv",
        "optstream export published --nodes 84,93 --weekly --as parquet --output weeks.parquet",
    )
)
def export(
    folder: Annotated[str, typer.Argument(help="A path, or a URL such as s3://bucket/published.")],
    output: Annotated[Path, asks("FILE", "The file to write; none is overwritten.")],
    nodes: Annotated[
        str | None,
        asks("NAMES", 'Names of nodes, with commas between ("A, B" is one in quotes); all by default.'),
    ] = None,
    first: Annotated[date | None, day_option("--from", "First day; the first published by default.")] = None,
    last: Annotated[date | None, day_option("--to", "Last day; the last published by default.")] = None,
    as_of: Annotated[
        date | None,
        day_option("--as-of", "All rows in the hierarchy of this day, over renamed, split or merged units."),
    ] = None,
    daily: Annotated[bool, flag("--daily", "Sums of each day, in place of steps.")] = False,
    weekly: Annotated[bool, flag("--weekly", "Sums of each week, from Monday on.")] = False,
    monthly: Annotated[bool, flag("--monthly", "Sums of each month.")] = False,
    kind: Annotated[
        Literal["csv", "parquet", "sdmx-csv"], typer.Option("--as", help="The format of the file.")
    ] = "csv",
    public_key: PublicKeys = None,
    as_json: Json = False,
) -> None:
    """Write some nodes and days of a published folder to a file.

    Needs the folder alone, and costs nothing: what is written was published, sums of days, weeks and months
    with their standard errors. Beside a CSV file lies its metadata, as CSV on the Web has it.
    """
    if output.suffix == ".parquet" and kind != "parquet":
        raise typer.BadParameter(f"{output.name!r:.80} would hold {kind}: add --as parquet, or call it .csv")
    period = _period(daily, weekly, monthly)
    storage, keys = open_storage(folder), public_key or None
    catalogue = catalogue_reader(storage, keys)()
    about = read_about(storage, None if keys is None else signed_by(storage, keys, ABOUT))
    chosen = names_in(nodes)
    hierarchy = None
    if as_of is not None:
        check = None if keys is None else signed_by(storage, keys, HIERARCHY)
        hierarchy = as_of, find_hierarchy(storage, check)
    rows = rows_of(storage, catalogue, chosen, first, last, verify=keys is not None, as_of=hierarchy)
    if period is not None:
        # how the errors of another day's units hang together no file tells
        days = pl.Series([], dtype=pl.Date) if as_of is not None else rows["date"].unique().sort()
        errors = errors_of_days(storage, catalogue, days)
        rows = period_sums(rows, catalogue.value_column, period, errors)
    if kind == "sdmx-csv":
        rows = as_sdmx_csv(rows, catalogue.value_column, period)
    else:
        rows = with_names(rows, about.nodes)
    described = output.with_name(output.name + METADATA)
    check_new(output, *([described] if kind == "csv" else []))
    write_rows(rows, output, as_parquet=kind == "parquet")
    if kind == "csv":
        columns = exported_columns(catalogue.value_column, rows.columns)
        with described.open("xb") as written:
            written.write(to_bytes(csvw(dataset_of(storage, catalogue, about), output.name, columns)))
    terminal = Terminal(as_json)
    terminal.say(f"{output}: {rows.height:,} rows")
    terminal.document({"format": "optstream.export/1", "file": str(output), "rows": rows.height})


def _period(daily: bool, weekly: bool, monthly: bool) -> Period | None:
    given: dict[Period, bool] = {"day": daily, "week": weekly, "month": monthly}
    asked = [period for period, wanted in given.items() if wanted]
    if len(asked) > 1:
        raise WordsError("--daily, --weekly and --monthly are different files; export them one by one")
    return asked[0] if asked else None


def check_new(*files: Path) -> None:
    """Raise WordsError for a file that is there already: none is overwritten."""
    for file in files:
        if file.exists():
            raise WordsError(f"{file} is there already; name another file, or remove it")


def write_rows(rows: pl.DataFrame, output: Path, *, as_parquet: bool) -> None:
    """Write a new file of rows, as Parquet or else as CSV."""
    with output.open("xb") as written:
        if as_parquet:
            rows.write_parquet(written)
        else:
            rows.write_csv(written, datetime_format="%Y-%m-%dT%H:%M:%SZ")


def signed_by(storage: Storage, keys: list[Path], name: str) -> Callable[[bytes], str]:
    """What raises where a file of the folder is not signed by one of the keys."""
    return partial(check_signature, storage, name, keys=read_public_keys(keys))

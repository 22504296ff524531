"""`optstream export`: some nodes and days of a published folder as a file that other tools load."""

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.cli.console import Terminal
from flows.cli.options import Json, WordsError, day_option, examples, new_app
from optstream.catalogue import read_catalogue
from optstream.catalogue.reading.selection import as_sdmx_csv, by_day, select_rows

app = new_app()


@app.command(
    epilog=examples(
        "optstream export published --from 2016-02-01 --to 2016-02-07 --output week.csv",
        "optstream export published --nodes 84,93 --daily --as parquet --output days.parquet",
    )
)
def export(
    folder: Annotated[str, typer.Argument(help="A path, or a URL such as s3://bucket/published.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="The file to write; none is overwritten.")],
    nodes: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Names of nodes, with commas between; all by default.")
    ] = None,
    first: Annotated[date | None, day_option("--from", "First day; the first published by default.")] = None,
    last: Annotated[date | None, day_option("--to", "Last day; the last published by default.")] = None,
    daily: Annotated[
        bool, typer.Option("--daily", help="A row for each day and node, not for each step.")
    ] = False,
    kind: Annotated[
        Literal["csv", "parquet", "sdmx-csv"], typer.Option("--as", help="The format of the file.")
    ] = "csv",
    public_key: Annotated[
        list[Path] | None,
        typer.Option(
            "--public-key", metavar="FILE", help="The publisher's public key (PEM); may be repeated."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write some nodes and days of a published folder to a file.

    Needs the folder alone, and costs nothing: what is written was published. By day, standard errors are
    upper bounds, where every step's is known.
    """
    value = read_catalogue(folder).value_column
    chosen = tuple(nodes.split(",")) if nodes else ()
    rows = select_rows(folder, chosen, first, last, public_key or None)
    if daily:
        rows = by_day(rows, value)
    if kind == "sdmx-csv":
        rows = as_sdmx_csv(rows, value, daily)
    try:
        with output.open("xb") as file:
            if kind == "parquet":
                rows.write_parquet(file)
            else:
                rows.write_csv(file, datetime_format="%Y-%m-%dT%H:%M:%SZ")
    except FileExistsError:
        raise WordsError(f"{output} is there already; name another file, or remove it") from None
    terminal = Terminal(as_json)
    terminal.say(f"{output}: {rows.height:,} rows")
    terminal.document({"format": "optstream.export/1", "file": str(output), "rows": rows.height})

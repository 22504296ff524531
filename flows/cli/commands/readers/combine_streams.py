"""`optstream combine`: published streams of which one is the sum of the others, brought to agree."""

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.commands.readers.export_rows import check_table, write_rows
from flows.cli.console import Terminal
from flows.cli.options import Json, PublicKeys, asks, day_option, examples, new_app
from optstream.catalogue.reading.combine import SUSPECT, combine_published

app = new_app()


@app.command(
    epilog=examples(
        "optstream combine --total load/published --part industry/published --part households/published "
        "--output combined.csv"
    )
)
def combine(
    total: Annotated[str, asks("FOLDER", "The published folder of the stream that is the sum.")],
    part: Annotated[list[str], asks("FOLDER", "That of a part; given for each of them, at least two.")],
    output: Annotated[Path, asks("FILE", "A .csv or .parquet file to write; none is overwritten.")],
    first: Annotated[date | None, day_option("--from", "First day; the first published by default.")] = None,
    last: Annotated[date | None, day_option("--to", "Last day; the last published by default.")] = None,
    public_key: PublicKeys = None,
    as_json: Json = False,
) -> None:
    """Bring published streams to agree with a known sum.

    What is missing from the sum is shared out by the stated errors, so that each errs less as a rule, and
    the total is the sum of its parts at every node and step. Needs the folders alone, and costs nothing.
    Exit code 1 if they miss the sum by far more than their errors explain.
    """
    check_table(output)
    found = combine_published(total, part, first, last, public_key or None)
    write_rows(found.rows, output, as_parquet=output.suffix == ".parquet")
    terminal = Terminal(as_json)
    shares = ", ".join(f"{name} {weight:.0%}" for name, weight in found.weights.items())
    terminal.say(f"{output}: {found.rows.height:,} rows; of what was missing from the sum took {shares}")
    if found.without_errors:
        terminal.say(
            f"…_se is empty: {', '.join(found.without_errors)} err by more than noise, and how such errors "
            "hang together is not known; …_noise_se, where known, is what noise alone did"
        )
    if found.is_suspect:
        terminal.say(
            f"the published values miss the sum by {found.disagreement:.3g} times what their errors explain "
            f"(more than {SUSPECT:g}): is the total in the parts' unit, and their sum?"
        )
    terminal.document(
        {
            "format": "optstream.combine/1",
            "file": str(output),
            "rows": found.rows.height,
            "weights": found.weights,
            "disagreement": found.disagreement,
            "without_errors": list(found.without_errors),
        }
    )
    raise typer.Exit(1 if found.is_suspect else 0)

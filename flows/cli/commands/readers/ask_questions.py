"""`optstream ask`: sums over windows, low signal, jumps and drops of what was published."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from flows.cli.commands.readers.export_rows import check_table, signed_by, write_rows
from flows.cli.console import Terminal
from flows.cli.options import (
    Json,
    PublicKeys,
    WordsError,
    asks,
    day_option,
    examples,
    names_in,
    new_app,
    parse_exactly,
)
from optstream.catalogue.about import read_about
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import ABOUT
from optstream.catalogue.nodes import called
from optstream.catalogue.questions.from_folder import ask as ask_folder
from optstream.catalogue.questions.from_folder import step_minutes_of
from optstream.catalogue.questions.question import Question
from optstream.catalogue.questions.read_answers import read_answers
from optstream.catalogue.questions.runs import Run, runs_of
from optstream.catalogue.reading.read import catalogue_reader

MOST_SHOWN = 40
NAME = "asked"
_LENGTH = re.compile(r"([1-9][0-9]{0,3})(min|h)")
app = new_app()


def parse_minutes(text: str) -> int:
    """The minutes of a length. Raises typer.BadParameter unless it looks like 30min or 4h."""
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"a length looks like 30min or 4h; got {text!r}")
    return int(found[1]) * (60 if found[2] == "h" else 1)


def border(name: str, help: str) -> Any:
    """An option that takes an exact number."""
    return typer.Option(name, parser=parse_exactly("a border"), metavar="NUMBER", help=help)


@app.command(
    epilog=examples(
        "optstream ask published --window 4h --low 300000 --nodes FR",
        "optstream ask published --window 2h --jump 500 --level 1 --output jumps.csv",
        "optstream ask published",
    )
)
def ask(
    folder: Annotated[str, typer.Argument(help="A path, or a URL such as s3://bucket/published.")],
    window: Annotated[
        int | None,
        typer.Option(
            parser=parse_minutes,
            metavar="LENGTH",
            help="Of every window, such as 30min or 4h. Without: print what the publisher asked.",
        ),
    ] = None,
    low: Annotated[
        Fraction | None, border("--low", "Where a window's sum is at most this; without any border: sums.")
    ] = None,
    jump: Annotated[
        Fraction | None, border("--jump", "Where a window's last value is at least this above its first.")
    ] = None,
    drop: Annotated[
        Fraction | None, border("--drop", "Where a window's last value is at least this below its first.")
    ] = None,
    nodes: Annotated[
        str | None, asks("NAMES", 'Names of nodes, with commas between ("A, B" is one in quotes).')
    ] = None,
    level: Annotated[
        int | None, typer.Option(min=0, help="In place of nodes: all of this level, the root's 0.")
    ] = None,
    first: Annotated[date | None, day_option("--from", "First day; the first published by default.")] = None,
    last: Annotated[date | None, day_option("--to", "Last day; the last published by default.")] = None,
    output: Annotated[
        Path | None, asks("FILE", "Write all answers there, .csv or .parquet; none is overwritten.")
    ] = None,
    public_key: PublicKeys = None,
    as_json: Json = False,
) -> None:
    """Ask a published folder for window sums and events.

    Events are low signal, jumps and drops. Needs the folder alone, and costs nothing: answers are functions
    of what was published.
    """
    storage, keys = open_storage(folder), public_key or None
    borders = {"low": low, "jump": jump, "drop": drop}
    given = {kind: bound for kind, bound in borders.items() if bound is not None}
    if len(given) > 1:
        raise WordsError(f"--{' and --'.join(given)} are different questions; ask them one by one")
    if window is None:
        if given or nodes or level is not None:
            raise WordsError("--window is missing: a question is asked of windows, such as --window 4h")
        rows = read_answers(folder, first, last, public_key=keys)
    else:
        minutes = step_minutes_of(storage, catalogue_reader(storage, keys)())
        if window % minutes:
            raise WordsError(f"--window must be whole steps of {minutes} minutes; got {window} minutes")
        named = names_in(nodes)
        kind, bound = next(iter(given.items()), ("sum", None))
        question = Question(NAME, kind, window // minutes, bound, named, level)  # type: ignore[arg-type]
        rows = ask_folder(folder, [question], first, last, public_key=keys)
    if output is not None:
        check_table(output)
        write_rows(rows, output, as_parquet=output.suffix == ".parquet")
    about = read_about(storage, None if keys is None else signed_by(storage, keys, ABOUT))
    _show(rows, output, partial(called, facts=about.nodes), Terminal(as_json))


def _show(rows: pl.DataFrame, output: Path | None, named: Callable[[str], str], terminal: Terminal) -> None:
    runs = runs_of(rows)
    document = {
        "format": "optstream.ask/1",
        "file": None if output is None else str(output),
        "answers": rows.height,
        "runs": [run.to_document() for run in runs],
    }
    terminal.document(document)
    if output is not None:
        terminal.say(f"{output}: {rows.height:,} answers")
        return
    _say_runs(runs, named, terminal)
    sums = rows.filter(pl.col("happened").is_null())
    for row in sums.tail(MOST_SHOWN).iter_rows(named=True):
        told = _error_in_words(row)
        terminal.say(f"{row['timestamp']:%Y-%m-%d %H:%M}Z  {named(row['node'])}  {row['answer']:,.10g}{told}")
    more = max(sums.height - MOST_SHOWN, 0) + max(len(runs) - MOST_SHOWN, 0)
    terminal.say(
        f"{rows.height:,} windows answered{f'; {more:,} not shown: --output has all' if more else ''}"
    )


def _error_in_words(row: Mapping[str, Any]) -> str:
    """The standard error of a sum, as well as it is known; nothing where it is not."""
    for column, what in (("answer_se", "standard error"), ("answer_noise_se", "noise alone")):
        for name, most in ((column, ""), (f"{column}_at_most", "at most ")):
            if row[name] is not None:
                return f"  ({what} {most}{row[name]:,.6g})"
    return ""


def _say_runs(runs: Sequence[Run], named: Callable[[str], str], terminal: Terminal) -> None:
    """A line for each span in which an event went on; the newest last."""
    for run in runs[-MOST_SHOWN:]:
        asked = "" if run.question == NAME else f"{run.question}: "
        span = f"{run.first:%Y-%m-%d %H:%M}Z to {run.last:%Y-%m-%d %H:%M}Z"
        terminal.say(f"{asked}{named(run.node)}  windows that end {span}")

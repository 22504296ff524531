"""`python -m studies evaluate`: the papers' experiments."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from flows.cli.options import (
    Json,
    WordsError,
    asks,
    examples,
    flag,
    new_app,
)
from flows.cli.output import Terminal
from studies.evaluation import EXPERIMENTS, Experiment, unique_cells
from studies.papers.data import SIMULATED, read_study_data, simulated_study_data
from studies.papers.findings import Means, checked
from studies.papers.run import Store, Terms
from studies.papers.run import evaluate as run

app = new_app()


@app.command(
    epilog=examples(
        "python -m studies evaluate --into evaluation --short",
    )
)
def evaluate(
    data: Annotated[
        str,
        asks(
            "FOLDER",
            "The folder of the public series, or `simulated`: made-up ones.",
        ),
    ] = "simulated",
    into: Annotated[Path | None, asks("FOLDER", "Where results go; a run that stopped goes on.")] = None,
    only: Annotated[
        list[int] | None, typer.Option(min=1, max=12, help="Only this experiment; may be repeated.")
    ] = None,
    short: Annotated[bool, flag("--short", "February only, at most three trials.")] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="At most so many trials of each cell.")] = None,
    public: Annotated[
        bool, flag("--public", "Declare the data public: anybody may then read how far releases miss.")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help="Cells at a time.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated noise.")] = 2016,
    as_json: Json = False,
) -> None:
    """Rerun the papers' experiments.

    Simulated noise alone.
    """
    terminal = Terminal(as_json)
    if into is None:
        raise WordsError("--into is needed: where results go")
    experiments = chosen_experiments(only or [], short, trials)
    public = public or data == SIMULATED
    cells = unique_cells(experiments)
    with terminal.step("read the data"):
        read = simulated_study_data(cells) if data == SIMULATED else read_study_data(Path(data), cells)
    name = data if data == SIMULATED else "public series"
    store = Store(into, Terms.of(read, name=name, seed=seed, public=public))
    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with terminal.bar(*columns) as update:
        told = None if update is None else lambda done, total: update(completed=done, total=total)
        frame = run(experiments, read, store, processes=processes, progress=told)
    terminal.say(f"{len(experiments)} experiments, {frame.height:,} figures in {into / 'results.parquet'}")
    if not public:
        terminal.say(
            "real against private is raw data: the folder is its owner's alone; declare --public data"
        )
    means = Means.of(frame)
    findings = checked(means)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=240, fmt_str_lengths=60):
        for one in experiments:
            terminal.say(f"\n{one.number}. {one.title}\n{means.table(one.number)}")
        terminal.say(f"\nfindings of docs/evaluation.md\n{findings}")
    unmet = findings.filter(~pl.col("holds"))["asked"].to_list()
    terminal.document(
        {"results": str(into), "experiments": [one.number for one in experiments], "unmet": unmet}
    )


def chosen_experiments(only: Sequence[int], short: bool, trials: int | None) -> list[Experiment]:
    """Those whose numbers were asked for, or all of them; in their short form, or with fewer trials."""
    chosen = [one for one in EXPERIMENTS if not only or one.number in only]
    if short:
        chosen = [one.short() for one in chosen]
    return chosen if trials is None else [one.limited(trials) for one in chosen]

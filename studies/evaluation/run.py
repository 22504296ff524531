"""Rerun the papers' experiments, and check the findings of docs/research/evaluation.md in them.

Simulated noise alone. A finished trial is a Parquet file, so a stopped run goes on from there.
"""

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

import optstream
from flows.cli.options import Json, asks, flag
from flows.cli.output import Terminal
from optstream.errors import ParameterError
from studies.evaluation.experiments import EXPERIMENTS, Block, Cell
from studies.evaluation.findings import Means, checked
from studies.evaluation.series import SIMULATED, Load, load_from
from studies.evaluation.trials import load_begins, run_trial
from tasks.trusted.files import make_private_folder, write_private

NUMBERS = ("estimation", "history", "measurement", "mechanisms", "noise", "privacy", "stream")
"""Packages that compute results."""
DIGITS = 16
INTO = Path("evaluation")


@dataclass(frozen=True, eq=False)
class Run:
    """What makes results comparable, and where they lie. loads: by study. public: anybody may read them."""

    folder: Path
    loads: dict[str, Load]
    seed: int
    public: bool

    def __post_init__(self) -> None:
        if self.public:
            self.folder.mkdir(parents=True, exist_ok=True)
        else:
            make_private_folder(self.folder)

    def file(self, cell: Cell) -> Path:
        """Return the file of a cell: its name gives the code, the seed, the data and the run's parameters."""
        what = repr((code_version(), self.seed, self.loads[cell.study].digest, cell))
        return self.folder / f"{hashlib.sha256(what.encode()).hexdigest()[:DIGITS]}.parquet"

    def keep(self, cell: Cell) -> Path:
        """Run a cell and write its rows, one a metric, whole or not at all; return the file."""
        result = run_trial(cell, self.loads[cell.study], self.seed)
        path, buffer = self.file(cell), io.BytesIO()
        plan, drawn = (None if one is None else float(one) for one in (result.plan, result.drawn))
        rows = [
            asdict(cell)
            | {"metric": metric, "value": value, "epsilon_plan": plan, "epsilon_drawn": drawn}
            | {"seed": self.seed, "code": code_version()}
            for metric, value in result.metrics.items()
        ]
        floats = dict.fromkeys(("epsilon_plan", "epsilon_drawn"), pl.Float64)
        pl.DataFrame(rows, schema_overrides=floats).write_parquet(buffer)
        if self.public:
            aside = path.with_name(f".{path.name}.{os.getpid()}")
            aside.write_bytes(buffer.getvalue())
            aside.replace(path)
        else:
            write_private(path, buffer.getvalue())
        return path


@cache
def code_version() -> str:
    """Return the package's version and a digest of the sources that the numbers depend on."""
    root = Path(optstream.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(file for package in NUMBERS for file in (root / package).rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{version('optstream')}+{digest.hexdigest()[:DIGITS]}"


def run_cells(cells: Sequence[Cell], run: Run, processes: int) -> Iterator[Path]:
    """Run cells and yield each file as it is written; neither processes nor order change a number."""
    if processes == 1 or len(cells) < 2:
        yield from map(run.keep, cells)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            for job in as_completed([pool.submit(run.keep, cell) for cell in cells]):
                yield job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def chosen_blocks(only: Sequence[int], short: bool, trials: int | None) -> dict[int, list[Block]]:
    """Return the experiments that were asked for, or all; in their short form, or with fewer trials."""
    if unknown := sorted(set(only) - set(EXPERIMENTS)):
        numbers = ", ".join(map(str, EXPERIMENTS))
        raise ParameterError(f"--only {unknown[0]} is no experiment that can be rerun; those are {numbers}")
    chosen = {number: list(EXPERIMENTS[number]) for number in EXPERIMENTS if not only or number in only}
    for blocks in chosen.values():
        blocks[:] = [block.short() if short else block for block in blocks]
        blocks[:] = [replace(one, trials=min(one.trials, trials or one.trials)) for one in blocks]
    return chosen


def main(
    data: Annotated[str, asks("FOLDER", "The folder of the public series, or `simulated`.")] = SIMULATED,
    into: Annotated[Path, asks("FOLDER", "Where results go; a run that stopped goes on.")] = INTO,
    only: Annotated[list[int] | None, typer.Option(help="Only this experiment; may be repeated.")] = None,
    short: Annotated[bool, flag("--short", "February, nine weeks or one day; at most three trials.")] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="At most so many trials of each cell.")] = None,
    public: Annotated[
        bool, flag("--public", "Declare the data public: anybody may then read how far releases miss.")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help="Trials at a time.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated noise.")] = 2016,
    as_json: Json = False,
) -> None:
    """Run the missing cells, and print the means and the findings."""
    terminal = Terminal(as_json)
    experiments = {
        number: list(dict.fromkeys(cell for block in blocks for cell in block.cells()))
        for number, blocks in chosen_blocks(only or [], short, trials).items()
    }
    cells = list(dict.fromkeys(cell for own in experiments.values() for cell in own))
    with terminal.step("read the data"):
        loads = {study: load_from(data, first) for study, first in load_begins(cells).items()}
    run = Run(into, loads, seed, public or data == SIMULATED)
    files = {cell: run.file(cell) for cell in cells}
    missing = [cell for cell, file in files.items() if not file.exists()]
    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with terminal.bar(*columns) as update:
        for done, _ in enumerate(run_cells(missing, run, processes), len(cells) - len(missing) + 1):
            if update is not None:
                update(completed=done, total=len(cells))
    if not run.public:
        terminal.say(
            "real against private is raw data: the folder is its owner's alone; declare --public data"
        )
    means = {
        number: Means.of(pl.read_parquet([files[cell] for cell in own]))
        for number, own in experiments.items()
    }
    found = checked(means)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=240, fmt_str_lengths=60):
        for number, own in means.items():
            terminal.say(f"\nexperiment {number}\n{own.table()}")
        terminal.say(f"\nfindings of docs/research/evaluation.md\n{found}")
    unmet = found.filter(~pl.col("holds"))["asked"].to_list()
    terminal.document({"results": str(into), "experiments": list(experiments), "unmet": unmet})

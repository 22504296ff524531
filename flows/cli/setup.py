"""Commands to begin with: an example configuration, and dumps, made up or from files of a supplier."""

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_CONFIG, Config, First, Last, asks, days_between, examples, flag, new_app
from flows.cli.output import Terminal
from flows.cli.read import check_new
from optstream.errors import OptStreamError
from optstream.stream import Lattice
from tasks.config import load_settings
from tasks.config.schema import MECHANISMS
from tasks.config.templates import example_of
from tasks.operate.rte import read_load, rte_configuration, write_loads
from tasks.operate.simulate import simulate as write_dumps

RTE_SUFFIXES = (".zip", ".xls")
app = new_app()


@app.command(
    epilog=examples(
        "optstream init",
        "optstream init --mechanism HistoryInformed --counts",
        "optstream init --mechanism PeGaSus --hourly",
        "optstream init eco2mix",
    )
)
def init(
    path: Annotated[
        Path, typer.Argument(help="The file to write, or a folder of RTE's yearly files.")
    ] = DEFAULT_CONFIG,
    mechanism: Annotated[str, asks("NAME", f"One of {', '.join(MECHANISMS)}.")] = "OptStream",
    counts: Annotated[bool, flag("--counts", "Of whole numbers of visits, not a load.")] = False,
    metered: Annotated[bool, flag("--metered", "Of a row a customer and step, not a row a step.")] = False,
    hourly: Annotated[
        bool, flag("--hourly", "Released every hour, not every night; by some mechanisms.")
    ] = False,
) -> None:
    """Write a configuration: an example, or one for your files.

    Of a folder of RTE's yearly files (éCO2mix, zip or text) it writes daily dumps, and the configuration that
    reads them. All files are checked before anything is written; dumps that lie there are kept.
    """
    if path.is_dir():
        check_new(DEFAULT_CONFIG)
        text, path = _import(path, Terminal()), DEFAULT_CONFIG
        follows = f"optstream run --config {path} --date DAY"
    else:
        text = example_of(mechanism, counts, metered, hourly)
        follows = f"optstream simulate --config {path} --from 2016-02-01 --to 2016-02-02"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OptStreamError(f"{path} exists already; nothing was written: name another file") from None
    except OSError as error:
        raise OptStreamError(f"{path} cannot be written: {error.strerror}") from None
    print(f"wrote {path}; next: {follows}")


@app.command(epilog=examples("optstream simulate --from 2016-02-01 --to 2016-02-14"))
def simulate(
    first: First,
    last: Last,
    config: Config = DEFAULT_CONFIG,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same days.")] = 0,
) -> None:
    """Write made-up dumps to try things out.

    They are calibrated on public means of the French regions; dumps that are there are kept.
    """
    settings = load_settings(config)
    made = [
        write_dumps(
            settings.input_folder,
            leaves=tree.leaves,
            calendar=settings.calendar,
            days=list(days),
            seed=seed,
            schema=settings.input.schema_,
            layout_of=settings.input_of,
            counts=settings.privacy.counts,
            cells=tree.cells if isinstance(tree, Lattice) else {},
        )
        for tree, days in groupby(days_between(first, last), settings.tree_of)
    ]
    n_written, n_kept = sum(one.n_written for one in made), sum(one.n_kept for one in made)
    print(f"{n_written} dumps written, {n_kept} were there already, in {settings.input_folder}")


def _import(folder: Path, terminal: Terminal) -> str:
    """Write dumps of RTE's yearly files in a folder; return the text of a configuration that reads them."""
    files = sorted(file for file in folder.iterdir() if file.name[0] not in "._")
    odd = [file for file in files if file.suffix.lower() not in RTE_SUFFIXES or not file.is_file()]
    if len(odd) == len(files):
        raise OptStreamError(
            f"{folder} holds none of RTE's yearly files (éCO2mix, {' or '.join(RTE_SUFFIXES)}), the source "
            "that init knows; for other files name a configuration to write, and change its [input]"
        )
    if odd:
        raise OptStreamError(
            f"{str(odd[0])!r} is none of RTE's yearly files ({' or '.join(RTE_SUFFIXES)}); rename "
            'it if it is one, else move it away, or begin its name with "_", which hides it'
        )
    loads = []
    for file in files:
        with terminal.step(f"read {file.name}"):
            loads.append(read_load(file))
    into = Path("dumps").absolute()
    with terminal.step("write the dumps"):
        done = write_loads(loads, into)
    terminal.say(
        f"{done.n_files} files, {len(done.regions)} regions: {done.n_written} dumps written in {into}, "
        f"{done.n_kept} were there already, {done.n_incomplete} of them incomplete (the contract refuses "
        f"their days); {done.n_empty} days of a region without any reading were left out"
    )
    return rte_configuration(into)

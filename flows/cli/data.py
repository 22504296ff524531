"""Commands that bring dumps: made up, or from files that a supplier handed out."""

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_CONFIG, Config, days_between, parse_day


def simulate(
    first: Annotated[date, typer.Option("--from", parser=parse_day, metavar="DATE", help="First day.")],
    last: Annotated[date, typer.Option("--to", parser=parse_day, metavar="DATE", help="Last day.")],
    config: Config = DEFAULT_CONFIG,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same days.")] = 0,
) -> None:
    """Write made-up dumps, calibrated on public means of the French regions, to try things out."""
    from tasks.config import load_settings
    from tasks.sample_data.simulate import simulate as write_dumps

    settings = load_settings(config)
    written = write_dumps(
        settings.input_folder,
        leaves=settings.tree.leaves,
        calendar=settings.calendar,
        days=days_between(first, last),
        seed=seed,
        schema=settings.input.schema_,
        layout_of=settings.input_of,
    )
    print(f"{written.n_written} dumps written, {written.n_kept} were there already, in {written.folder}")


def import_rte(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Yearly files of regions, zip or text.")
    ],
    into: Annotated[Path, typer.Option(metavar="DUMPS", help="Where the dumps go: the input folder.")],
) -> None:
    """Turn the yearly files of regions that RTE hands out (éCO2mix) into daily dumps.

    Every day has 48 half-hours, also where the clocks change: the configuration must say
    day = "fixed". All files are read and checked before anything is written; dumps that lie there are
    never overwritten.
    """
    from flows.cli.console import Terminal
    from tasks.sample_data.rte import changed_lines, read_load, write_loads

    terminal, loads = Terminal(), []
    for file in files:
        with terminal.step(f"read {file.name}"):
            loads.append(read_load(file))
    with terminal.step("write the dumps"):
        done = write_loads(loads, into)
    day, folder = changed_lines(into.absolute())
    terminal.say("what `optstream init` writes reads these dumps once two of its lines are changed:")
    terminal.say(f"  [stream] {day}\n  [input] {folder}")
    terminal.say(
        f"{done.n_files} files, {len(done.regions)} regions: {done.n_written} dumps written, {done.n_kept} "
        f"were there already, {done.n_incomplete} of them incomplete (the contract refuses their days); "
        f"{done.n_empty} days of a region without any reading were left out"
    )

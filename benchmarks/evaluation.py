"""Where the evaluation's time goes: seconds of one process for each experiment, and for each mechanism.

    python -m benchmarks.evaluation [--data FOLDER] [--only N ...] [--results FOLDER]

Runs the short form (three trials, February) of the chosen experiments on one process, on made-up series
unless --data names the public ones; with --results it runs nothing and reads a finished run's seconds. A
cell that several experiments share is counted once, with the first. Beside each mechanism stands Laplace,
the peer: noise on every step, the least that any of them can take. Seconds are the clock's,
so the machine should have nothing else to do.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from optstream.errors import OptStreamError
from optstream.evaluation import EXPERIMENTS, CellResult, Experiment, run_cells, unique_cells
from tasks.evaluation.data import read_study_data, simulated_study_data
from tasks.evaluation.store import read_results

SEED = 2016
PEER = "Laplace"


def measure(experiments: Sequence[Experiment], data: Path | None) -> list[CellResult]:
    """Run every cell once, on this process."""
    cells = unique_cells(experiments)
    read = simulated_study_data(cells) if data is None else read_study_data(data, cells)
    running = run_cells(cells, read, seed=SEED)
    return list(track(running, "cells", len(cells), console=Console(stderr=True)))


def by_experiment(experiments: Sequence[Experiment], results: Iterable[CellResult]) -> Table:
    """Seconds of each experiment's own cells, those that an earlier one ran left out."""
    seconds = {one.cell: one.seconds for one in results}
    total, seen = sum(seconds.values()), set()
    table = Table("experiment", box=None, pad_edge=False)
    for name in ("cells", "seconds", "share"):
        table.add_column(name, justify="right")
    for experiment in experiments:
        own = [cell for cell in experiment.cells() if cell not in seen and cell in seconds]
        seen |= set(own)
        taken = sum(seconds[cell] for cell in own)
        table.add_row(f"{experiment.number}. {experiment.title}", str(len(own)), f"{taken:.1f}",
                      f"{100 * taken / total:.0f} %")  # fmt: skip
    table.add_row("all", str(len(seconds)), f"{total:.1f}", "100 %")
    return table


def by_mechanism(results: Iterable[CellResult]) -> Table:
    """Seconds of one trial on one span, by what is done and by whom, and how many times the peer's."""
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in results:
        taken[one.cell.study, one.cell.mechanism].append(one.seconds / max(len(one.trials), 1))
    means = {key: sum(values) / len(values) for key, values in taken.items()}
    table = Table("study", "mechanism", box=None, pad_edge=False)
    for name in ("seconds a trial", f"times {PEER}"):
        table.add_column(name, justify="right")
    for (study, mechanism), mean in sorted(means.items(), key=lambda item: (item[0][0], -item[1])):
        peer = means.get((study, PEER))
        table.add_row(study, mechanism, f"{mean:.3f}", "" if peer is None else f"{mean / peer:.1f}")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="the public series (default: made-up ones)"
    )
    parser.add_argument(
        "--only", type=int, nargs="+", metavar="N", help="only these experiments (default: all)"
    )
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="read a finished run instead")
    chosen = parser.parse_args(arguments)
    experiments = [one for one in EXPERIMENTS if not chosen.only or one.number in chosen.only]
    try:
        if chosen.results:
            results = read_results(chosen.results)
        else:
            experiments = [one.short() for one in experiments]
            results = measure(experiments, chosen.data)
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, 100)
    console.print(by_experiment(experiments, results))
    console.print()
    console.print(by_mechanism(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

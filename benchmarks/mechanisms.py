"""All mechanisms on three public series: by how much they miss, what they cost, how long they take.

    python -m benchmarks.mechanisms --data FOLDER [--json FILE]

The load of the 12 French regions in 2016 (a day of half-hours as period and window, alpha 1 MW), flu visits
(weeks, a year, one visit) and unemployment (months, a year, one person). All of epsilon goes to the series
themselves: no hierarchy, no bound. The inputs are public, so their errors may be printed; of private ones
they are raw data. Noise is simulated; the same seeds give the same figures whatever the number of processes.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.field import FIELD, Trial, run_trial
from benchmarks.public_series import READERS, PublicSeries
from benchmarks.real_year import add_data_option
from optstream.errors import OptStreamError

EPSILONS = ("1", "0.1", "0.01")
SECURE_PERIODS = 7
WIDTH = 140  # of the table, also where the output is a file

Key = tuple[str, str, str]
"""Series, mechanism, epsilon."""


@dataclass(frozen=True)
class Row:
    """Trials of one key together: mean error, its standard error, largest epsilons, median time."""

    error: float
    standard_error: float
    epsilon: Fraction
    worst: Fraction
    microseconds: float

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> "Row":
        errors = np.array([trial.error for trial in trials])
        spread = float(errors.std(ddof=1) / np.sqrt(errors.size)) if errors.size > 1 else float("nan")
        return cls(
            float(errors.mean()),
            spread,
            max(trial.epsilon for trial in trials),
            max(trial.worst for trial in trials),
            float(np.median([trial.microseconds for trial in trials])),
        )


def compare(series: Mapping[str, PublicSeries], trials: int, seed: int, processes: int) -> dict[Key, Row]:
    """Run every key; the trials of a key are spread over processes."""
    keys = [(name, field, epsilon) for epsilon in EPSILONS for name in series for field in FIELD]
    # One thread a process: the matrices are small, and the cores are taken by other rows.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        jobs = {
            key: [
                pool.submit(run_trial, key[1], series[key[0]], key[2], (seed, trial))
                for trial in range(trials)
            ]
            for key in keys
        }
        watched = track(jobs.items(), "rows", len(jobs), console=Console(stderr=True))
        return {key: Row.of([job.result() for job in running]) for key, running in watched}


def secure_microseconds(series: PublicSeries) -> dict[str, float]:
    """A step and series with the noise of publication, each mechanism on its first periods."""
    few = replace(
        series, values=series.values[:SECURE_PERIODS], first_steps=series.first_steps[:SECURE_PERIODS]
    )
    run_trial("Laplace = Uniform", few, "1", None)  # so that nobody pays for loading the sampler
    return {name: run_trial(name, few, "1", None).microseconds for name in FIELD}


def table_of(
    rows: Mapping[Key, Row], series: Mapping[str, PublicSeries], secure: Mapping[str, float]
) -> Table:
    """Errors with their standard errors; * marks the least of a column's block."""
    table = Table(box=None, pad_edge=False)
    for name in ("ε", "mechanism"):
        table.add_column(name, no_wrap=True)
    for one in series.values():
        table.add_column(f"{one.name}, {one.unit}", justify="right", no_wrap=True)
    for name in ("ε plan", "µs a step", "secure"):
        table.add_column(name, justify="right", no_wrap=True)
    for epsilon in EPSILONS:
        least = {name: min(rows[name, field, epsilon].error for field in FIELD) for name in series}
        for field in FIELD:
            own = [rows[name, field, epsilon] for name in series]
            table.add_row(
                epsilon,
                field,
                *(_error(row, row.error == least[name]) for name, row in zip(series, own, strict=True)),
                f"{float(max(row.epsilon for row in own)):.6g}",
                f"{own[0].microseconds:.0f}",
                f"{secure[field]:.0f}" if field in secure else "",
            )
        table.add_section()
    return table


def _error(row: Row, is_least: bool) -> str:
    digits = 0 if row.error >= 100 else 1 if row.error >= 10 else 3
    return f"{row.error:,.{digits}f} ± {row.standard_error:,.{digits}f}{' *' if is_least else '  '}"


def over_budget(rows: Mapping[Key, Row]) -> list[Key]:
    """Rows whose plan costs more than asked, or whose history more than its plan. Exact."""
    return [key for key, row in rows.items() if row.epsilon > Fraction(key[2]) or row.worst > row.epsilon]


def documents(rows: Mapping[Key, Row], seed: int) -> list[dict[str, Any]]:
    """The rows for JSON: epsilons as exact fractions."""
    return [
        {"series": key[0], "mechanism": key[1], "asked": key[2], "seed": seed}
        | {name: str(value) if isinstance(value, Fraction) else value for name, value in asdict(row).items()}
        for key, row in rows.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every row and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser, required=True)
    parser.add_argument("--trials", type=int, default=30, help="runs of each row (default: 30)")
    parser.add_argument(
        "--periods", type=int, default=None, help="only so many of each series (default: all)"
    )
    parser.add_argument("--series", nargs="+", choices=READERS, default=list(READERS), help="(default: all)")
    parser.add_argument("--seed", type=int, default=2016, help="of the simulated noise (default: 2016)")
    parser.add_argument("--processes", type=int, default=2, help="trials at a time (default: 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    chosen = parser.parse_args(arguments)
    try:
        found = {name: READERS[name](chosen.data) for name in chosen.series}
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    cut = slice(chosen.periods)
    series = {
        name: replace(one, values=one.values[cut], first_steps=one.first_steps[cut])
        for name, one in found.items()
    }
    rows = compare(series, chosen.trials, chosen.seed, chosen.processes)
    secure = secure_microseconds(next(iter(series.values())))
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    for one in series.values():
        n_periods, n_series, n_steps = one.values.shape
        console.print(
            f"{one.name}: {n_series} series, {n_periods} periods of {n_steps} steps, w = {one.window}, alpha "
            f"{one.alpha} {one.unit}, {one.n_points} points, L1 threshold {one.threshold}, mean "
            f"{one.values.mean():,.0f}"
        )
    console.print(
        f"mean absolute error a step ± its standard error over {chosen.trials} trials, seed {chosen.seed}; "
        "µs a step and series of the first series, with simulated and with secure noise"
    )
    console.print(table_of(rows, series, secure))
    console.print(f"rows that cost more than was asked, or than their plan: {over_budget(rows) or 'none'}")
    if chosen.json:
        chosen.json.write_text(json.dumps(documents(rows, chosen.seed), indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The French load of 2016, released with both samplers: what it costs and by how much it misses.

    python benchmarks/real_load.py --data FOLDER [--json FILE]

12 regions and the nation, 366 days of 48 fixed slots, w = 48, the paper's features or none, states passed
from day to day. Noise is simulated from the seed. Beside each mean absolute error a step stands what the
accountant says: of the plan, repeated for ever, and of the worst window of this very year.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.real_release import EITHER, WINDOW, Case, Outcome, run_case, together
from benchmarks.real_year import RealYear, add_data_option, read_year
from optstream.errors import OptStreamError

EPSILONS = ("1", "0.1", "0.01")
WIDTH = 132  # of the table, also where the output is a file


def cases(**options: Any) -> list[Case]:
    """Every row, epsilon by epsilon."""
    found = []
    for epsilon in EPSILONS:
        found += [
            Case(sampler, features, True, calibration, epsilon, **options)
            for sampler in ("equally spaced", "L1")
            for features in (True, False)
            for calibration in (("strict", "paper") if features or sampler == "L1" else (EITHER,))
        ]
        found += [Case("every step", False, fitted, EITHER, epsilon, **options) for fitted in (True, False)]
    return found


def table_of(rows: Sequence[tuple[Case, Outcome]]) -> Table:
    """The table as printed. Epsilons are rounded here; the comparisons below it are exact."""
    table = Table(box=None, pad_edge=False)
    for name in ("points", "features", "fit", "calibration"):
        table.add_column(name, no_wrap=True)
    for name in ("ε asked", "ε plan", "ε year", "nation MW", "regions MW", "sums off by", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, (case, one) in enumerate(rows):
        if number and rows[number - 1][0].epsilon != case.epsilon:
            table.add_section()
        table.add_row(
            case.sampler,
            "paper's" if case.features else "none",
            "yes" if case.post_processing else "no",
            case.calibration,
            case.epsilon,
            f"{float(one.epsilon_plan):.5g}",
            f"{float(one.epsilon_year):.5g}",
            f"{one.error_nation:,.0f}",
            f"{one.error_regions:,.0f}",
            f"{one.inconsistency:.1e}",
            f"{one.seconds:.0f}",
        )
    return table


def remarks(rows: Sequence[tuple[Case, Outcome]], year: RealYear) -> list[str]:
    """What holds for the whole table, checked exactly."""
    over = [
        case
        for case, one in rows
        if one.epsilon_year > one.epsilon_plan
        or (case.calibration != "paper" and one.epsilon_plan > Fraction(case.epsilon))
    ]
    totals = year.tree.add_up(year.load_mw)
    scale = np.abs(totals - totals.mean(axis=(0, 2), keepdims=True)).mean(axis=(0, 2))
    means = totals.mean(axis=(0, 2))
    return [
        f"mean load: nation {means[0]:,.0f} MW, a region {means[1:].mean():,.0f} MW; the year's own "
        f"mean, published raw, would miss by {scale[0]:,.0f} and {scale[1:].mean():,.0f} MW a step",
        f"rows whose year costs more than the plan, or whose strict plan more than asked: {over or 'none'}",
    ]


def documents(rows: Sequence[tuple[Case, Outcome]], seed: int) -> list[dict[str, Any]]:
    """The rows for JSON: epsilons as exact fractions."""
    return [
        {"seed": seed} | asdict(case) | {
            name: str(value) if isinstance(value, Fraction) else value for name, value in asdict(one).items()
        }
        for case, one in rows
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every row and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser, required=True)
    parser.add_argument("--alpha", default="10", help="protected change of a reading, MW (default: 10)")
    parser.add_argument(
        "--threshold", default="1000", help="of the L1 sampler, MW times steps (default: 1000)"
    )
    parser.add_argument("--trials", type=int, default=1, help="runs of each row (default: 1)")
    parser.add_argument("--days", type=int, default=366, help="only so many days of the year (default: all)")
    parser.add_argument("--seed", type=int, default=2016, help="of the simulated noise (default: 2016)")
    parser.add_argument("--processes", type=int, default=2, help="rows at a time (default: 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    chosen = parser.parse_args(arguments)
    try:
        year = read_year(chosen.data)
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    year = replace(year, load_mw=year.load_mw[: chosen.days], first_steps=year.first_steps[: chosen.days])
    planned = cases(alpha=chosen.alpha, threshold=chosen.threshold)
    # One thread a process: the matrices are small, and the cores are taken by other rows.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with ProcessPoolExecutor(chosen.processes, mp_context=get_context("spawn")) as pool:
        jobs = [
            [pool.submit(run_case, replace(case, trial=n), year, chosen.seed) for n in range(chosen.trials)]
            for case in planned
        ]
        watched = track(zip(planned, jobs, strict=True), "rows", len(planned), console=Console(stderr=True))
        rows = [(case, together([job.result() for job in trials])) for case, trials in watched]
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    console.print(
        f"2016, {len(year.load_mw)} days, w = {WINDOW}, alpha {chosen.alpha} MW, 10 points, threshold "
        f"{chosen.threshold}, {chosen.trials} run(s), simulated noise of seed {chosen.seed}"
    )
    console.print(table_of(rows))
    for remark in remarks(rows, year):
        console.print(remark)
    if chosen.json:
        chosen.json.write_text(json.dumps(documents(rows, chosen.seed), indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

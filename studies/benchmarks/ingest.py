"""Ingests a large metered dump, beside a bare polars scan and sum of the same files.

    python -m studies.benchmarks.ingest [--into FOLDER] [--repeats 5] [--customers 52084]

30 million simulated half-hourly readings in 12 regions, customers as text of 14 digits, rows in several
orders. Each measurement is a process of its own, and they take turns; imports are not counted. Measured are:

bare     polars scans timestamp and value and sums by region and timestamp: floats, nothing checked
sums     what `ingest` does before it looks at customers: footers, steps, bounds, absences, exact sums
full     `ingest` whole: also that every row has a customer, once at a step and in one leaf
hashed   that, while the files' keyed hashes are taken, as a night does

The sums are compared with the exact ones ("no" is expected of bare and sums where rows are repeated). Small
sizes say nothing of the targets.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.stream.private_period import open_private_period
from studies.benchmarks.harness.measure import command, in_process, parser, show, table, timed
from studies.benchmarks.harness.step_watch import peak
from studies.benchmarks.inputs.exact_meters import DAY, EXPECTED, ORDERS, Size, lay_out
from studies.benchmarks.inputs.fixture import STEPS, dump_of
from tasks.config import load_settings
from tasks.ingest import ingest
from tasks.ingest.cells import cells_of
from tasks.ingest.days import inspected
from tasks.release.guards.input_hashes import hashing

TARGETS = {"sums": 2.0, "full": 6.0}
LARGEST_PEAK_MB = 1500


def bare(config: Path) -> NDArray[Any]:
    """Return float sums of kWh, (n_leaves, 48), by polars alone."""
    source = pl.scan_parquet(config.parent / "dumps/**/*.parquet", hive_partitioning=True)
    sums = source.group_by("region", "timestamp").agg(pl.col("energy_kwh").sum()).collect(engine="streaming")
    leaf = pl.col("region").str.strip_prefix("zone-").cast(pl.Int64)
    return sums.sort(leaf, "timestamp")["energy_kwh"].to_numpy().reshape(-1, STEPS)


def sums(config: Path) -> NDArray[Any]:
    """Return exact sums in units, with the checks of every step and reading."""
    settings = load_settings(config)
    cells = cells_of(inspected(settings, [dump_of(settings, DAY)]), settings)
    if not cells.select((pl.col("step") >= 0).all()).item():
        raise SystemExit("the laid-out dump has rows without a step")
    units = np.zeros((len(settings.tree_of(date.min).leaves), STEPS), dtype=np.int64)
    np.add.at(units, (cells["leaf"].to_numpy(), cells["step"].to_numpy()), cells["units"].to_numpy())
    return units


def full(config: Path) -> NDArray[Any]:
    """Return the private period's own integers: the dump is simulated."""
    settings = load_settings(config)
    (day,) = ingest(settings, [dump_of(settings, DAY)])
    if day.period is None:
        raise SystemExit("the laid-out dump was refused")
    return open_private_period(day.period)


def hashed(config: Path) -> NDArray[Any]:
    """Return what `full` returns, and take the files' keyed hashes meanwhile."""
    settings = load_settings(config)
    with hashing(settings, [dump_of(settings, DAY)]):
        return full(config)


MEASURED: dict[str, Callable[[Path], NDArray[Any]]] = {
    "bare": bare,
    "sums": sums,
    "full": full,
    "hashed": hashed,
}


@dataclass(frozen=True)
class Run:
    """What one measurement took: seconds on the wall and of processor, MB at its peak; if sums were exact."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    exact: bool


def one(what: str, config: Path) -> Run:
    """Measure in this process."""
    taken, found = timed(lambda: MEASURED[what](config))
    units = np.rint(found * 1000).astype(np.int64) if what == "bare" else found
    exact = np.array_equal(units, np.load(config.parent / EXPECTED))
    # not getrusage: what it says may be the parent's peak
    return Run(taken.wall, taken.processor, 1024 * peak(), exact)


def measure(config: Path, repeats: int) -> dict[str, Run]:
    """Return medians of each measurement, the largest peak, and whether every repeat was exact."""
    runs: dict[str, list[Run]] = {what: [] for what in MEASURED}
    for _ in range(repeats):
        for what, found in runs.items():
            document, _ = in_process("-m", "studies.benchmarks.ingest", "--one", what, str(config))
            found.append(Run(**document))
    return {
        what: Run(
            median(run.seconds for run in found),
            median(run.cpu_seconds for run in found),
            max(run.peak_mb for run in found),
            all(run.exact for run in found),
        )
        for what, found in runs.items()
    }


def compare(
    folder: Path, orders: Sequence[str], size: Size, repeats: int, seed: int
) -> dict[str, dict[str, Run]]:
    """Lay out what is not there yet and measure: the runs of each order."""
    found = {}
    for order in orders:
        config = folder / order / "optstream.toml"
        if not config.exists():
            if config.parent.exists():
                raise SystemExit(f"{config.parent} is half laid out; remove it, or name another folder")
            lay_out(config.parent, order, size, seed)
        found[order] = measure(config, repeats)
    return found


def report(found: dict[str, dict[str, Run]]) -> None:
    """Print the table, and the targets, each with the worst of what was measured."""
    rows = table(["order", "what"], ["s", "times bare", "CPU s", "times bare", "peak MB", "exact"])
    for order, runs in found.items():
        peer = runs["bare"]
        for what, run in runs.items():
            rows.add_row(
                order, what, f"{run.seconds:.2f}", f"{run.seconds / peer.seconds:.2f}",
                f"{run.cpu_seconds:.2f}", f"{run.cpu_seconds / peer.cpu_seconds:.2f}",
                f"{run.peak_mb:.0f}", "yes" if run.exact else "no",
            )  # fmt: skip
    show(rows)
    for what, target in TARGETS.items():
        worst = max(runs[what].seconds / runs["bare"].seconds for runs in found.values())
        show(f"{what}: at most {worst:.2f} times the bare scan; target {target:g}")
    peak = max(run.peak_mb for runs in found.values() for run in runs.values())
    show(f"peak memory: at most {peak:.0f} MB; target {LARGEST_PEAK_MB}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Lay out where nothing lies yet, measure, print."""
    options = parser(__doc__, regions=Size.regions, repeats=5, seed=1)
    options.add_argument("--one", nargs=2, metavar=("WHAT", "CONFIG"), help=argparse.SUPPRESS)
    options.add_argument(
        "--into", type=Path, metavar="FOLDER", help="keep the dumps here, and use them again"
    )
    options.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS)
    options.add_argument("--customers", type=int, default=Size.customers, help="in a region")
    options.add_argument("--decimals", type=int, choices=(3, 4, 5, 6), default=Size.decimals)
    given = options.parse_args(arguments)
    if given.one:
        print(json.dumps(asdict(one(given.one[0], Path(given.one[1])))))
        return
    size = Size(given.regions, given.customers, given.decimals)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.into or Path(temporary)).absolute()
        found = compare(folder, given.orders, size, given.repeats, given.seed)
    show(f"{size.rows:,} readings, {size.decimals} decimals, medians of {given.repeats}")
    report(found)


if __name__ == "__main__":
    command(main)

"""A large metered dump: ingest beside a bare polars scan and sum of the same files.

    python -m benchmarks.ingest [--into FOLDER] [--repeats 5] [--json FILE]

30 million simulated half-hourly readings in 12 regions, customers as text of 14 digits, rows in several
orders. Each measurement is a process of its own, and they take turns; imports are not counted. Measured are:

bare    polars scans timestamp and value and sums by region and timestamp: floats, nothing checked
sums    what `ingest` does before it looks at customers: footers, steps, bounds, absences, exact sums
full    `ingest` whole: also that every row has a customer, once at a step and in one leaf

The sums of the last two are compared with the exact ones. Small sizes say nothing of the targets.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.lay_out_readings import DAY, EXPECTED, ORDERS, STEPS, Size, lay_out
from optstream.measurement.linear import open_private_period
from tasks.ingest import Dump, discover, ingest
from tasks.ingest.cells import cells_of
from tasks.ingest.days import inspected
from tasks.settings import load_settings

TARGETS = {"sums": 2.0, "full": 6.0}
LARGEST_PEAK_MB = 1500


def bare(config: Path) -> NDArray[Any]:
    """Float sums of kWh, (n_leaves, 48), by polars alone."""
    source = pl.scan_parquet(config.parent / "dumps/**/*.parquet", hive_partitioning=True)
    sums = source.group_by("region", "timestamp").agg(pl.col("energy_kwh").sum()).collect(engine="streaming")
    leaf = pl.col("region").str.strip_prefix("zone-").cast(pl.Int64)
    return sums.sort(leaf, "timestamp")["energy_kwh"].to_numpy().reshape(-1, STEPS)


def sums(config: Path) -> NDArray[Any]:
    """Exact sums in units, with the checks of every step and reading."""
    settings = load_settings(config)
    cells = cells_of(inspected(settings, [_dump(config)]), settings)
    if not cells.select((pl.col("step") >= 0).all()).item():
        raise SystemExit("the laid-out dump has rows without a step")
    units = np.zeros((len(settings.tree.leaves), STEPS), dtype=np.int64)
    np.add.at(units, (cells["leaf"].to_numpy(), cells["step"].to_numpy()), cells["units"].to_numpy())
    return units


def full(config: Path) -> NDArray[Any]:
    """The private period's own integers: the dump is simulated."""
    (day,) = ingest(load_settings(config), [_dump(config)])
    if day.period is None:
        raise SystemExit("the laid-out dump was refused")
    return open_private_period(day.period)


MEASURED: dict[str, Callable[[Path], NDArray[Any]]] = {"bare": bare, "sums": sums, "full": full}


def _dump(config: Path) -> Dump:
    found = discover(load_settings(config), [DAY])[DAY]
    if not isinstance(found, Dump):
        raise found
    return found


def one(what: str, config: Path) -> dict[str, Any]:
    """Measure in this process: wall and processor seconds, peak resident memory, whether sums are exact."""
    wall, processor = time.perf_counter(), time.process_time()
    found = MEASURED[what](config)
    taken = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}
    units = np.rint(found * 1000).astype(np.int64) if what == "bare" else found
    exact = np.array_equal(units, np.load(config.parent / EXPECTED))
    return taken | {"peak_mb": _peak_mb(), "exact": exact}


def _peak_mb() -> float:
    # Not getrusage: what it says may be the parent's peak.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024


def measure(config: Path, repeats: int) -> dict[str, dict[str, Any]]:
    """Medians of each measurement, the largest peak, and whether every repeat was exact."""
    runs: dict[str, list[dict[str, Any]]] = {what: [] for what in MEASURED}
    for _ in range(repeats):
        for what, found in runs.items():
            command = [sys.executable, "-m", "benchmarks.ingest", "--one", what, str(config)]
            found.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    return {what: _together(found) for what, found in runs.items()}


def _together(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    taken = {name: median(run[name] for run in runs) for name in ("seconds", "cpu_seconds")}
    return taken | {
        "peak_mb": max(run["peak_mb"] for run in runs),
        "exact": all(run["exact"] for run in runs),
    }


def compare(folder: Path, orders: Sequence[str], size: Size, repeats: int, seed: int) -> list[dict[str, Any]]:
    """Lay out and measure: a row for each order and measurement, with its ratio to the bare scan."""
    rows = []
    for order in orders:
        home = folder / order
        config = home / "optstream.toml"
        if not config.exists():
            if home.exists():
                raise SystemExit(f"{home} is half laid out; remove it, or name another folder")
            lay_out(home, order, size, seed)
        disk_mb = sum(file.stat().st_size for file in home.rglob("*.parquet")) / 2**20
        found = measure(config, repeats)
        for what, taken in found.items():
            ratios = {
                f"{name}_ratio": taken[name] / found["bare"][name] for name in ("seconds", "cpu_seconds")
            }
            rows.append({"order": order, "what": what, "disk_mb": disk_mb, **taken, **ratios})
    return rows


def table_of(rows: Sequence[dict[str, Any]]) -> Table:
    """The table as printed."""
    table = Table(
        "order", "MB on disk", "what", "s", "times bare", "CPU s", "times bare", "peak MB", "exact", box=None
    )
    for row in rows:
        numbers = (f"{row['seconds']:.2f}", f"{row['seconds_ratio']:.2f}", f"{row['cpu_seconds']:.2f}")
        ends = (f"{row['cpu_seconds_ratio']:.2f}", f"{row['peak_mb']:.0f}", "yes" if row["exact"] else "no")
        table.add_row(row["order"], f"{row['disk_mb']:.0f}", row["what"], *numbers, *ends)
    return table


def verdicts(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The targets, each with the worst of what was measured."""
    said = []
    for what, target in TARGETS.items():
        worst = max(row["seconds_ratio"] for row in rows if row["what"] == what)
        said.append(f"{what}: at most {worst:.2f} times the bare scan; target {target:g}")
    peak = max(row["peak_mb"] for row in rows)
    return [*said, f"peak memory: at most {peak:.0f} MB; target {LARGEST_PEAK_MB}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Lay out where nothing lies yet, measure, print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "CONFIG"), help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="keep the dumps here, and use them again")
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS)
    parser.add_argument("--customers", type=int, default=Size.customers, help="in a region")
    parser.add_argument("--regions", type=int, default=Size.regions)
    parser.add_argument("--decimals", type=int, choices=(3, 4, 5, 6), default=Size.decimals)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    chosen = parser.parse_args(arguments)
    if chosen.one:
        print(json.dumps(one(chosen.one[0], Path(chosen.one[1]))))
        return 0
    size = Size(chosen.regions, chosen.customers, chosen.decimals)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (chosen.into or Path(temporary)).absolute()
        rows = compare(folder, chosen.orders, size, chosen.repeats, chosen.seed)
    console = Console(highlight=False, width=110)
    console.print(f"{size.rows:,} readings, {size.decimals} decimals, medians of {chosen.repeats}")
    console.print(table_of(rows))
    for line in verdicts(rows):
        console.print(line)
    if chosen.json:
        chosen.json.write_text(json.dumps({"readings": size.rows, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

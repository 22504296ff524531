"""Shows what the workers of a Dask cluster save the reading of a night of many leaves, by their number.

    python -m studies.benchmarks.nights.many_workers [--leaves 100000] [--workers 0 1 2 4] [--metered]

The dumps of `studies.benchmarks.million`, read as `optstream run --dask` reads them, by a cluster of this
machine whose workers have a thread each; for 0 as without it, by one process that has all cores. Each reads
twice, and the second time is shown. Seconds of the clock need a machine of its own with a core for each
worker. So beside them stand the processor's: all, those of the process that asks, and those of the busiest
worker; a cluster with a core for each takes about the last two.
"""

import flows  # noqa: F401  before numpy: one thread for linear algebra, as commands have it

# isort: split
import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.orchestration.workers import CLUSTER, reader_of
from studies.benchmarks.harness.measure import (
    command,
    in_process,
    living_children,
    parser,
    processor,
    show,
    table,
)
from studies.benchmarks.harness.step_watch import peak
from studies.benchmarks.million import DAY, prepared
from tasks.config import load_settings
from tasks.ingest import Dump, discover

COLUMNS = ["clock, s", "processor, s", "of who asks", "of the busiest", "its GiB"]
NO_SPILL = {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}


def reading(file: Path, address: str | None) -> list[float]:
    """Read the day twice; return what the second time took, a number for each column."""
    settings = load_settings(file)
    CLUSTER.set(address)
    dump = discover(settings, [DAY])[DAY]
    assert isinstance(dump, Dump), dump
    with reader_of(settings) as read:
        read(settings, [dump])
        before, own, began = _workers(address), processor(), time.perf_counter()
        read(settings, [dump])
        clock, own, after = time.perf_counter() - began, processor() - own, _workers(address)
    if address is None:
        return [clock, own, own, 0.0, sum(map(peak, living_children()))]
    shares = [seconds - before[worker][0] for worker, (seconds, _) in after.items()]
    return [clock, own + sum(shares), own, max(shares), max(gib for _, gib in after.values())]


def _workers(address: str | None) -> dict[str, tuple[float, float]]:
    """Return the processor seconds of each worker until now, and the most GiB that it held."""
    if address is None:
        return {}
    from distributed import Client

    connected: Any = Client  # it has no types
    with connected(address, set_as_default=False) as client:
        found: dict[str, tuple[float, float]] = client.run(_taken)
    return found


def _taken() -> tuple[float, float]:
    return time.process_time(), peak()


def spread(file: Path, n_workers: int) -> list[float]:
    """Return what the reading takes over so many workers."""
    import dask
    from distributed import LocalCluster

    made: Any = LocalCluster  # as above
    options = {"threads_per_worker": 1, "dashboard_address": None, "env": {"POLARS_MAX_THREADS": "1"}}
    with dask.config.set(NO_SPILL), made(n_workers=n_workers, **options) as cluster:
        return _in_process(file, "--address", cluster.scheduler_address)


def _in_process(file: Path, *words: str) -> list[float]:
    found: list[float] = in_process(
        "-m", "studies.benchmarks.nights.many_workers", "--read", str(file), *words
    )[0]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the same day without a cluster and with each number of workers, and print the table."""
    options = parser(__doc__, leaves=100_000, workers=[0, 1, 2, 4], metered=False)
    options.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--address", help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    if given.read is not None:
        print(json.dumps(reading(given.read, given.address)))
        return
    rows = table(["workers"], COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        settings = prepared(Path(folder), given.leaves, "OptStream", is_metered=given.metered)
        for n_workers in given.workers:
            found = spread(settings.file, n_workers) if n_workers else _in_process(settings.file)
            rows.add_row(str(n_workers or "none"), *(f"{one:.2f}" for one in found))
    kind = "metered" if given.metered else "aggregated"
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    show(f"{given.leaves:,} leaves, {kind}; {machine}:", rows)


if __name__ == "__main__":
    command(main)

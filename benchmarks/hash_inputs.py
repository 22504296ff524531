"""What the inputs' keyed hashes cost: ingestion with and without them, beside a bare polars scan.

    python benchmarks/hash_inputs.py --customers 60000

Metered dumps of twelve regions and one day, made up here; the best of five runs.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from tasks.example import EXAMPLE
from tasks.ingest import Dump, discover, ingest
from tasks.inputs import hashing
from tasks.settings import Settings, load_settings

DAY = date(2016, 6, 1)


def make_dumps(folder: Path, customers: int) -> Settings:
    """A configuration and the day's dumps, `customers` in each region."""
    text = EXAMPLE.replace('schema = "aggregated"', 'schema = "metered"')
    (folder / "optstream.toml").write_text(text)
    settings = load_settings(folder / "optstream.toml")
    times = settings.calendar.utc_times(DAY)
    stamps = pl.Series(times, dtype=pl.Datetime("us", "UTC"))
    rng = np.random.default_rng(1)
    for leaf in settings.tree.leaves:
        place = settings.input_folder / f"region={leaf}" / f"date={DAY}"
        place.mkdir(parents=True)
        names = np.repeat([f"{leaf}-{number:07d}" for number in range(customers)], len(times))
        rows = {
            "customer_id": names,
            "timestamp": stamps.gather(np.tile(np.arange(len(times)), customers)),
            "load_mw": np.round(rng.gamma(1, 0.4, len(names)), 3),
        }
        pl.DataFrame(rows).write_parquet(place / "part-0.parquet")
        (place / "_SUCCESS").touch()
    return settings


def scan(dump: Dump) -> None:
    """The peer: the same sums, without any rule."""
    paths = [path for files in dump.files for path in files]
    rows = pl.scan_parquet(paths).group_by("timestamp").agg(pl.col("load_mw").sum())
    rows.collect(engine="streaming")


def hashed(settings: Settings, dump: Dump) -> None:
    with hashing(settings, [dump]):
        ingest(settings, [dump])


def best(work: Callable[[], object]) -> str:
    runs = []
    for _ in range(5):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        runs.append((time.perf_counter() - wall, time.process_time() - processor))
    return f"{min(run[0] for run in runs):7.2f} s wall {min(run[1] for run in runs):7.2f} s processor"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--customers", type=int, default=10_000, help="of each of the 12 regions")
    customers = parser.parse_args().customers
    with tempfile.TemporaryDirectory() as folder:
        settings = make_dumps(Path(folder), customers)
        dump = discover(settings, [DAY])[DAY]
        if isinstance(dump, Exception):
            raise dump
        size = sum(path.stat().st_size for files in dump.files for path in files)
        print(f"{12 * customers * 48:,} readings, {size / 2**20:.1f} MiB")
        print(f"bare scan            {best(lambda: scan(dump))}")
        print(f"ingest               {best(lambda: ingest(settings, [dump]))}")
        print(f"ingest, with hashes  {best(lambda: hashed(settings, dump))}")


if __name__ == "__main__":
    main()

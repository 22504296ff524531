"""Shows what a night of many leaves takes, step by step: seconds on the wall, and the most memory.

    python -m benchmarks.nights.many_leaves --leaves 1000 10000 100000

Simulated counts, more than half of them 0, three levels, dumps of all leaves in one folder in files of a
million rows; `--metered` gives each leaf five customers with rows of their own. Each night is a process of
its own that starts no Prefect server; after it `optstream ledger verify` is another one. The peer is polars
alone, reading the same dump and adding it up, without any guarantee.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from math import isqrt
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.harness.measure import command, in_process, parser, show, table, timed
from tasks.config import Settings, load_settings
from tasks.ingest.arrival.parts import EVERY, place_of

DAY = date(2025, 1, 15)
ROWS_A_FILE = 2**20
CUSTOMERS = 5
CONFIGURATION = """\
[stream]
name = "visits"
step = "30min"
time_zone = "Europe/Paris"
day = "elapsed"
[mechanism]
name = "{mechanism}"
[privacy]
epsilon = "1"
population = "visitors"
window = 48
alpha = "1"
resolution = "1"
bounds = ["0", "1000"]
lower_bound = "0"
[hierarchy]
file = "hierarchy.csv"
[budget]
levels = ["1/3", "1/3", "1/3"]
{keys}
[input]
folder = "dumps"
schema = "{schema}"
region = "region"
value = "visits"
[published]
folder = "published"
value = "visits"
[trusted]
folder = "trusted"
[ledger]
url = "sqlite:///trusted/ledger.sqlite"
"""
KEYS = {"OptStream": '[sampling]\nmethod = "equally_spaced"\nn_samples = 10\n[features]\nday = []'}


def prepared(folder: Path, n_leaves: int, mechanism: str, *, is_metered: bool) -> Settings:
    """Write hierarchy, configuration and the dump of one day; return the settings."""
    regions = isqrt(n_leaves)
    lines = ["node,parent", "all,", *(f"r{region},all" for region in range(regions))]
    lines += [f"l{leaf},r{leaf % regions}" for leaf in range(n_leaves)]
    (folder / "hierarchy.csv").write_text("\n".join(lines), encoding="utf-8")
    file = folder / "optstream.toml"
    schema = "metered" if is_metered else "aggregated"
    text = CONFIGURATION.format(mechanism=mechanism, keys=KEYS.get(mechanism, ""), schema=schema)
    file.write_text(text, encoding="utf-8")
    settings = load_settings(file)
    into = folder / "dumps" / place_of(EVERY, DAY)
    into.mkdir(parents=True)
    stamps = pl.Series(settings.calendar.utc_times(DAY), dtype=pl.Datetime("us", "UTC"))
    rng, n_steps = np.random.default_rng(0), len(stamps)
    a_file = max(1, ROWS_A_FILE // n_steps // (CUSTOMERS if is_metered else 1))
    for first in range(0, n_leaves, a_file):
        leaves = np.arange(first, min(first + a_file, n_leaves))
        _rows(leaves, stamps, rng, is_metered=is_metered).write_parquet(into / f"part-{first:07d}.parquet")
    (into / "_SUCCESS").touch()
    return settings


def _rows(
    leaves: np.ndarray, stamps: pl.Series, rng: np.random.Generator, *, is_metered: bool
) -> pl.DataFrame:
    each = CUSTOMERS if is_metered else 1
    n_series, n_steps = len(leaves) * each, len(stamps)
    rows = {
        "region": pl.Series(np.repeat(np.repeat(leaves, each), n_steps)),
        "timestamp": pl.concat([stamps] * n_series),
        "visits": pl.Series(rng.poisson(0.5, n_series * n_steps)),
    }
    frame = pl.DataFrame(rows).with_columns(region=pl.format("l{}", "region"))
    if is_metered:
        people = np.repeat(np.arange(each * leaves[0], each * leaves[0] + n_series), n_steps)
        frame = frame.with_columns(customer_id=pl.format("c{}", pl.Series(people)))
    return frame


def peer(settings: Settings) -> float:
    """Return the seconds in which polars reads the dump and adds it up, region by region and step by step."""
    files = str(settings.input_folder / place_of(EVERY, DAY) / "*.parquet")
    sums = pl.scan_parquet(files).group_by("region", "timestamp").agg(pl.col("visits").sum())
    return timed(lambda: sums.collect(engine="streaming"))[0].wall


def measured(n_leaves: int, mechanism: str, *, is_metered: bool) -> dict[str, float]:
    """Return the seconds of each step of one night, of the whole, of `verify` and of the peer, and GiB."""
    with tempfile.TemporaryDirectory() as folder:
        settings = prepared(Path(folder), n_leaves, mechanism, is_metered=is_metered)
        alone = peer(settings)
        night = ("-m", "benchmarks.nights.nightly_run", "--night", str(settings.file), str(DAY))
        steps, whole = in_process(*night)
        verify = [sys.executable, "-m", "flows.cli.main", "ledger", "verify", "--config", str(settings.file)]
        verified = timed(lambda: subprocess.run(verify, check=True, capture_output=True))[0].wall
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        seconds: dict[str, float] = {**steps, "whole night": whole, "ledger verify": verified}
        return seconds | {"polars alone": alone, "GiB": most}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each number of leaves in a process of its own, and print the table."""
    options = parser(__doc__)
    options.add_argument("--leaves", type=int, nargs="+", default=[1000, 10_000])
    options.add_argument("--mechanism", default="OptStream", choices=["OptStream", "Laplace"])
    options.add_argument("--metered", action="store_true")
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    if given.one is not None:
        print(json.dumps(measured(given.one, given.mechanism, is_metered=given.metered)))
        return
    words = ["-m", "benchmarks.nights.many_leaves", "--mechanism", given.mechanism]
    words += ["--metered"] if given.metered else []
    columns = {f"{n:,}": in_process(*words, "--one", str(n))[0] for n in given.leaves}
    rows = table(["seconds, GiB"], columns)
    for step in next(iter(columns.values())):
        rows.add_row(step, *(f"{column.get(step, 0.0):.2f}" for column in columns.values()))
    show(f"{given.mechanism}, {'metered' if given.metered else 'aggregated'}, leaves:", rows)


if __name__ == "__main__":
    command(main)

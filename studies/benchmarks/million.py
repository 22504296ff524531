"""Shows what a night of many leaves takes, step by step: processor seconds and memory, beside their limits.

    python -m studies.benchmarks.million [--leaves 10000 100000 1000000] [--mechanism OptStream] [--metered]

Simulated counts, more than half of them 0, three levels, dumps of all leaves in one folder in files of a
million rows; `--metered` gives each leaf five customers with rows of their own. Each night is a process of
its own that starts no Prefect server; after it `optstream ledger verify` is another one. Seconds are those
of the processor, children included, which hold on a busy machine; the last rows are the clock's. Memory is
the most that the night's process held during a step, and in brackets what its readers held. The peer is
polars alone, reading the same dump and adding it up, without any guarantee.
"""

import flows  # noqa: F401  before numpy: one thread for linear algebra, as commands have it

# isort: split
import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import date
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from flows.orchestration.environment import connect
from studies.benchmarks.harness.measure import (
    command,
    in_process,
    living_children,
    parser,
    processor,
    show,
    table,
    timed,
)
from studies.benchmarks.harness.step_watch import StepWatch, peak
from studies.benchmarks.inputs.configuration_text import configuration, equal_shares
from studies.benchmarks.inputs.fixture import dump_of_all, hierarchy_file, stamps_of, stream
from tasks.config import Settings, load_settings
from tasks.ingest.arrivals import EVERY, place_of

DAY = date(2025, 1, 15)
LIMITS = {10_000: (10.0, 2.0), 100_000: (60.0, 6.0), 1_000_000: (900.0, 16.0)}
"""Seconds of a whole night and GiB that were asked, by leaves; the first is ours."""
VERIFY = "ledger verify"
ROWS_A_FILE = 2**20
CUSTOMERS = 5
KEYS: dict[str, dict[str, dict[str, object]]] = {
    "OptStream": {"sampling": {"method": "equally_spaced", "n_samples": 10}, "features": {"day": []}}
}
"""Tables that a mechanism needs beside its name."""


def visits(mechanism: str, **tables: Mapping[str, object]) -> str:
    """Return the configuration of counts of three levels, their hierarchy in a file.

    tables: what differs; `hierarchy` and `input` are given over what is here, others in its place.
    """
    given: dict[str, Mapping[str, object]] = {"budget": {"levels": equal_shares(3)}} | tables
    return configuration(
        stream={"name": "visits"},
        mechanism={"name": mechanism},
        privacy={"resolution": "1", "bounds": ["0", "1000"], "lower_bound": "0"},
        **KEYS.get(mechanism, {}),
        **given
        | {
            "hierarchy": {"file": "hierarchy.csv"} | dict(tables.get("hierarchy", {})),
            "input": {"region": "region", "value": "visits"} | dict(tables.get("input", {})),
        },
    )


def prepared(folder: Path, n_leaves: int, mechanism: str, *, is_metered: bool) -> Settings:
    """Write hierarchy, configuration and the dump of one day; return the settings."""
    regions = isqrt(n_leaves)
    parents = {"all": ""} | {f"r{region}": "all" for region in range(regions)}
    hierarchy_file(folder, parents | {f"l{leaf}": f"r{leaf % regions}" for leaf in range(n_leaves)})
    schema = "metered" if is_metered else "aggregated"
    settings = stream(folder, visits(mechanism, input={"schema": schema}))
    stamps, rng = stamps_of(settings, DAY), np.random.default_rng(0)
    a_file = max(1, ROWS_A_FILE // len(stamps) // (CUSTOMERS if is_metered else 1))
    files = (np.arange(first, min(first + a_file, n_leaves)) for first in range(0, n_leaves, a_file))
    dump_of_all(settings, DAY, (_rows(leaves, stamps, rng, is_metered=is_metered) for leaves in files))
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


def one_night(file: Path) -> dict[str, dict[str, float]]:
    """Release the day; return seconds and GiB of each step."""
    watch, began = StepWatch(), processor()
    settings = load_settings(file)
    connect(settings.trusted_folder)
    from flows.orchestration.release import run_days

    watch.seconds["import"] = processor()
    (ended,) = run_days(settings, [DAY], watch)
    assert ended.outcome.status == "published", ended
    whole = processor() - began
    watch.seconds["pages, imports of steps"] = whole - sum(watch.seconds.values())
    watch.gib["pages, imports of steps"] = peak()
    watch.gib["readers"] = sum(map(peak, living_children()))
    return {"seconds": watch.seconds, "gib": watch.gib}


def peer(settings: Settings) -> float:
    """Return the seconds in which polars reads the dump and adds it up, region by region and step by step."""
    files = str(settings.input_folder / place_of(EVERY, DAY) / "*.parquet")
    sums = pl.scan_parquet(files).group_by("region", "timestamp").agg(pl.col("visits").sum())
    return timed(lambda: sums.collect(engine="streaming"))[0].processor


def one_node(settings: Settings) -> float:
    """Return the seconds in which polars finds one node's day among all."""
    files = str(settings.published_folder) + "/data/*/*.parquet"
    rows = pl.scan_parquet(files, hive_partitioning=True).filter(pl.col("node") == "l7")
    found, day = timed(rows.collect)
    assert day.height == len(stamps_of(settings, DAY))
    return found.processor


def measured(n_leaves: int, mechanism: str, *, is_metered: bool) -> dict[str, Any]:
    """Return what each step of one night took, the whole of it, `verify` and the peer."""
    with tempfile.TemporaryDirectory() as folder:
        settings = prepared(Path(folder), n_leaves, mechanism, is_metered=is_metered)
        alone = peer(settings)
        night, clock = in_process("-m", "studies.benchmarks.million", "--night", str(settings.file))
        began, started = time.perf_counter(), processor()
        in_process("-m", "flows.cli.main", "ledger", "verify", "--json", "--config", str(settings.file))
        night["seconds"][VERIFY] = processor() - started
        whole = sum(night["seconds"].values())
        clocks = {"clock: the night": clock, "clock: verify": time.perf_counter() - began}
        others = {"polars alone": alone, "a node's day, found by polars": one_node(settings)}
        return {**night, "rest": {"whole": whole, **others, **clocks}}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each number of leaves in a process of its own, and print the table."""
    options = parser(__doc__, leaves=[10_000, 100_000], metered=False)
    options.add_argument("--mechanism", default="OptStream", choices=["OptStream", "Laplace"])
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options.add_argument("--night", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    if given.night is not None:
        print(json.dumps(one_night(given.night)))
        return
    if given.one is not None:
        print(json.dumps(measured(given.one, given.mechanism, is_metered=given.metered)))
        return
    words = ["-m", "studies.benchmarks.million", "--mechanism", given.mechanism]
    words += ["--metered"] if given.metered else []
    show(f"{given.mechanism}, {'metered' if given.metered else 'aggregated'}:")
    for n_leaves in given.leaves:
        found, _ = in_process(*words, "--one", str(n_leaves))
        show(table_of(n_leaves, found))


def table_of(n_leaves: int, found: dict[str, Any]) -> Any:
    """Return a row a step, and the whole beside its limits."""
    seconds, gib = LIMITS.get(n_leaves, (None, None))
    rows = table([f"{n_leaves:,} leaves"], ["seconds", "GiB", "limit, s", "limit, GiB"])
    steps = [name for name in found["seconds"] if name != VERIFY]
    for name in (*steps, VERIFY):
        held = f"{found['gib'][name]:.2f}" if name in found["gib"] else ""
        rows.add_row(name, f"{found['seconds'][name]:.2f}", held)
    most = f"{max(found['gib'].values()):.2f} (readers {found['gib']['readers']:.2f})"
    limits = [f"{one:g}" if one else "" for one in (seconds, gib)]
    rows.add_row("whole", f"{found['rest'].pop('whole'):.2f}", most, *limits)
    for name, taken in found["rest"].items():
        rows.add_row(name, f"{taken:.3f}")
    return rows


if __name__ == "__main__":
    command(main)

"""Shows what a night of many leaves takes, step by step: processor seconds and memory, with their limits.

Simulated counts, more than half of them 0, three levels, dumps of all leaves in one folder in files of a
million rows; `--metered` gives each leaf five customers with rows of their own. Each night is a process of
its own that starts no Prefect server; after it `optstream ledger verify` is another one. Seconds are those
of the processor, children included, which hold on a busy machine; the last rows are the clock's. Memory is
the most that the night's process held during a step, and in brackets what its readers held. The peer is
polars alone, reading the same dump and adding it up, without any guarantee.
"""

import json
import tempfile
import time
from datetime import date
from math import isqrt
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
import tomlkit
import typer

from flows.orchestration.environment import connect
from studies.benchmarks.measure import (
    STEPS,
    StepWatch,
    in_process,
    living_children,
    peak,
    processor,
    show,
    stream,
    table,
    timed,
)
from tasks.config import Settings, load_settings
from tasks.ingest.arrivals import EVERY, place_of

DAY = date(2025, 1, 15)
LIMITS = {10_000: (10.0, 2.0), 100_000: (60.0, 6.0), 1_000_000: (900.0, 16.0)}
"""Seconds of a whole night and GiB that were asked, by leaves; the first is ours."""
LEAVES = [10_000, 100_000]
VERIFY = "ledger verify"
ROWS_A_FILE = 2**20
CUSTOMERS = 5
Mechanism = Literal["OptStream", "Laplace"]


def visits(mechanism: Mechanism, schema: str) -> str:
    """Return the configuration of counts of three levels, their hierarchy in a file."""
    tables: dict[str, dict[str, object]] = {
        "stream": {"name": "visits", "step": "30min", "time_zone": "Europe/Paris", "day": "elapsed"},
        "mechanism": {"name": mechanism},
        "privacy": {
            "epsilon": "1", "window": STEPS, "population": "people", "alpha": "1", "resolution": "1",
            "bounds": ["0", "1000"], "lower_bound": "0",
        },
        "hierarchy": {"file": "hierarchy.csv"},
        "budget": {"levels": ["1/3"] * 3},
        "input": {"folder": "dumps", "schema": schema, "region": "region", "value": "visits"},
        "published": {"folder": "published", "value": "visits"},
        "trusted": {"folder": "trusted"},
        "ledger": {"url": "sqlite:///trusted/ledger.sqlite"},
    }  # fmt: skip
    if mechanism == "OptStream":
        tables |= {"sampling": {"method": "equally_spaced", "n_samples": 10}, "features": {"day": []}}
    return tomlkit.dumps(tables)


def prepared(folder: Path, n_leaves: int, mechanism: Mechanism, *, is_metered: bool) -> Settings:
    """Write hierarchy, configuration and the dump of one day; return the settings."""
    regions = isqrt(n_leaves)
    parents = {"all": ""} | {f"r{region}": "all" for region in range(regions)}
    parents |= {f"l{leaf}": f"r{leaf % regions}" for leaf in range(n_leaves)}
    lines = ["node,parent", *(f"{node},{parent}" for node, parent in parents.items())]
    (folder / "hierarchy.csv").write_text("\n".join(lines), encoding="utf-8")
    settings = stream(folder, visits(mechanism, "metered" if is_metered else "aggregated"))
    stamps = pl.Series(settings.calendar.utc_times(DAY), dtype=pl.Datetime("us", "UTC"))
    rng, into = np.random.default_rng(0), folder / "dumps" / place_of(EVERY, DAY)
    into.mkdir(parents=True)
    a_file = max(1, ROWS_A_FILE // len(stamps) // (CUSTOMERS if is_metered else 1))
    for number, first in enumerate(range(0, n_leaves, a_file)):
        part = _rows(np.arange(first, min(first + a_file, n_leaves)), stamps, rng, is_metered=is_metered)
        part.write_parquet(into / f"part-{number:07d}.parquet")
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


def one_night(file: Path) -> dict[str, dict[str, float]]:
    """Release the day; return seconds and GiB of each step."""
    watch = StepWatch()
    settings = load_settings(file)
    connect(settings.trusted_folder)
    from flows.orchestration.release import run_days

    watch.seconds["import"] = processor()
    (ended,) = run_days(settings, [DAY], watch)
    assert ended.status == "published", ended
    watch.seconds["pages, imports of steps"] = processor() - sum(watch.seconds.values())
    watch.gib["pages, imports of steps"] = peak()
    watch.gib["readers"] = sum(map(peak, living_children()))
    return {"seconds": watch.seconds, "gib": watch.gib}


def peer(settings: Settings) -> float:
    """Return the seconds that polars takes to read the dump and sum it by region and step."""
    files = str(settings.input_folder / place_of(EVERY, DAY) / "*.parquet")
    sums = pl.scan_parquet(files).group_by("region", "timestamp").agg(pl.col("visits").sum())
    return timed(lambda: sums.collect(engine="streaming"))[0].processor


def one_node(settings: Settings) -> float:
    """Return the seconds that polars takes to find one node's day."""
    files = str(settings.published_folder) + "/data/*/*.parquet"
    rows = pl.scan_parquet(files, hive_partitioning=True).filter(pl.col("node") == "l7")
    found, day = timed(rows.collect)
    assert day.height == settings.calendar.n_steps(DAY)
    return found.processor


def measured(n_leaves: int, mechanism: Mechanism, *, is_metered: bool) -> dict[str, Any]:
    """Return what each step of one night took, the whole of it, `verify` and the peer."""
    with tempfile.TemporaryDirectory() as folder:
        settings = prepared(Path(folder), n_leaves, mechanism, is_metered=is_metered)
        alone = peer(settings)
        night, clock = in_process("-m", "studies", "million", "--night", str(settings.file))
        began, started = time.perf_counter(), processor()
        in_process("-m", "flows.cli.main", "ledger", "verify", "--json", "--config", str(settings.file))
        night["seconds"][VERIFY] = processor() - started
        whole = sum(night["seconds"].values())
        clocks = {"clock: the night": clock, "clock: verify": time.perf_counter() - began}
        others = {"polars alone": alone, "a node's day, found by polars": one_node(settings)}
        return {**night, "rest": {"whole": whole, **others, **clocks}}


def main(
    leaves: Annotated[list[int], typer.Option(help="May be repeated.")] = LEAVES,
    mechanism: Mechanism = "OptStream",
    metered: Annotated[bool, typer.Option("--metered", help="Rows of customers.")] = False,
    one: Annotated[int | None, typer.Option(hidden=True)] = None,
    night: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Measure each number of leaves in a process of its own, and print the table."""
    if night is not None:
        print(json.dumps(one_night(night)))
        return
    if one is not None:
        print(json.dumps(measured(one, mechanism, is_metered=metered)))
        return
    words = ["-m", "studies", "million", "--mechanism", mechanism, *(["--metered"] if metered else [])]
    show(f"{mechanism}, {'metered' if metered else 'aggregated'}:")
    for n_leaves in leaves:
        found, _ = in_process(*words, "--one", str(n_leaves))
        show(table_of(n_leaves, found))


def table_of(n_leaves: int, found: dict[str, Any]) -> Any:
    """Return one row for each step, and the total with its limits."""
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

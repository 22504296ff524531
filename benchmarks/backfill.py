"""Filling in years: how long, where the time goes, and whether a day costs more the longer the history is.

    python -m benchmarks.backfill [--data FOLDER | --simulated DAYS] [--workers 2] [--ledger URL]

The four years of RTE's regional load (or made-up dumps) are laid out as daily dumps, 12 regions each, and
released by `optstream backfill` against a server that runs already; the ledger is durable at every day. Then
the same command again, which must do nothing. The peer, in the same minutes and on the same dumps: a script
that reads each day, adds numpy's Laplace noise and writes a file, without validation, ledger, exact noise,
consistency or catalogue.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from benchmarks.lay_out import days_of
from benchmarks.lay_out_rte import lay_out_rte
from benchmarks.prefect_server import free_port, running_server
from benchmarks.real_year import FILE, add_data_option
from optstream.catalogue import read_published
from optstream.ledger import open_ledger
from tasks.import_rte import rte_configuration
from tasks.settings import Settings, load_settings
from tasks.simulate import simulate

FIRST, LAST = date(2013, 1, 1), date(2016, 12, 31)
STEPS = ("look up", "discover dumps", "ingest", "validate", "reserve", "draw", "estimate", "publish")
PAGE = 200


@dataclass(frozen=True)
class Filled:
    """One `optstream backfill`: what it said as JSON, and its seconds, start of Python included."""

    document: dict[str, Any]
    seconds: float

    def days(self, status: str) -> list[str]:
        """The days that ended so."""
        return [day["date"] for day in self.document["days"] if day["status"] == status]


def fill(config: Path, first: date, last: date, workers: int, **environment: str) -> Filled:
    """Run the command in a process of its own."""
    words = ["backfill", "--config", str(config), "--from", str(first), "--to", str(last), "--json"]
    code = "from flows.command_line import main; main()"
    command = [sys.executable, "-c", code, *words, "--workers", str(workers)]
    started = time.perf_counter()
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return Filled(json.loads(done.stdout), seconds)


def task_seconds(url: str) -> dict[str, tuple[int, float]]:
    """Of the server's task runs, by name: how many, and their seconds together."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    found: dict[str, tuple[int, float]] = {}
    with temporary_settings({PREFECT_API_URL: url}), get_client(sync_client=True) as client:
        offset = 0
        while runs := client.read_task_runs(limit=PAGE, offset=offset):
            for run in runs:
                name = run.name.rpartition("-")[0]
                count, seconds = found.get(name, (0, 0.0))
                found[name] = count + 1, seconds + run.total_run_time.total_seconds()
            offset += PAGE
    return found


def by_the_ledger(settings: Settings) -> dict[int, float]:
    """Milliseconds from one publication to the next, by year: whether days become slower."""
    times = open_ledger(settings.ledger_url).event_times(settings.stream.name, "drawn")
    years: dict[int, list[float]] = {}
    for (period, _), at in times.items():
        years.setdefault(int(period[:4]), []).append(at.timestamp())
    return {
        year: 1e3 * (max(stamps) - min(stamps)) / (len(stamps) - 1)
        for year, stamps in sorted(years.items())
        if len(stamps) > 1
    }


def peer(settings: Settings, days: Sequence[date], into: Path) -> float:
    """Seconds of the bare script."""
    generator = np.random.default_rng()
    into.mkdir()
    started = time.perf_counter()
    for day in days:
        noisy = {}
        for leaf in settings.tree.leaves:
            file = settings.input_folder / f"region={leaf}/date={day}/part-0.parquet"
            values = pl.read_parquet(file)[settings.input_of(day).value].to_numpy()
            noisy[leaf] = values + generator.laplace(0, 10.0, values.size)
        frame = pl.DataFrame(noisy).with_columns(nation=pl.sum_horizontal(pl.all()))
        frame.write_parquet(into / f"{day}.parquet")
    return time.perf_counter() - started


def largest_gap(settings: Settings) -> float:
    """The most by which a published parent differs from the sum of its children, at any step."""
    value, root = settings.published.value, settings.tree.nodes[0]
    rows = read_published(settings.published_folder)
    sums = rows.group_by("date", "step").agg(
        above=pl.col(value).filter(pl.col("node") == root).sum(),
        below=pl.col(value).filter(pl.col("node") != root).sum(),
    )
    return float(sums.select((pl.col("above") - pl.col("below")).abs().max()).item())


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser, required=False)
    parser.add_argument("--simulated", type=int, metavar="DAYS", help="made-up dumps of so many days instead")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--ledger", metavar="URL", help="instead of an SQLite file")
    given = parser.parse_args()
    if given.data is None and given.simulated is None:
        parser.error("name the data with --data or OPTSTREAM_DATA, or ask for --simulated DAYS")
    with tempfile.TemporaryDirectory() as name:
        settings, last = _lay_out(Path(name), given)
        return _report(settings, days_of(FIRST, last), given.workers)


def _lay_out(folder: Path, given: argparse.Namespace) -> tuple[Settings, date]:
    text = rte_configuration(folder / "dumps")
    if given.ledger:
        text = text.replace("sqlite:///trusted/ledger.sqlite", given.ledger)
    (folder / "optstream.toml").write_text(text)
    settings = load_settings(folder / "optstream.toml")
    if given.simulated is None:
        data = given.data / FILE if given.data.is_dir() else given.data
        lay_out_rte(data, FIRST, LAST, settings.input_folder)
        return settings, LAST
    last = FIRST + timedelta(days=given.simulated - 1)
    simulate(
        settings.input_folder,
        leaves=settings.tree.leaves,
        calendar=settings.calendar,
        days=days_of(FIRST, last),
    )
    return settings, last


def _report(settings: Settings, days: Sequence[date], workers: int) -> int:
    console = Console(highlight=False)
    with running_server(settings.folder / "prefect", free_port()) as url:
        first = fill(settings.file, days[0], days[-1], workers, PREFECT_API_URL=url)
        tasks = task_seconds(url)
        again = fill(settings.file, days[0], days[-1], workers, PREFECT_API_URL=url)
    published, refused = first.days("published"), first.days("refused")
    table = Table("step", "tasks", "seconds", "ms a day", box=None)
    for step in STEPS:
        count, seconds = tasks.get(step, (0, 0.0))
        table.add_row(step, f"{count}", f"{seconds:.1f}", f"{1e3 * seconds / len(days):.1f}")
    count, months = tasks.get("release a month", (0, 0.0))
    rest = months - sum(tasks.get(step, (0, 0.0))[1] for step in STEPS)
    table.add_row("subflows besides", f"{count}", f"{rest:.1f}", f"{1e3 * rest / len(days):.1f}")
    console.print(f"wall seconds of the tasks, over {workers} processes")
    console.print(table)
    slots = sum(
        1 for day in published if settings.calendar.n_steps(date.fromisoformat(day)) != 48 or _changes(day)
    )
    yearly = ", ".join(f"{year}: {ms:.0f}" for year, ms in by_the_ledger(settings).items())
    console.print(f"ms from a draw to the next, by year: {yearly}")
    console.print(
        f"published {len(published)} days, {slots} of them with a change of clocks; refused {refused}"
    )
    console.print(f"regions against nation, largest difference: {largest_gap(settings):g}")
    console.print(f"again: {len(again.days('published'))} days in {again.seconds:.1f} s")
    console.print(f"the bare script: {peer(settings, days, settings.folder / 'peer'):.1f} s")
    console.print(f"{len(published)} days in {first.seconds:.1f} s")
    return 0


def _changes(day: str) -> bool:
    """Whether clocks change in Paris: the last Sundays of March and October."""
    at = date.fromisoformat(day)
    return at.month in (3, 10) and at.weekday() == 6 and at.day > 24


if __name__ == "__main__":
    sys.exit(main())

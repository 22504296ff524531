"""Releases a fortnight of simulated dumps with real noise, by the commands that a user types: `make demo`.

    python benchmarks/demo.py --into demo

Run again, it keeps what is there: days that are published already stay as they are.
"""

import argparse
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from optstream import read_published
from tasks.config import Settings, load_settings

FIRST, DAYS, SEED = date(2016, 2, 1), 14, 0


def main() -> int:
    """Run the demo; return its exit code."""
    parser = argparse.ArgumentParser(description="Simulate a fortnight of dumps and release it.")
    parser.add_argument("--into", type=Path, default=Path("demo"), help="folder to work in (default: demo)")
    folder: Path = parser.parse_args().into
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "optstream.toml"
    last = FIRST + timedelta(days=DAYS - 1)
    if not config.exists():
        optstream("init", str(config))
    optstream(
        "simulate", "--config", str(config), "--from", f"{FIRST}", "--to", f"{last}", "--seed", f"{SEED}"
    )
    dates = [f"--date={FIRST + timedelta(days=number)}" for number in range(DAYS)]
    code = optstream("run", "--config", str(config), *dates)
    if code == 0:
        show(load_settings(config))
    return code


def optstream(*arguments: str) -> int:
    """Run one command of the product, showing it first."""
    shown = [*arguments[:4], "…", arguments[-1]] if len(arguments) > 9 else arguments
    print(f"\n$ optstream {' '.join(shown)}", flush=True)
    return subprocess.run([sys.executable, "-m", "flows.cli.main", *arguments], check=False).returncode


def show(settings: Settings) -> None:
    """Print a small table of what was published, and where everything is."""
    rows = read_published(settings.published_folder)
    value = settings.published.value
    root = settings.tree.nodes[0]
    daily = (
        rows.filter(pl.col("node") == root)
        .group_by("date")
        .agg(pl.col(value).mean().alias("mean"), pl.col(value).max().alias("peak"))
    )
    table = Table(
        "date", f"{root} mean MW", f"{root} peak MW", title="published, private", title_justify="left"
    )
    for day in daily.sort("date").iter_rows(named=True):
        table.add_row(f"{day['date']}", f"{day['mean']:,.0f}", f"{day['peak']:,.0f}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(f"published data  {settings.published_folder}  (optstream.read_published reads it)")
    console.print(f"report          {settings.report_file}")
    console.print(f"page for users  {settings.published_folder / 'index.html'}")
    console.print(f"ledger          {settings.trusted_folder / 'ledger.sqlite'}  (optstream status reads it)")


if __name__ == "__main__":
    sys.exit(main())

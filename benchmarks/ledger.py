"""Does the ledger stay fast as it grows? Reserve, publish and verify, after one year and after ten.

    python benchmarks/ledger.py [--streams 100] [--years 10] [--revisions 3] [--no-verify] [--folder FOLDER]

A ledger on SQLite of streams × days × revisions, written in bulk (benchmarks/ledger_history.py). At its end
nights are added through the library: each step is one transaction, every commit synced.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select

from benchmarks.ledger_history import LEASE, START, History, plan_of
from optstream.ledger import Ledger
from optstream.ledger.engine import reading
from optstream.ledger.schema import events

NIGHTS = 3
Seconds = dict[str, list[float]]


def measure(history: History, ledger: Ledger) -> Seconds:
    """Add nights at the history's end, all streams in turn; return what each step took, step by step."""
    seconds: Seconds = {}

    def timed(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        started = time.perf_counter()
        result = call(*arguments)
        seconds.setdefault(name, []).append(time.perf_counter() - started)
        return result

    heads = {stream: {ledger.head(f"stream {stream}")} for stream in range(history.streams)}
    nights = range(history.days, history.days + NIGHTS)
    for day, stream in product(nights, range(history.streams)):
        key, now, plan = (f"stream {stream}", f"night {day}", 0), START + timedelta(days=day), plan_of(day)
        terms, owner = history.terms(stream), f"owner {day}"
        held = timed("reserve", ledger.reserve, *key, plan, owner, now, LEASE, heads[stream], terms)
        timed("begin the draw", ledger.begin_draw, held, now)
        timed("record the draw", ledger.record_drawn, held, "measured", plan, now)
        timed("stage", ledger.record_staged, *key, "staged", "name", now, held)
        timed("publish", ledger.record_published, *key, now, held)
    every_head, plan = heads_of(ledger, history.days), plan_of(nights.stop)
    for stream in range(history.streams):
        key = (f"stream {stream}", "last", 0)
        timed(f"reserve, {history.days:,} heads", ledger.reserve, *key, plan, "last", now, LEASE, every_head)
    return seconds


def heads_of(ledger: Ledger, n_heads: int) -> list[str]:
    """As many heads, spread over the whole ledger, as a catalogue of so many days carries."""
    with reading(ledger._engine) as connection:
        last = connection.execute(select(func.max(events.c.id))).scalar_one()
        numbers = [1 + (last - 1) * place // n_heads for place in range(n_heads)]
        return [
            connection.execute(select(events.c.hash).where(events.c.id == number)).scalar_one()
            for number in numbers
        ]


def syncs(folder: Path) -> list[float]:
    """How long this disk takes, now, to sync 4 KiB: a transaction waits for a few of these."""
    seconds = []
    with (folder / "synced").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - started)
    return seconds


def run(history: History, folder: Path, table: Table, verify: bool) -> None:
    """Write the ledger, measure, and add the rows to the table."""
    started = time.perf_counter()
    file = folder / f"{history.days}.sqlite"
    ledger = history.write(file)
    size = file.stat().st_size / 1e9
    written = time.perf_counter() - started
    name = f"{history.releases:,}"
    table.add_row(name, f"write in bulk, {size:.1f} GB", "", "", f"{written:.0f} s")
    for step, seconds in [*measure(history, ledger).items(), ("sync 4 KiB", syncs(folder))]:
        ordered = sorted(seconds)
        median, high = statistics.median(ordered), ordered[int(0.95 * len(ordered))]
        table.add_row(name, step, f"{1e3 * median:.1f} ms", f"{1e3 * high:.1f} ms", "")
    if verify:
        started = time.perf_counter()
        found = ledger.verify()
        table.add_row(name, "verify", "", "", f"{time.perf_counter() - started:.1f} s")
        if found:
            raise SystemExit(f"verify found {len(found)} problems, the first: {found[0]}")
    ledger.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--years", type=int, default=10)
    parser.add_argument("--revisions", type=int, default=3)
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument(
        "--folder", type=Path, help="where the ledgers are written (several GB), removed after"
    )
    options = parser.parse_args()
    table = Table("releases", "", "median", "95 %", "once", title="The ledger on SQLite, and its history")
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="ledger-") as folder:
        for years in sorted({1, options.years}):
            history = History(options.streams, round(365.25 * years), options.revisions)
            run(history, Path(folder), table, not options.no_verify)
    Console(width=100, file=sys.stdout).print(table)


if __name__ == "__main__":
    main()

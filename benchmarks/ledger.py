"""Does the ledger stay fast as it grows? Reserve to publish, and verify, after a month, a year and ten.

    python benchmarks/ledger.py [--streams 100] [--years 10] [--revisions 3] [--no-verify] [--folder FOLDER]

A ledger on SQLite of streams × days × revisions, written in bulk (benchmarks/ledger_history.py). At its end
nights are added through the library: each step is one transaction, every commit synced. Beside them, in the
same minutes and on the same disk, the peer: bare SQLite commits of as many rows, no index, check or hash.
"""

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.ledger_history import LEASE, START, History, plan_of
from optstream.ledger import Ledger, open_ledger

NIGHTS = 3
STEPS = {"reserve": 9, "begin the draw": 3, "record the draw": 3, "stage": 3, "publish": 3}
"""Each transaction of a release, and how many rows it writes: release, stream, event, and six spends."""

Seconds = dict[str, list[tuple[float, float]]]
"""What each call of a step took: seconds on the wall, and of this thread's processor."""


def measure(history: History, ledger: Ledger, peer: sqlite3.Connection | None = None) -> Seconds:
    """Add nights at the history's end, all streams in turn; return what each step took, step by step."""
    seconds: Seconds = {}

    def timed(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        started, worked = time.perf_counter(), time.thread_time()
        result = call(*arguments)
        taken = (time.perf_counter() - started, time.thread_time() - worked)
        seconds.setdefault(name, []).append(taken)
        return result

    nights = range(history.days, history.days + NIGHTS)
    for day, stream in product(nights, range(history.streams)):
        key, now, plan = (f"stream {stream}", f"night {day}", 0), START + timedelta(days=day), plan_of(day)
        terms, owner = history.terms(stream), f"owner {day}"
        newest = {ledger.head(f"stream {stream}")}
        held = timed("reserve", ledger.reserve, *key, plan, owner, now, LEASE, newest, terms)
        timed("begin the draw", ledger.begin_draw, held, now)
        timed("record the draw", ledger.record_drawn, held, "measured", plan, now)
        timed("stage", ledger.record_staged, *key, "staged", "name", now, held)
        timed("publish", ledger.record_published, *key, now, held)
        if peer is not None:
            for step, n_rows in STEPS.items():
                timed(f"bare: {step}", bare_commit, peer, n_rows)
    for prefix in ("", "bare: ") if peer is not None else ("",):
        together = zip(*(seconds[prefix + step] for step in STEPS), strict=True)
        seconds[f"{prefix}reserve to publish"] = [
            (sum(wall for wall, _ in steps), sum(worked for _, worked in steps)) for steps in together
        ]
    return seconds


def bare(file: Path) -> sqlite3.Connection:
    """A database of one table whose commits are synced as the ledger's are."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    return connection


def bare_commit(connection: sqlite3.Connection, n_rows: int) -> None:
    """One transaction of as many rows, each as long as a spend."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO rows (text) VALUES (?)", [("x" * 300,)] * n_rows)
    connection.execute("COMMIT")


def syncs(folder: Path) -> list[tuple[float, float]]:
    """How long this disk takes, now, to sync 4 KiB."""
    seconds = []
    with (folder / "synced").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            started, worked = time.perf_counter(), time.thread_time()
            os.fsync(file.fileno())
            seconds.append((time.perf_counter() - started, time.thread_time() - worked))
    return seconds


def in_words(seconds: list[tuple[float, float]]) -> str:
    """Median and 95th percentile on the wall, and the median of the processor's, in milliseconds."""
    ordered = sorted(1e3 * wall for wall, _ in seconds)
    worked = 1e3 * statistics.median(worked for _, worked in seconds)
    return f"{statistics.median(ordered):.2f} / {ordered[int(0.95 * len(ordered))]:.2f} ({worked:.2f})"


def run(history: History, file: Path, processes: int) -> dict[str, str]:
    """Write the ledger unless the file is there, measure; what each line of the table says of it."""
    started = time.perf_counter()
    ledger = open_ledger(f"sqlite:///{file}") if file.exists() else history.write(file)
    said = {"written in bulk": f"{time.perf_counter() - started:.0f} s, {file.stat().st_size / 1e9:.1f} GB"}
    with closing(bare(file.with_suffix(".bare"))) as peer:
        seconds = measure(history, ledger, peer)
    for step, taken in [*seconds.items(), ("sync 4 KiB", syncs(file.parent))]:
        said[step] = in_words(taken)
    if processes:
        started = time.perf_counter()
        found = ledger.verify(processes)
        said[f"verify, {processes} processes"] = f"{time.perf_counter() - started:.1f} s"
        if found:
            raise SystemExit(f"verify found {len(found)} problems, the first: {found[0]}")
    ledger.close()
    return said


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
    processes = 0 if options.no_verify else os.cpu_count() or 1
    days = sorted({30, 365, round(365.25 * options.years)})
    columns: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="ledger-") as folder:
        for n_days in days:
            history = History(options.streams, n_days, options.revisions)
            file = Path(folder) / f"{n_days}.sqlite"
            columns[f"{history.releases:,}"] = run(history, file, processes)
            file.unlink()
    print_table(columns)


def print_table(columns: dict[str, dict[str, str]]) -> None:
    """A line for each step, a column for each length of history."""
    load = f"{os.getloadavg()[1]:.1f} programs wanted {os.cpu_count()} cores"
    table = Table("releases before", *columns, title=f"SQLite: ms, median / 95 % (processor); {load}")
    for step in next(iter(columns.values())):
        table.add_row(step, *(said[step] for said in columns.values()))
    Console(width=110, file=sys.stdout).print(table)


if __name__ == "__main__":
    main()

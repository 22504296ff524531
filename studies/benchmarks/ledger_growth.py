"""Measures whether the ledger stays fast as it grows: publishing, verifying, after a month, a year, ten.

    python -m studies.benchmarks.ledger_growth [--streams 100] [--years 10] [--revisions 3] [--no-verify]
        [--folder FOLDER]

A ledger on SQLite of streams × days × revisions, written in bulk (`inputs/ledger_history`). At its end
nights are added through the library: each step is one transaction, every commit synced. Beside them, in the
same minutes and on the same disk, the peer: bare SQLite commits of as many rows, no index, check or hash.
"""

import os
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

from optstream.ledger import Ledger
from studies.benchmarks.harness.measure import Taken, command, parser, show, table, timed
from studies.benchmarks.inputs.ledger_history import LEASE, START, History, plan_of

NIGHTS = 3
STEPS = {"reserve": 9, "begin the draw": 3, "record the draw": 3, "stage": 3, "publish": 3}
"""Each transaction of a release, and how many rows it writes: release, stream, event, and six spends."""


def measure(
    history: History, ledger: Ledger, peer: sqlite3.Connection | None = None
) -> dict[str, list[Taken]]:
    """Add nights at the history's end, all streams in turn; return what each step took, step by step."""
    found: dict[str, list[Taken]] = {}

    def call(name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        taken, result = timed(lambda: work(*arguments))
        found.setdefault(name, []).append(taken)
        return result

    nights = range(history.days, history.days + NIGHTS)
    for day, stream in product(nights, range(history.streams)):
        key, now, plan = (f"stream {stream}", f"night {day}", 0), START + timedelta(days=day), plan_of(day)
        terms, owner = history.terms(stream), f"owner {day}"
        newest = {ledger.head(f"stream {stream}")}
        held = call("reserve", ledger.reserve, *key, plan, owner, now, LEASE, newest, terms)
        call("begin the draw", ledger.begin_draw, held, now)
        call("record the draw", ledger.record_drawn, held, "measured", plan, now)
        call("stage", ledger.record_staged, *key, "staged", "name", now, held)
        call("publish", ledger.record_published, *key, now, held)
        if peer is not None:
            for step, n_rows in STEPS.items():
                call(f"bare: {step}", bare_commit, peer, n_rows)
    for prefix in ("", "bare: ") if peer is not None else ("",):
        together = zip(*(found[prefix + step] for step in STEPS), strict=True)
        found[f"{prefix}reserve to publish"] = [
            Taken(*(sum(clock) for clock in zip(*steps, strict=True))) for steps in together
        ]
    return found


def bare(file: Path) -> sqlite3.Connection:
    """Open a database of one table whose commits are synced as the ledger's are."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    return connection


def bare_commit(connection: sqlite3.Connection, n_rows: int) -> None:
    """Commit as many rows, each as long as a spend."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO rows (text) VALUES (?)", [("x" * 300,)] * n_rows)
    connection.execute("COMMIT")


def syncs(folder: Path) -> list[Taken]:
    """Return how long this disk takes, now, to sync 4 KiB."""
    found = []
    with (folder / "synced").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            found.append(timed(lambda: os.fsync(file.fileno()))[0])
    return found


def said_of(found: Sequence[Taken]) -> str:
    """Return median and 95th percentile on the wall, and the processor's median, in milliseconds."""
    ordered = sorted(1e3 * taken.wall for taken in found)
    worked = 1e3 * statistics.median(taken.processor for taken in found)
    return f"{statistics.median(ordered):.2f} / {ordered[int(0.95 * len(ordered))]:.2f} ({worked:.2f})"


def run(history: History, file: Path, processes: int) -> dict[str, str]:
    """Write the ledger, measure; return what each line of the table says of it."""
    writing, ledger = timed(lambda: history.write(file))
    said = {"written in bulk": f"{writing.wall:.0f} s, {file.stat().st_size / 1e9:.1f} GB"}
    with closing(bare(file.with_suffix(".bare"))) as peer:
        found = measure(history, ledger, peer)
    for step, taken in [*found.items(), ("sync 4 KiB", syncs(file.parent))]:
        said[step] = said_of(taken)
    if processes:
        verifying, problems = timed(lambda: ledger.verify(processes))
        said[f"verify, {processes} processes"] = f"{verifying.wall:.1f} s"
        if problems:
            raise SystemExit(f"verify found {len(problems)} problems, the first: {problems[0]}")
    ledger.close()
    return said


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure a month, a year and all years; print a line a step, a column a length of history."""
    options = parser(__doc__)
    options.add_argument("--streams", type=int, default=100)
    options.add_argument("--years", type=float, default=10)
    options.add_argument("--revisions", type=int, default=3)
    options.add_argument("--no-verify", action="store_true")
    options.add_argument("--folder", type=Path, help="where ledgers are written (several GB), removed after")
    given = options.parse_args(arguments)
    processes = 0 if given.no_verify else os.cpu_count() or 1
    most = max(1, round(365.25 * given.years))
    columns: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="ledger-") as folder:
        for n_days in sorted({min(n_days, most) for n_days in (30, 365, most)}):
            history = History(given.streams, n_days, given.revisions)
            file = Path(folder) / f"{n_days}.sqlite"
            columns[f"{history.releases:,}"] = run(history, file, processes)
            file.unlink()
    load = f"{os.getloadavg()[1]:.1f} programs wanted {os.cpu_count()} cores"
    rows = table(["releases before"], columns, title=f"SQLite: ms, median / 95 % (processor); {load}")
    for step in next(iter(columns.values())):
        rows.add_row(step, *(said[step] for said in columns.values()))
    show(rows)


if __name__ == "__main__":
    command(main)

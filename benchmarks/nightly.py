"""Where the time of a night goes: import, orchestration, ingest, validate, release, publish.

    python benchmarks/nightly.py

A simulated day of 12 regions. Three whole processes, each started afresh: the first time ever (the
orchestrator makes its database), the next day, and against a server that already runs. Last, the release
itself in a process that is warm.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.prefect_server import free_port, running_server
from optstream import secure_noise
from tasks.example import EXAMPLE
from tasks.mechanism import mechanism_for
from tasks.settings import load_settings
from tasks.simulate import simulate

FIRST = date(2016, 2, 1)
PARTS = {
    "ingest": ("look up", "discover dumps", "ingest"),
    "validate": ("validate",),
    "release": ("reserve", "draw", "estimate"),
    "publish": ("publish",),
}


class Stopwatch:
    """Takes the terminal's place and notes how long each step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Time one step; `label` is "name, n days"."""
        started = time.perf_counter()
        yield
        self.seconds[label.partition(",")[0]] = time.perf_counter() - started


def one_night(config: Path, day: str) -> None:
    """What `optstream run` does, timed; prints one JSON line. Runs in a process of its own."""
    started = time.perf_counter()
    from flows.orchestrator import prepare

    settings = load_settings(config)
    orchestrator = prepare(settings.trusted_folder)
    from flows.nightly import run_days

    imported = time.perf_counter() - started
    orchestrator.wait()
    watch = Stopwatch()
    works = run_days(settings, [date.fromisoformat(day)], watch)
    assert all(work.outcome and work.outcome.status == "published" for work in works), works
    print(json.dumps({"import": imported} | watch.seconds))


def whole_process(config: Path, day: date, **environment: str) -> dict[str, float]:
    """Seconds of each part of one night, the rest being orchestration, and of the whole process."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.nightly", "--night", str(config), f"{day}"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    total = time.perf_counter() - started
    steps = json.loads(done.stdout)
    parts = {"import": steps["import"]}
    parts |= {part: sum(steps[name] for name in names) for part, names in PARTS.items()}
    return parts | {"orchestration": total - sum(parts.values()), "whole process": total}


def release_itself(config: Path) -> float:
    """Seconds of measure and estimate with secure noise, median of 21, in a warm process."""
    settings = load_settings(config)
    mechanism = mechanism_for(settings, FIRST)
    load = [[4500.0] * 48] * len(settings.tree.leaves)
    seconds = []
    for _ in range(21):
        started = time.perf_counter()
        mechanism.release(load, noise=secure_noise())
        seconds.append(time.perf_counter() - started)
    return sorted(seconds)[10]


def main() -> int:
    """Measure and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--night", nargs=2, metavar=("CONFIG", "DAY"), help=argparse.SUPPRESS)
    night = parser.parse_args().night
    if night:
        one_night(Path(night[0]), night[1])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "optstream.toml"
        config.write_text(EXAMPLE)
        settings = load_settings(config)
        days = [FIRST + timedelta(days=number) for number in range(4)]
        simulate(settings.input_folder, leaves=settings.tree.leaves, calendar=settings.calendar, days=days)
        columns = {
            "first time": whole_process(config, days[0]),
            "next day": whole_process(config, days[1]),
        }
        with running_server(Path(folder) / "prefect", free_port()) as url:
            whole_process(config, days[2], PREFECT_API_URL=url)
            columns["server runs"] = whole_process(config, days[3], PREFECT_API_URL=url)
        itself = release_itself(config)
    table = Table("seconds", *columns, box=None)
    for part in ("import", "orchestration", *PARTS, "whole process"):
        table.add_row(part, *(f"{column[part]:.2f}" for column in columns.values()))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"the release itself (measure and estimate, 13 nodes, secure noise): {itself * 1e3:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())

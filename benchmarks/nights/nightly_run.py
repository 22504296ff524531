"""Shows where the time of a night goes: import, orchestration, ingest, validate, release, publish.

    python -m benchmarks.nights.nightly_run

A simulated day of 12 regions. Three whole processes, each started afresh: the first time ever, the next day,
and against a Prefect server that already runs; beside them the peer, a script without any guarantee. Last,
the release itself in a process that is warm.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from benchmarks.harness.measure import command, in_process, parser, show, table, timed
from benchmarks.harness.prefect_server import free_port, running_server
from benchmarks.inputs.fixture import stream
from flows.cli.console import Terminal
from flows.orchestration.environment import connect
from optstream import secure_noise
from tasks.config import Settings, load_settings
from tasks.release.build_mechanism import mechanism_for

FIRST = date(2016, 2, 1)
PARTS = {
    "ingest": ("look up", "discover dumps", "ingest"),
    "validate": ("validate",),
    "release": ("reserve", "draw", "estimate"),
    "publish": ("publish",),
}


class Stopwatch(Terminal):
    """Takes the terminal's place and notes how long each step took."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Time one step; `label` is "name, n days"."""
        started = time.perf_counter()
        yield
        self.seconds[label.partition(",")[0]] = time.perf_counter() - started


def one_night(config: Path, day: str) -> None:
    """Do what `optstream run` does, timed; print one JSON line. Runs in a process of its own."""
    started = time.perf_counter()
    settings = load_settings(config)
    connect(settings.trusted_folder)
    from flows.orchestration.release import run_days

    imported = time.perf_counter() - started
    watch = Stopwatch()
    works = run_days(settings, [date.fromisoformat(day)], watch)
    assert all(day.outcome.status == "published" for day in works), works
    print(json.dumps({"import": imported} | watch.seconds))


def whole_process(config: Path, day: date, **environment: str) -> dict[str, float]:
    """Return the seconds of each part of one night, of the rest (orchestration), and of the whole."""
    night = ("-m", "benchmarks.nights.nightly_run", "--night", str(config), f"{day}")
    steps, total = in_process(*night, codes=(0,), **environment)
    parts = {"import": steps["import"]}
    parts |= {part: sum(steps[name] for name in names) for part, names in PARTS.items()}
    return parts | {"orchestration": total - sum(parts.values()), "whole process": total}


def bare_night(settings: Settings, day: date) -> float:
    """Return the seconds of the script without guarantees, start of Python included."""
    dumps, into = str(settings.input_folder), str(settings.folder / "bare")
    value = settings.input_of(day).value
    return in_process("-m", "benchmarks.peers.bare_script", dumps, value, into, f"{day}", f"{day}")[1]


def release_itself(settings: Settings) -> float:
    """Return the seconds of measure and estimate with secure noise, median of 21, in a warm process."""
    mechanism = mechanism_for(settings, FIRST)
    load = [[4500.0] * 48] * len(settings.tree_of(date.min).leaves)
    return statistics.median(
        timed(lambda: mechanism.release(load, noise=secure_noise()))[0].wall for _ in range(21)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    options = parser(__doc__)
    options.add_argument("--night", nargs=2, metavar=("CONFIG", "DAY"), help=argparse.SUPPRESS)
    if night := options.parse_args(arguments).night:
        one_night(Path(night[0]), night[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        days = [FIRST + timedelta(days=number) for number in range(4)]
        settings = stream(Path(folder), days=days)
        columns = {
            "first time": whole_process(settings.file, days[0]),
            "next day": whole_process(settings.file, days[1]),
        }
        with running_server(Path(folder) / "prefect", free_port()) as url:
            whole_process(settings.file, days[2], PREFECT_API_URL=url)
            columns["server runs"] = whole_process(settings.file, days[3], PREFECT_API_URL=url)
        columns["bare script"] = {"whole process": bare_night(settings, days[0])}
        itself = release_itself(settings)
    rows = table(["seconds"], columns)
    for part in ("import", "orchestration", *PARTS, "whole process"):
        rows.add_row(part, *(f"{column[part]:.2f}" if part in column else "" for column in columns.values()))
    show(
        rows,
        f"the release itself (measure and estimate, 13 nodes, secure noise): {itself * 1e3:.1f} ms",
    )


if __name__ == "__main__":
    command(main)

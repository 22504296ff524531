"""Fills in years: how long, where the time goes, and whether a day costs more the longer the history is.

    python -m studies.benchmarks.backfill [--data FOLDER | --simulated DAYS] [--workers 2] [--ledger URL]

The four years of RTE's regional load (or made-up dumps) are laid out as daily dumps, 12 regions each, and
released by `optstream backfill` against a server that runs already; the ledger is durable at every day. Then
the same command again, which must do nothing. The peer, in the same minutes and on the same dumps: a script
that reads each day, adds numpy's Laplace noise and writes a file, without validation, ledger, exact noise,
consistency or catalogue.
"""

import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from optstream.ledger import open_ledger
from optstream.stream import days_from
from studies.benchmarks.harness.measure import command, in_process, parser, show, table
from studies.benchmarks.harness.prefect_server import free_port, running_server
from studies.benchmarks.inputs.fixture import stream
from studies.papers.data import LOAD, LOAD_COLUMNS, read_rows
from tasks.config import Settings
from tasks.sample_data.rte import RegionLoad, rte_configuration, write_loads

FIRST, LAST = date(2013, 1, 1), date(2016, 12, 31)
STEPS = ("look up", "discover dumps", "ingest", "validate", "reserve", "draw", "estimate", "publish")
MONTH = "release a month"
PAGE = 200
Tasks = Mapping[str, tuple[int, float]]
"""Of the server's task runs, by name: how many, and their seconds together."""


@dataclass(frozen=True)
class Filled:
    """One `optstream backfill`: what it said as JSON, and its seconds, start of Python included."""

    document: dict[str, Any]
    seconds: float

    def days(self, status: str) -> list[str]:
        """Return the days that ended so."""
        return [day["date"] for day in self.document["days"] if day["status"] == status]


def fill(config: Path, first: date, last: date, workers: int, **environment: str) -> Filled:
    """Run the command in a process of its own."""
    words = ["backfill", "--config", str(config), "--from", f"{first}", "--to", f"{last}", "--json"]
    code = "from flows.cli.main import main; main()"
    return Filled(*in_process("-c", code, *words, "--workers", str(workers), codes=(0, 1), **environment))


def task_seconds(url: str) -> Tasks:
    """Ask the server for its task runs."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    found: dict[str, tuple[int, float]] = {}
    with temporary_settings({PREFECT_API_URL: url}), get_client(sync_client=True) as client:
        offset = 0
        while runs := client.read_task_runs(limit=PAGE, offset=offset):
            for run in runs:
                name = run.name if run.name in STEPS else run.name.rpartition("-")[0]
                count, seconds = found.get(name, (0, 0.0))
                found[name] = count + 1, seconds + run.total_run_time.total_seconds()
            offset += PAGE
    return found


def by_the_ledger(settings: Settings) -> dict[int, float]:
    """Return milliseconds from one draw to the next, by year: whether days become slower."""
    times = open_ledger(settings.ledger_url).event_times(settings.stream.name, "drawn")
    years: dict[int, list[float]] = {}
    for (period, _), at in times.items():
        years.setdefault(int(period[:4]), []).append(at.timestamp())
    return {
        year: 1e3 * (max(stamps) - min(stamps)) / (len(stamps) - 1)
        for year, stamps in sorted(years.items())
        if len(stamps) > 1
    }


def lay_out(folder: Path, given: Namespace) -> tuple[Settings, date]:
    """Write the configuration and the dumps; return the settings and the last day."""
    text, last = rte_configuration(folder / "dumps"), LAST
    if given.simulated is not None:
        last = FIRST + timedelta(days=given.simulated - 1)
        return stream(folder, text, days_from(FIRST, last), given.ledger), last
    lay_out_load(given.data, FIRST, last, folder / "dumps")
    return stream(folder, text, ledger=given.ledger), last


def lay_out_load(data: Path, first: date, last: date, into: Path) -> int:
    """Write region=<code>/date=<day>/part-0.parquet and marker for every region and day; count the new.

    data: the folder of the public series. Nulls stay as they are: judging a dump is the contract's task.
    Raises DumpError as `read_rows`, or where another dump lies.
    """
    rows = read_rows(data / LOAD, LOAD_COLUMNS, first, last).drop("day")
    rows = rows.sort("region_code", "timestamp_local").rename({"timestamp_local": "timestamp"})
    loads = [
        RegionLoad(LOAD, str(code), own.drop("region_code"))
        for (code,), own in rows.with_row_index("line", 1).group_by("region_code", maintain_order=True)
    ]
    return write_loads(loads, into).n_written


def measure(settings: Settings, last: date, workers: int) -> None:
    """Fill the days in, fill them in again, run the script without guarantees; print."""
    days = days_from(FIRST, last)
    with running_server(settings.folder / "prefect", free_port()) as url:
        first = fill(settings.file, FIRST, last, workers, PREFECT_API_URL=url)
        again = fill(settings.file, FIRST, last, workers, PREFECT_API_URL=url)
        tasks = task_seconds(url)  # now, for the server may record a run's tasks after the run
    words = [str(settings.input_folder), settings.input_of(FIRST).value, str(settings.folder / "bare")]
    _, bare = in_process("-m", "studies.benchmarks.peers.bare_script", *words, f"{FIRST}", f"{last}")
    published = first.days("published")
    yearly = ", ".join(f"{year}: {ms:.0f}" for year, ms in by_the_ledger(settings).items())
    show(
        f"wall seconds of the tasks, over {workers} processes",
        table_of(tasks, len(days)),
        f"ms from a draw to the next, by year: {yearly}",
        f"published {len(published)} days; refused {first.days('refused')}",
        f"again: {len(again.days('published'))} days in {again.seconds:.1f} s",
        f"the bare script: {bare:.1f} s",
        f"{len(published)} days in {first.seconds:.1f} s",
    )


def table_of(tasks: Tasks, n_days: int) -> Any:
    """Return a row a step, and what the months took besides."""
    rows = table(["step"], ["tasks", "seconds", "ms a day"])
    known = {step: tasks.get(step, (0, 0.0)) for step in STEPS}
    count, months = tasks.get(MONTH, (0, 0.0))
    rest = months - sum(seconds for _, seconds in known.values())
    for step, (number, seconds) in (known | {"subflows besides": (count, rest)}).items():
        rows.add_row(step, f"{number}", f"{seconds:.1f}", f"{1e3 * seconds / n_days:.1f}")
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Lay out, measure and print."""
    options = parser(__doc__, data=False)
    options.add_argument(
        "--simulated", type=int, metavar="DAYS", help="made-up dumps of so many days instead"
    )
    options.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    options.add_argument("--ledger", metavar="URL", help="instead of an SQLite file")
    given = options.parse_args(arguments)
    if given.data is None and given.simulated is None:
        options.error("name the data with --data or OPTSTREAM_DATA, or ask for --simulated DAYS")
    with tempfile.TemporaryDirectory() as folder:
        measure(*lay_out(Path(folder), given), given.workers)


if __name__ == "__main__":
    command(main)

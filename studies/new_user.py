"""A new user with files of four shapes: commands, lines of configuration, seconds, errors by level."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import typer

from optstream import read_published
from studies.benchmarks.measure import Data

DAY = timedelta(days=1)
Made = tuple[str, list[date], pl.DataFrame]
"""What follows `init FOLDER`, the days to release, and the truth: date, step, node, value."""


def operator(data: Path, folder: Path) -> Made:
    """A transmission operator's yearly files, as RTE hands them out."""
    shutil.copytree(data / "rte_2016_zips", folder)
    days = [date(2016, 3, 26), date(2016, 3, 27)]
    rows = pl.read_parquet(data / "rte_regional_load_2013_2016.parquet")
    named = pl.col("region").replace({"Provence-Alpes-Côte d'Azur": "PACA", "Île-de-France": "Ile-de-France"})
    rows = rows.with_columns(named.str.replace_all(" ", "-"))
    words = "--answer zone=Europe/Paris --answer size=5000"
    return words, days, _truth(rows, days, "timestamp_local", "region", "load_mw")


def trips(data: Path, folder: Path) -> Made:
    """Trips by the wall clock of New York over a spring, a table a day, zones in a column."""
    folder.mkdir()
    rows = pl.read_parquet(data / "taxi_trips_nyc_hourly_2024.parquet")
    busy = rows.group_by("zone").agg(pl.col("trips").sum()).sort("trips", "zone").tail(20).select("zone")
    days, spring, found = [date(2024, 3, 8) + n * DAY for n in range(4)], date(2024, 3, 10), []
    for day in days:
        hours = [hour for hour in range(24) if (day, hour) != (spring, 2)]
        stamps = pl.DataFrame(
            {"timestamp_local": [datetime(day.year, day.month, day.day, one) for one in hours]}
        )
        own = stamps.join(busy, how="cross").join(rows, on=["timestamp_local", "zone"], how="left")
        found.append(own.with_columns(pl.col("trips").fill_null(0)))
        own = found[-1].rename({"timestamp_local": "pickup_time"})
        own.write_csv(folder / f"trips_{day:%Y%m%d}.csv", datetime_format="%Y-%m-%d %H:%M:%S")
    truth = _truth(pl.concat(found), days, "timestamp_local", "zone", "trips")
    return "--answer size=3", days, truth


def meters(data: Path, folder: Path) -> Made:
    """Meters as CSV.gz, stamps at the end of a step in UTC, with a column of revision."""
    rows = pl.read_parquet(data / "smart_meters_2013.parquet")
    names = rows["customer_id"].unique().sort()
    feeders = {name: f"feeder-{number % 3 + 1}" for number, name in enumerate(names)}
    rows = rows.with_columns(feeder=pl.col("customer_id").replace_strict(feeders))
    days = [date(2013, 10, 4) + n * DAY for n in range(2)]
    ends = pl.col("timestamp_local") + timedelta(minutes=30)
    utc = ends.dt.replace_time_zone("Australia/Sydney", ambiguous="earliest", non_existent="null")
    stamp = utc.dt.convert_time_zone("UTC").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    for day in days:
        own = rows.filter(pl.col("timestamp_local").dt.date() == day).with_columns(
            reading_end_utc=stamp, revision=pl.lit(1)
        )
        for feeder, part in own.partition_by("feeder", as_dict=True).items():
            file = folder / str(feeder[0]) / f"{day}.csv.gz"
            file.parent.mkdir(parents=True, exist_ok=True)
            columns = part.select("customer_id", "reading_end_utc", "energy_kwh", "revision")
            file.write_bytes(gzip.compress(columns.write_csv().encode()))
    return "--answer size=5", days, _truth(rows, days, "timestamp_local", "feeder", "energy_kwh")


def table(data: Path, folder: Path) -> Made:
    """A Delta table by date, one of whose files a later commit replaced."""
    rows = pl.read_parquet(data / "rte_regional_load_2013_2016.parquet").drop_nulls("timestamp_utc")
    columns, days = ["timestamp_utc", "region_code", "load_mw"], [date(2015, 3, 28), date(2015, 3, 29)]
    commits: list[list[dict[str, dict[str, Any]]]] = [[{"protocol": {"minReaderVersion": 1}}], []]
    for number, day in enumerate((days[0], *days)):  # the first day twice: its first file is half as large
        own = rows.filter(pl.col("timestamp_local").dt.date() == day).select(columns)
        path = f"date={day}/part-{number:05}.snappy.parquet"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        own.with_columns(pl.col("load_mw") / (2 if number == 0 else 1)).write_parquet(folder / path)
        commits[number > 0].append({"add": {"path": path, "dataChange": True}})
    commits[1].append({"remove": {"path": f"date={days[0]}/part-00000.snappy.parquet"}})
    (folder / "_delta_log").mkdir()
    for number, actions in enumerate(commits):
        text = "".join(f"{json.dumps(action)}\n" for action in actions)
        (folder / "_delta_log" / f"{number:020}.json").write_text(text)
    words = "--answer zone=Europe/Paris --answer size=5000"
    return words, days, _truth(rows, days, "timestamp_local", "region_code", "load_mw")


def _truth(rows: pl.DataFrame, days: Sequence[date], stamp: str, node: str, value: str) -> pl.DataFrame:
    """Return the sums of each leaf by day and by the minute of the wall clock."""
    at = pl.col(stamp)
    own = rows.filter(at.dt.date().is_in([*days]))
    minute = at.dt.hour().cast(pl.Int64) * 60 + at.dt.minute()
    groups = own.group_by(date=at.dt.date(), minute=minute, node=pl.col(node).cast(pl.String))
    return groups.agg(truth=pl.col(value).cast(pl.Float64).sum())


SOURCES: dict[str, Callable[[Path, Path], Made]] = {
    "operator": operator,
    "trips": trips,
    "meters": meters,
    "table": table,
}


@dataclass
class User:
    """Types commands in a folder; the program is this environment's."""

    folder: Path

    def types(self, command: str) -> tuple[int, str, float]:
        """Return the exit code of a command, what it says, and its seconds."""
        _, *words = shlex.split(command)
        program = [sys.executable, "-c", "from flows.cli.main import main; main()"]
        environment = {**os.environ, "COLUMNS": "160", "PYTHONPATH": str(Path(__file__).parents[1])}
        begun = time.monotonic()
        ended = subprocess.run(
            [*program, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return ended.returncode, ended.stdout + ended.stderr, time.monotonic() - begun


def try_source(name: str, data: Path, folder: Path) -> bool:
    """Play the two commands of a source and print how they go; return whether every day is released."""
    folder.mkdir()
    words, days, truth = SOURCES[name](data, folder / name)
    for file in filter(Path.is_file, (folder / name).rglob("*")):
        os.utime(file, (0, 0))  # written long ago
    user, commands = User(folder), [f"optstream init {name} --yes {words}".strip()]
    print(f"\n{name}: {SOURCES[name].__doc__}")
    code, said, seconds = user.types(commands[0])
    print(f"  {commands[0]}  [{code}, {seconds:.1f} s]")
    if code:
        print(said)
        return False
    for line in said.splitlines():
        if re.match(r"(expected error|level|ATTENTION|[a-z]+: .* taken for)", line):
            print(f"    {line}")
    text = (folder / "optstream.toml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    command = "optstream run " + " ".join(f"--date {day}" for day in days)
    code, said, seconds = user.types(command)
    print(f"  {command}  [{code}, {seconds:.1f} s]; {len(lines)} lines of configuration")
    if code:
        print(said)
        return False
    rows = read_published(folder / "published")
    print(f"  released {rows['date'].n_unique()} days; {_errors(rows, truth)}")
    return True


def _errors(rows: pl.DataFrame, truth: pl.DataFrame) -> str:
    """Return the root mean square error of each level, without slots that the wall clock skips, which are 0
    without an error, whatever a supplier writes there."""
    value, name = rows.columns[rows.columns.index("level") + 1], rows.filter(pl.col("level") == 0)["node"][0]
    root = truth.group_by("date", "minute").agg(pl.col("truth").sum(), node=pl.lit(name))
    n_steps = rows["step"].n_unique()
    known = pl.concat([truth, root.select(truth.columns)])
    own = rows.filter(pl.col(f"{value}_se").is_not_null())
    own = own.with_columns(minute=pl.col("step").cast(pl.Int64) * (1440 // n_steps)).join(
        known, on=["date", "minute", "node"]
    )
    off = (pl.col(value) - pl.col("truth")).pow(2).mean().sqrt()
    found = own.group_by("level").agg(off=off, size=pl.col("truth").mean()).sort("level")
    return ", ".join(
        f"level {level} errs {off:,.4g} of {size:,.4g}" for level, off, size in found.iter_rows()
    )


TAKEN = "optstream init files --yes"
WRONG = (
    ("optstream init files", "--yes", TAKEN),
    (f"{TAKEN} --answer alpha=much", "a number above 0", f"{TAKEN} --answer alpha=8"),
    (f"{TAKEN} --answer zone=Mars", "Europe/Paris", f"{TAKEN} --answer zone=Europe/Paris"),
    (f"{TAKEN} --column value=kw", "it has", f"{TAKEN} --column value=load_mw"),
    (f"{TAKEN} --answer step=7min", "30min", f"{TAKEN} --answer step=30min"),
)
"""A command that is refused, words of its message, and what the message says to do."""


def try_wrong(data: Path, folder: Path) -> bool:
    """Type five wrong commands and do what their messages say; return whether that works."""
    rows = pl.read_parquet(data / "rte_regional_load_2013_2016.parquet").select(
        "timestamp_utc", "region_code", "load_mw"
    )
    day, works = date(2015, 6, 1), True
    at = pl.col("timestamp_utc").dt.convert_time_zone("Europe/Paris").dt.date()
    place = folder / "files" / f"date={day}"
    place.mkdir(parents=True)
    rows.filter(at == day).write_parquet(place / "part-0.parquet")
    user = User(folder)
    print("\nfive wrong commands, and what their messages say")
    for command, says, remedy in WRONG:
        code, said, _ = user.types(command)
        is_said = code == 2 and says in " ".join(said.split())
        code, _, _ = user.types(remedy)
        print(f"  {command}: {' '.join(said.split())[-160:]}\n    {remedy}  [{code}]")
        works &= is_said and code == 0
        (folder / "optstream.toml").unlink(missing_ok=True)
    return works


def main(data: Data) -> None:
    """Play a new user on four sources; exit with 1 if anything does not go as it should."""
    with tempfile.TemporaryDirectory(prefix="new-user-") as place:
        done = [try_source(name, data, Path(place) / name) for name in SOURCES]
        done.append(try_wrong(data, Path(place) / "wrong"))
    raise typer.Exit(0 if all(done) else 1)

"""`optstream init FOLDER`: what the files say in public, six questions, and a configuration that releases."""

import gzip
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from tasks.config import load_settings
from tests.flows.command import invoke

pytestmark = pytest.mark.slow

ODD = "31337.625"
"""Of a reading: no output and no file that `init` writes may hold it."""
FIRST, SPRING = date(2024, 3, 30), date(2024, 3, 31)


@dataclass(frozen=True)
class Shape:
    """Files as somebody writes them. path: with the region, and the date by `strftime`. columns: of the rows,
    by what they hold. stamps: how the start of a step becomes the texts of its row, or a stamp.
    """

    path: str
    columns: dict[str, str]
    stamps: str = "wall"
    by_end: bool = False
    minutes: int = 60
    separator: str = ","
    answers: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()

    def write(self, folder: Path, days: list[date]) -> None:
        files: dict[Path, list[dict[str, object]]] = {}
        for day in days:
            begins = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Paris"))
            after = day + timedelta(days=1)
            ends = datetime(after.year, after.month, after.day, tzinfo=ZoneInfo("Europe/Paris"))
            n_steps = int((ends.timestamp() - begins.timestamp()) // (60 * self.minutes))
            for region, number in (("north", 1), ("south", 2)):
                for step in range(n_steps):
                    at = begins.timestamp() + 60 * self.minutes * (step + self.by_end)
                    stamp = datetime.fromtimestamp(
                        at, ZoneInfo("UTC" if "utc" in self.stamps else "Europe/Paris")
                    )
                    value: object = float(ODD) if step == 3 else 100.0 + step
                    value = str(value).replace(".", ",") if self.separator == ";" else value
                    known = {
                        "stamp": stamp if self.stamps == "utc instants" else stamp.replace(tzinfo=None),
                        "date": f"{stamp:%Y-%m-%d}",
                        "time": f"{stamp:%H:%M}",
                        "text": stamp.isoformat().replace("+00:00", "Z"),
                        "value": value,
                        "region": region,
                        "customer": f"customer {number}",
                        "about": 1,
                    }
                    row = {name: known[what] for name, what in self.columns.items()}
                    files.setdefault(folder / day.strftime(self.path.format(region)), []).append(row)
        for file, rows in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            table = pl.DataFrame(rows)
            if file.suffix == ".parquet":
                table.write_parquet(file)
            else:
                text = table.write_csv(separator=self.separator, datetime_format="%Y-%m-%d %H:%M:%S").encode()
                file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)
        (folder / "_SUCCESS").touch()


SHAPES = {
    "usual Parquet, instants": Shape(
        "region={}/date=%Y-%m-%d/part-0.parquet", {"timestamp": "stamp", "load_mw": "value"}, "utc instants"
    ),
    "a table a day of wall clock": Shape(
        "load_%Y%m%d.csv",
        {"pickup_time": "stamp", "zone": "region", "trips": "about"},
        answers=("zone=Europe/Paris",),
        expected=('path = "load_{date:%Y%m%d}.csv"', 'region = "zone"', 'day = "fixed"', "counts = true"),
    ),
    "meters, ends of steps in UTC": Shape(
        "{}/%Y-%m-%d.csv.gz",
        {"customer_id": "customer", "reading_end": "text", "energy_kwh": "value", "revision": "about"},
        "utc",
        by_end=True,
        minutes=30,
        expected=('path = "{region}/{date:%Y-%m-%d}.csv.gz"', 'stamps = "end"', 'schema = "metered"'),
    ),
    "a year of an operator": Shape(
        "load_{}_%Y.csv",
        {"Date": "date", "Heures": "time", "Consommation": "value", "Nature": "about"},
        minutes=30,
        separator=";",
        answers=("zone=Europe/Paris",),
        expected=(
            'path = "load_{region}_{date:%Y}.csv"',
            'timestamp = ["Date", "Heures"]',
            'decimal = ","',
        ),
    ),
    "days in folders": Shape(
        "%Y/%m/%d/{}.parquet",
        {"ts": "stamp", "value": "value"},
        "naive utc",
        answers=("zone=Europe/Paris, UTC",),
        expected=('path = "{date:%Y}/{date:%m}/{date:%d}/{region}.parquet"', 'stamps_zone = "UTC"'),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_two_commands_release_the_files_of_a_folder_over_a_spring(empty, name):
    """About ten lines, errors before anything runs, the day on which the clock changes, and no reading."""
    shape = SHAPES[name]
    shape.write(empty / "files", [FIRST, SPRING, SPRING + timedelta(days=1)])
    answers = [word for one in shape.answers for word in ("--answer", one)]
    shown = invoke("init", "files", "--yes", *answers)
    assert shown.exit_code == 0, shown.output
    text = (empty / "optstream.toml").read_text()
    for line in shape.expected:
        assert line in text
    assert "expected error of a published value" in shown.output
    assert "ATTENTION" not in shown.output
    written = text + shown.output + "".join(path.read_text() for path in empty.glob("*.csv"))
    assert ODD not in written
    assert ODD.replace(".", ",") not in written
    assert "31337" not in written
    settings = load_settings(empty / "optstream.toml")
    assert settings.mechanism.name == "HistoryInformed"
    assert sum("=" in line for line in text.splitlines() if not line.startswith("#")) <= 16
    with temporary_settings({PREFECT_API_URL: None}):
        ended = invoke("run", "--date", str(FIRST), "--date", str(SPRING))
    assert ended.exit_code == 0, ended.output
    assert ended.output.count("published  revision 0") == 2

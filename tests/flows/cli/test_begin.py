"""`optstream init FOLDER`: what the files say in public, six questions, and a configuration that releases."""

import contextlib
import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import product
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from optstream.errors import OptStreamError
from optstream.stream import PrivatePeriod
from tasks.config import load_settings
from tasks.ingest import discover
from tasks.plan import advise
from tests.flows.command import invoke, judge
from tests.tasks.operate.test_survey import write as write_rows

pytestmark = pytest.mark.slow

ODD = "31337.625"
"""Of a reading: no output and no file that `init` writes may hold it."""
FIRST, SPRING = date(2024, 3, 30), date(2024, 3, 31)
PARIS = ZoneInfo("Europe/Paris")


@dataclass(frozen=True)
class Shape:
    """Files as somebody writes them. columns: what they hold; stamps: how starts of steps are written."""

    path: str
    columns: dict[str, str]
    stamps: str = "wall"
    by_end: bool = False
    minutes: int = 60
    separator: str = ","
    answers: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    marked: bool = True

    def write(self, folder: Path, days: list[date]) -> None:
        files: dict[Path, list[dict[str, object]]] = {}
        length = timedelta(minutes=self.minutes)
        for day, (number, region) in product(days, enumerate(("north", "south"))):
            both = (datetime.combine(one, time(), PARIS) for one in (day, day + timedelta(days=1)))
            begins, ends = (one.astimezone(UTC) for one in both)
            for step in range((ends - begins) // length):
                at = begins + (step + self.by_end) * length
                stamp = at if "utc" in self.stamps else at.astimezone(PARIS)
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
                if self.columns.get("trips") and (region, step) == ("south", 5):
                    continue  # none, which such files leave out
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
            os.utime(file, (0, 0))
        if self.marked:
            (folder / "_SUCCESS").touch()


SHAPES = {
    "usual Parquet, instants": Shape(
        "region={}/date=%Y-%m-%d/part-0.parquet", {"timestamp": "stamp", "load_mw": "value"}, "utc instants"
    ),
    "a table a day of wall clock": Shape(
        "load_%Y%m%d.csv",
        {"pickup_time": "stamp", "zone": "region", "trips": "about"},
        answers=("zone=Europe/Paris",),
        expected=(
            'path = "load_{date:%Y%m%d}.csv"',
            'region = "zone"',
            'day = "fixed"',
            "counts = true",
            'missing_rows = "zero"',
        ),
    ),
    "meters, ends of steps in UTC": Shape(
        "feeder-{}/%Y-%m-%d.csv.gz",
        {"customer_id": "customer", "reading_end": "text", "energy_kwh": "value", "revision": "about"},
        "utc",
        by_end=True,
        minutes=30,
        expected=(
            'path = "{region}/{date:%Y-%m-%d}.csv.gz"',
            '"feeder-north" = "all"',
            'stamps = "end"',
            'revision = "revision"',
            'schema = "metered"',
            'marker = ""',
        ),
        marked=False,
    ),
    "a year of an operator": Shape(
        "load_{}_%Y.csv",
        {"Date": "date", "Heures": "time", "Consommation": "value", "Nature": "about"},
        minutes=30,
        separator=";",
        answers=("zone=Europe/Paris",),
        expected=('path = "load_{region}_{date:%Y}.csv"', 'timestamp = ["Date", "Heures"]', 'decimal = ","'),
    ),
}


RUN = "a table a day of wall clock"
"""The shape that is planned among all mechanisms and released; the days of the others are read and judged."""


@pytest.fixture
def one_plan(monkeypatch):
    """No other plan is compared with the first, where the choice is not looked at: that takes seconds."""
    for choices in ("mechanism_choices", "share_choices"):
        monkeypatch.setattr(advise, choices, lambda _: ())


@pytest.mark.parametrize("name", SHAPES)
def test_two_commands_release_the_files_of_a_folder_over_a_spring(empty, name, request):
    """About ten lines, errors before anything runs, the day on which the clock changes, and no reading."""
    shape = SHAPES[name]
    if name != RUN:
        request.getfixturevalue("one_plan")
    shape.write(empty / "files", [FIRST, SPRING, SPRING + timedelta(days=1)])
    answers = [word for one in shape.answers for word in ("--answer", one)]
    shown = invoke("init", "files", "--yes", *answers)
    assert shown.exit_code == 0, shown.output
    text = (empty / "optstream.toml").read_text()
    for line in shape.expected:
        assert line in text
    assert "expected error of a published value" in shown.output
    assert "1/10 of epsilon is kept to measure a wrong day again: 1/9 more noise" in shown.output
    assert "ATTENTION" not in shown.output
    written = text + shown.output + "".join(path.read_text() for path in empty.glob("*.csv"))
    assert "31337" not in written
    settings = load_settings(empty / "optstream.toml")
    assert settings.mechanism.name == "HistoryInformed"
    assert sum("=" in line for line in text.splitlines() if not line.startswith("#")) <= 12
    if name != RUN:
        assert isinstance(judge(settings, SPRING), PrivatePeriod)
        return
    with temporary_settings({PREFECT_API_URL: None}):
        ended = invoke("run", "--date", str(SPRING))
    assert ended.exit_code == 0, ended.output
    assert ended.output.count("published  revision 0") == 1


@pytest.mark.parametrize("marked", [True, False])
def test_of_counts_in_several_files_a_day_one_that_comes_late_is_no_zeros(empty, one_plan, marked):
    write_rows(empty / "files", "%Y-%m-%d/part-%p.csv", "time,zone,visits", days=[date(2024, 1, 15)])
    if marked:
        (empty / "files/2024-01-15/_SUCCESS").touch()
    assert invoke("init", "files", "--yes").exit_code == 0
    assert ("missing_rows" in (empty / "optstream.toml").read_text()) == marked


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "take the usual answers with --yes, or give 6 by --answer KEY=ANSWER: step, zone, alpha"),
        (("--yes", "--answer", "unit=MW"), "--answer is KEY=ANSWER with one of step"),
        (("--yes", "--answer", "step=7min"), "the answer to step must divide a day, such as 30min or 1h"),
        (("--yes", "--answer", "alpha=0"), "the answer to alpha must be a number above 0, such as 10"),
        (("--yes", "--answer", "zone=Mars"), "the answer to zone must begin with an IANA name"),
        (
            ("--yes", "--answer", "zone=Europe/Paris, end"),
            "do not fit 'Europe/Paris, end': correct the answer",
        ),
        (("--yes", "--answer", "schedule=13:00"), "must be a clock time before 12:00 like 03:00"),
        (("--yes", "--column", "when=timestamp"), "--column is ROLE=COLUMN with one of timestamp, value"),
        (
            ("--yes", "--column", "value=mw"),
            "no column 'mw', which --column value names; it has 'timestamp', 'load_mw'",
        ),
    ],
)
def test_an_answer_that_is_none_is_refused_with_what_would_be_one(empty, words, message):
    SHAPES["usual Parquet, instants"].write(empty / "files", [FIRST])
    before = sorted(empty.rglob("*"))
    try:
        refused = invoke("init", "files", *words)
    except OptStreamError as error:
        said = str(error)
    else:
        assert refused.exit_code == 2
        said = " ".join(refused.output.replace("│", " ").split())
    assert message in said
    assert sorted(empty.rglob("*")) == before


LOADS = ("timestamp,kw,kwh", "{at},31337.625,1")
DAILY = ["2024-03-30.csv"]


@pytest.mark.parametrize(
    ("files", "lines", "message"),
    [
        ([], LOADS, "holds no file that is not hidden"),
        (["a.csv", *DAILY], LOADS, "whose paths do not all name a date in the same way"),
        ([*DAILY, "_delta_log/0.json"], LOADS, "has not every commit from the first on"),
        ([*DAILY, "metadata/v1.json"], LOADS, "is the log of a table"),
        (["2024-03-30.pdf"], LOADS, "ends in none of .parquet, .csv"),
        (DAILY, ["Horodatage,Lieu,Last [kWh]", "{at},a,31337"], "--column timestamp=COLUMN"),
        (DAILY, LOADS, "neither its path nor a column, of 'timestamp', 'kw', 'kwh', says which region"),
        (
            ["n/2024-03-30.csv", "s/2024-03-30.csv"],
            LOADS,
            "--column value=COLUMN which one is released: 'kw', ",
        ),
        (DAILY, ["timestamp,site_load_kw,temp", "{at},31337.625,7"], "nor a column, of 'timestamp'"),
        (DAILY, ["{at};A;31337,625"], "begins with a row and not with names of columns"),
        (
            DAILY,
            ["timestamp,meter_reading_kwh,meter_kwh,zone", "{at},31337.625,1,A"],
            "say by --column value=",
        ),
        (DAILY, ["M7,A,30-Mar-2024 01:00 AM,3.1337625e+04"], "begins with a row and not with names"),
        (DAILY, ["Name,J31337", "Account,1", "", "time,load_mw,temp", "{at},1,7"], "of 'time', 'load_mw'"),
    ],
)
def test_files_that_no_configuration_describes_are_named_with_a_remedy(empty, files, lines, message):
    """And a reading is taken for no name."""
    (empty / "files").mkdir()
    rows = [line.format(at=f"2024-03-30T{hour:02}:00") for hour in range(24) for line in lines[-1:]]
    for name in files:
        (empty / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (empty / "files" / name).write_text("\n".join([*lines[:-1], *rows]))
    with pytest.raises(OptStreamError) as refused:
        invoke("init", "files", "--yes")
    assert message in str(refused.value)
    assert "31337" not in str(refused.value)
    assert [one.name for one in empty.iterdir()] == ["files"]


def test_at_a_terminal_six_questions_are_asked_and_an_answer_counts(empty):
    """Return takes what stands in brackets; more leaves than a table is read with stand in a file."""
    shape = Shape("date=%Y-%m-%d/{}.parquet", {"timestamp": "stamp", "load_mw": "value"}, "utc instants")
    shape.write(empty / "files", [FIRST])
    for number in range(16):
        (empty / f"files/date={FIRST}/r{number}.parquet").write_bytes(
            (empty / f"files/date={FIRST}/north.parquet").read_bytes()
        )
    ours, theirs = os.openpty()
    code = "from flows.cli.main import main; from tasks.plan import advise; "
    code += "advise.mechanism_choices = advise.share_choices = lambda _: (); main()"
    program = [sys.executable, "-c", code, "init", "files"]
    at = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        program, env=at, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as asked:
        os.write(ours, b"\n\n8\n\n\n02:30\n")
        said = asked.communicate(timeout=300)[0]
    assert asked.returncode == 0, said
    assert said.count("]: ") == 6
    text = (empty / "optstream.toml").read_text()
    assert 'alpha = "8"' in text
    assert 'cron = "30 2 * * *"' in text
    assert 'hierarchy.file = "hierarchy.csv"' in text
    assert len(load_settings(empty / "optstream.toml").tree_of(FIRST).leaves) == 18


@pytest.mark.usefixtures("one_plan")
def test_columns_of_any_names_are_those_that_a_person_says(empty):
    write_rows(empty / "files", head="Horodatage,Lieu,Last [kWh]")
    said = [f"--column={one}" for one in ("timestamp=Horodatage", "region=Lieu", "value=Last [kWh]")]
    assert invoke("init", "files", "--yes", *said).exit_code == 0
    settings = load_settings(empty / "optstream.toml")
    source = settings.input
    assert (source.timestamp, source.region, source.value) == ("Horodatage", "Lieu", "Last [kWh]")
    assert settings.published.value.endswith("_released")
    assert "begin each stream in a folder of its own" in " ".join(
        invoke("init", "files", "--yes").output.split()
    )


@pytest.mark.usefixtures("one_plan")
def test_a_delta_table_without_dates_in_its_names(empty):
    table, commits = empty / "table", []
    (table / "_delta_log").mkdir(parents=True)
    for number, value in enumerate((7.0, 3.0)):
        name = f"part-0000{number}-5f3a.snappy.parquet"
        at = [datetime(2024, 1, 15, tzinfo=UTC) + timedelta(hours=hour) for hour in range(72)]
        rows = pl.DataFrame({"timestamp": at * 2, "region": ["n"] * 72 + ["s"] * 72, "load_mw": value})
        rows.write_parquet(table / name)
        removed = [{"remove": {"path": commits[-1][0]}}] if commits else []
        commits.append((name, [*removed, {"add": {"path": name}}]))
    for number, (_, actions) in enumerate(commits):
        text = "\n".join(map(json.dumps, actions))
        (table / f"_delta_log/{number:020}.json").write_text(text)
    assert invoke("init", "table", "--yes", "--answer", "zone=UTC").exit_code == 0
    settings = load_settings(empty / "optstream.toml")
    assert settings.input.path == "*.snappy.parquet"
    day = date(2024, 1, 16)
    assert isinstance(judge(settings, day), PrivatePeriod)
    assert [one.name for own in discover(settings, [day])[day].files for one in own] == [commits[1][0]]


@pytest.mark.usefixtures("one_plan")
@pytest.mark.parametrize(
    ("name", "hour", "first"),
    [
        ("all.csv", 23, "2024-01-15"),
        ("all.csv", 0, "2024-01-16"),
        ("2024.csv", 23, "2024-01-15"),
        ("2024.csv", 0, "2024-01-16"),
    ],
)
def test_the_first_day_of_files_of_many_days_is_a_whole_one_of_the_zone(empty, hour, first, name):
    at = datetime(2024, 1, 14 + (hour < 23), hour, tzinfo=UTC)
    rows = [f"{at + timedelta(hours=n):%Y-%m-%dT%H:%MZ},{zone},1" for n in range(96) for zone in ("n", "s")]
    (empty / "files").mkdir()
    (empty / "files" / name).write_text("\n".join(["time,zone,load_mw", *rows]))
    said = invoke("init", "files", "--yes", "--answer", "zone=Europe/Paris").output
    assert f"next: optstream run --date {first}" in said
    assert f"first_day = {first}" in (empty / "optstream.toml").read_text()


@pytest.mark.usefixtures("one_plan")
@pytest.mark.parametrize("of", ["customer", "about"])
def test_ends_by_the_wall_clock_are_foreseen_to_be_refused_where_rows_may_be_absent(empty, of):
    """A customer's row, or one of a count of 0."""
    value = {"customer_id": "customer", "energy_kwh": "value"} if of == "customer" else {"trips": of}
    shape = Shape("{}/%Y-%m-%d.csv", {"interval_end": "stamp", **value}, by_end=True)
    shape.write(empty / "files", [date(2024, 1, 15), date(2024, 1, 16)])
    said = " ".join(invoke("init", "files", "--yes", "--answer", "zone=Europe/Paris").output.split())
    assert "2024-03-31 will be refused if it is delivered as the days before" in said
    assert 'and say so in [[input.changes]] with stamps = "start"' in said


@pytest.mark.usefixtures("one_plan")
def test_days_that_may_be_months_are_not_guessed(empty):
    written, days = "{at:%d/%m/%Y %H:%M},{r},5", [date(2024, 1, 5), date(2024, 1, 6)]
    write_rows(empty / "files", "%Y.csv", "timestamp,zone,load_mw", written, days)
    with pytest.raises(OptStreamError, match="stamps_format = '%d/%m/%Y %H:%M' or '%m/%d/%Y %H:%M'"):
        invoke("init", "files", "--yes")
    assert not (empty / "optstream.toml").exists()
    days = [*days, date(2024, 1, 13)]
    write_rows(empty / "files", "%Y.csv", "timestamp,zone,load_mw", written, days)
    assert invoke("init", "files", "--yes", "--answer", "zone=UTC").exit_code == 0
    assert 'stamps_format = "%d/%m/%Y %H:%M"' in (empty / "optstream.toml").read_text()


@pytest.mark.usefixtures("one_plan")
def test_one_reading_does_not_decide_the_decimal_sign(empty):
    texts = set()
    for folder, odd in (("a", "31337"), ("b", "31337,5")):
        (empty / folder / "files").mkdir(parents=True)
        rows = [f"2024-03-30T{hour:02}:00;A;{odd if hour == 5 else 7}" for hour in range(24)]
        (empty / folder / "files/2024-03-30.csv").write_text("\n".join(["timestamp;region;load_mw", *rows]))
        with contextlib.chdir(empty / folder):
            assert invoke("init", "files", "--yes").exit_code == 0
            texts.add(Path("optstream.toml").read_text())
    assert len(texts) == 1

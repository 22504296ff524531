"""`init`, of a folder's files and of an example, `simulate` and `advise` as their users meet them."""

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

from optstream import read_published
from optstream.errors import ConfigurationError, ContractError, DumpError, OptStreamError
from optstream.mechanisms import mechanism_named
from optstream.stream import PrivatePeriod
from tasks.config import Settings, load_settings
from tasks.config.schema import MECHANISMS
from tasks.ingest import discover, ingest
from tasks.ingest.validate import validate
from tasks.operate.simulate import simulate
from tasks.plan import advise
from tests.by_night import few
from tests.failing import death_at
from tests.flows.command import invoke
from tests.tasks.config.test_refusals import TEMPLATES
from tests.tasks.ingest.test_yearly_files import lines_of, write
from tests.tasks.operate.test_survey import write as write_rows
from tests.tasks.two_regions import CONFIGURATION

pytestmark = pytest.mark.slow

ODD = "31337.625"
"""Of a reading: no output and no file that `init` writes may hold it."""
FIRST, SPRING = date(2024, 3, 30), date(2024, 3, 31)
PARIS = ZoneInfo("Europe/Paris")
LOADS = ("timestamp,kw,kwh", "{at},31337.625,1")
DAILY = ["2024-03-30.csv"]
BY_DAY = ("HistoryInformed", (True, False), False)
BY_NIGHT = [
    (name, template, hourly)
    for name, template in product(MECHANISMS, TEMPLATES)
    for hourly in (False, True)[: 1 + mechanism_named(name).serves_hours]
    if (name, template, hourly) != BY_DAY
]


@dataclass(frozen=True)
class Shape:
    """Files as somebody writes them. row: by `str.format` of at, in UTC, wall, region, value and comma."""

    path: str
    head: str
    row: str
    by_end: bool = False
    minutes: int = 60
    answers: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    marked: bool = True

    def write(self, folder: Path, days: list[date]) -> None:
        files: dict[Path, list[str]] = {}
        length = timedelta(minutes=self.minutes)
        for day, region in product(days, ("north", "south")):
            both = (datetime.combine(one, time(), PARIS) for one in (day, day + timedelta(days=1)))
            begins, ends = (one.astimezone(UTC) for one in both)
            for step in range((ends - begins) // length):
                if "trips" in self.head and (region, step) == ("south", 5):
                    continue  # none, which such files leave out
                at, value = begins + (step + self.by_end) * length, ODD if step == 3 else f"{100 + step}.0"
                given = {"region": region, "value": value, "comma": value.replace(".", ",")}
                line = self.row.format(at=at, wall=at.astimezone(PARIS), **given)
                files.setdefault(folder / day.strftime(self.path.format(region)), [self.head]).append(line)
        for file, lines in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            content = "\n".join(lines).encode()
            if file.suffix == ".parquet":
                instants = pl.col("timestamp").str.to_datetime(time_zone="UTC")
                pl.read_csv(content).with_columns(instants).write_parquet(file)
            else:
                file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
            os.utime(file, (0, 0))
        if self.marked:
            (folder / "_SUCCESS").touch()


COUNTS = ("counts = true", 'missing_rows = "zero"')
METERED = ('stamps = "end"', 'revision = "revision"', 'schema = "metered"', 'marker = ""')
PLAIN, INSTANTS = "usual Parquet, instants", ("timestamp,load_mw", "{at:%FT%TZ},{value}")
RUN = "a table a day of wall clock"
"""The shape that is planned among all mechanisms and released; the days of the others are read and judged."""
SHAPES = {
    PLAIN: Shape("region={}/date=%Y-%m-%d/part-0.parquet", *INSTANTS),
    RUN: Shape(
        "load_%Y%m%d.csv",
        "pickup_time,zone,trips",
        "{wall:%F %T},{region},1",
        answers=("zone=Europe/Paris",),
        expected=('path = "load_{date:%Y%m%d}.csv"', 'region = "zone"', 'day = "fixed"', *COUNTS),
    ),
    "meters, ends of steps in UTC": Shape(
        "feeder-{}/%Y-%m-%d.csv.gz",
        "customer_id,reading_end,energy_kwh,revision",
        "customer of {region},{at:%FT%TZ},{value},1",
        by_end=True,
        minutes=30,
        expected=('path = "{region}/{date:%Y-%m-%d}.csv.gz"', '"feeder-north" = "all"', *METERED),
        marked=False,
    ),
    "a year of an operator": Shape(
        "load_{}_%Y.csv",
        "Date;Heures;Consommation;Nature",
        "{wall:%F};{wall:%H:%M};{comma};1",
        minutes=30,
        answers=("zone=Europe/Paris",),
        expected=('path = "load_{region}_{date:%Y}.csv"', 'timestamp = ["Date", "Heures"]', 'decimal = ","'),
    ),
}


def judge(settings: Settings, day: date) -> PrivatePeriod | ContractError:
    """A day's dump, held against its contract: after that every release is the same."""
    (judged,) = validate(settings, ingest(settings, [discover(settings, [day])[day]]), now=datetime.now(UTC))
    return judged


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
        (("--yes", "--answer", "zone=Europe/Paris, end"), "not fit 'Europe/Paris, end': correct the answer"),
        (("--yes", "--answer", "schedule=13:00"), "must be a clock time before 12:00 like 03:00"),
        (("--yes", "--column", "when=timestamp"), "--column is ROLE=COLUMN with one of timestamp, value"),
        (("--yes", "--column", "value=mw"), "which --column value names; it has 'timestamp', 'load_mw'"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_what_would_be_one(empty, words, message):
    SHAPES[PLAIN].write(empty / "files", [FIRST])
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
        (["n/2024-03-30.csv", "s/2024-03-30.csv"], LOADS, "value=COLUMN which one is released: 'kw', "),
        (DAILY, ["timestamp,site_load_kw,temp", "{at},31337.625,7"], "nor a column, of 'timestamp'"),
        (DAILY, ["{at};A;31337,625"], "begins with a row and not with names of columns"),
        (DAILY, ["timestamp,meter_reading_kwh,meter_kwh,zone", "{at},31337.625,1,A"], "by --column value="),
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
    Shape("date=%Y-%m-%d/{}.parquet", *INSTANTS).write(empty / "files", [FIRST])
    north = empty / f"files/date={FIRST}/north.parquet"
    for number in range(16):
        north.with_name(f"r{number}.parquet").write_bytes(north.read_bytes())
    ours, theirs = os.openpty()
    code = "from flows.cli.main import main; from tasks.plan import advise; "
    code += "advise.mechanism_choices = advise.share_choices = lambda _: (); main()"
    program = [sys.executable, "-c", code, "init", "files"]
    at = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    shown = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(program, env=at, **shown) as asked:
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
    again = " ".join(invoke("init", "files", "--yes").output.split())
    assert "begin each stream in a folder of its own" in again


@pytest.mark.usefixtures("one_plan")
def test_a_delta_table_without_dates_in_its_names(empty):
    table = empty / "table"
    (table / "_delta_log").mkdir(parents=True)
    at = [datetime(2024, 1, 15, tzinfo=UTC) + timedelta(hours=hour) for hour in range(72)]
    rows = pl.DataFrame({"timestamp": at * 2, "region": ["n"] * 72 + ["s"] * 72})
    first, second = (f"part-0000{number}-5f3a.snappy.parquet" for number in (0, 1))
    commits = [[{"add": {"path": first}}], [{"remove": {"path": first}}, {"add": {"path": second}}]]
    for number, (name, actions) in enumerate(zip((first, second), commits, strict=True)):
        rows.with_columns(load_mw=7.0 - number).write_parquet(table / name)
        (table / f"_delta_log/{number:020}.json").write_text("\n".join(map(json.dumps, actions)))
    assert invoke("init", "table", "--yes", "--answer", "zone=UTC").exit_code == 0
    settings = load_settings(empty / "optstream.toml")
    assert settings.input.path == "*.snappy.parquet"
    day = date(2024, 1, 16)
    assert isinstance(judge(settings, day), PrivatePeriod)
    assert [one.name for own in discover(settings, [day])[day].files for one in own] == [second]


@pytest.mark.usefixtures("one_plan")
@pytest.mark.parametrize("name", ["all.csv", "2024.csv"])
@pytest.mark.parametrize(("hour", "first"), [(23, "2024-01-15"), (0, "2024-01-16")])
def test_the_first_day_of_files_of_many_days_is_a_whole_one_of_the_zone(empty, hour, first, name):
    at = datetime(2024, 1, 14 + (hour < 23), hour, tzinfo=UTC)
    rows = [f"{at + timedelta(hours=n):%Y-%m-%dT%H:%MZ},{zone},1" for n in range(96) for zone in ("n", "s")]
    (empty / "files").mkdir()
    (empty / "files" / name).write_text("\n".join(["time,zone,load_mw", *rows]))
    said = invoke("init", "files", "--yes", "--answer", "zone=Europe/Paris").output
    assert f"next: optstream run --date {first}" in said
    assert f"first_day = {first}" in (empty / "optstream.toml").read_text()


@pytest.mark.usefixtures("one_plan")
@pytest.mark.parametrize(("columns", "cells"), [("customer_id,energy_kwh", "one,{value}"), ("trips", "1")])
def test_ends_by_the_wall_clock_are_foreseen_to_be_refused_where_rows_may_be_absent(empty, columns, cells):
    """A customer's row, or one of a count of 0."""
    shape = Shape("{}/%Y-%m-%d.csv", f"interval_end,{columns}", f"{{wall:%F %T}},{cells}", by_end=True)
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


@pytest.mark.parametrize("name", ["c.xlsx", "c", "deeper/c.xls", "eCO2mix_RTE_Annuel-Definitif_2016.xls"])
def test_no_file_is_passed_over(empty, name):
    for region in ("Bretagne", "PACA"):
        write(empty / "rte", region, lines_of("PACA"), "xls")
    (empty / "rte" / name).parent.mkdir(exist_ok=True)
    (empty / "rte" / name).write_text("\n".join(lines_of("PACA")))
    with pytest.raises(DumpError, match="move"):
        invoke("init", "rte", "--yes")
    assert not (empty / "optstream.toml").exists()


def test_simulate_writes_each_day_in_its_layout(installation):
    change = '[[input.changes]]\nvalid_from = 2016-02-02\nvalue = "gw"\nfactor = "1000"\nmarker = "DONE"\n'
    installation.configure("[published]", f"{change}[published]")
    assert invoke("simulate", "--from", "2016-02-01", "--to", "2016-02-02").exit_code == 0
    for day, column, marker in (("2016-02-01", "load_mw", "_SUCCESS"), ("2016-02-02", "gw", "DONE")):
        folder = installation.folder / f"dumps/region=84/date={day}"
        rows = pl.read_parquet(folder / "part-0.parquet")
        assert rows.columns == ["timestamp", column]
        assert (folder / marker).exists()
    assert 1 < rows["gw"].mean() < 20


def test_a_dump_is_whole_or_absent_and_one_without_its_marker_is_completed(installation):
    settings, first, second = installation.settings, date(2016, 2, 1), date(2016, 2, 2)
    folder = settings.input_folder / f"region=84/date={first}"
    with death_at(Path, "rename", error=KeyboardInterrupt):
        simulate(settings, [first])
    assert list(folder.parent.iterdir()) == []
    for is_new in (True, False):
        assert simulate(settings, [first]) == [True, is_new]
        assert sorted(path.name for path in folder.iterdir()) == ["_SUCCESS", "part-0.parquet"]
        (folder / "_SUCCESS").unlink()
    assert simulate(settings, [first, second])[:2] == [True, False], "the same in any range"


@pytest.mark.parametrize("kind", few([BY_DAY, *BY_NIGHT], 1), ids=lambda one: one[0])
def test_every_example_runs_by_the_command_line(empty, kind):
    name, (counts, metered), hourly = kind
    given = ["--mechanism", name, *["--counts"] * counts, *["--metered"] * metered, *["--hourly"] * hourly]
    commands = [("init", *given), ("simulate", "--from", "2016-02-01", "--to", "2016-02-02")]
    commands += [("run", "--date", "2016-02-01", "--dry-run")]
    days = ["2016-02-01", "2016-02-02"][: 1 if hourly else 2]  # of hours one day is long enough
    commands += [("run", "--date", day) for day in days]
    commands += [("verify-published", "published"), ("ledger", "verify"), ("doctor",)]
    with temporary_settings({PREFECT_API_URL: None}):
        for command in commands:
            shown = invoke(*command)
            assert shown.exit_code == 0, (command, shown.output)
    if counts and not (metered or hourly):
        dump = pl.read_parquet("dumps/region=84/date=2016-02-01/part-0.parquet", hive_partitioning=False)
        assert dump.columns == ["timestamp", "visits"]
        assert dump["visits"].round().equals(dump["visits"])
        assert dump["visits"].sum() > 0
    rows = read_published("published")
    assert rows["date"].n_unique() == len(days)
    assert rows["level"].max() == 1
    assert ("visits_low" in rows.columns) == (counts and name == "HistoryInformed")


def test_hours_around_a_day_without_whole_hours_are_released(empty):
    invoke("init", "--mechanism", "PeGaSus", "--hourly")
    file = Path("optstream.toml")
    file.write_text(file.read_text().replace("Europe/Paris", "America/Caracas"))
    invoke("simulate", "--from", "2007-12-08", "--to", "2007-12-10")
    with temporary_settings({PREFECT_API_URL: None}):
        for hour in ("2007-12-08T23", "2007-12-10T00"):
            assert invoke("run", "--date", hour).exit_code == 0
        refused = invoke("run", "--date", "2007-12-09T03")
    assert refused.exit_code == 2
    assert "2007-12-09 in America/Caracas is not a whole number of clock hours" in refused.output
    span = ("--from", "2007-12-08", "--to", "2007-12-10")
    assert "46 hours to release" in " ".join(invoke("backfill", *span, "--dry-run").output.split())
    found = json.loads(invoke("status", "--json").output)
    assert {hour["date"][:10] for hour in found["days"]} == {"2007-12-08", "2007-12-10"}


COARSE = CONFIGURATION.replace('step = "30min"', 'step = "1h"').replace("window = 48", "window = 24")
COARSE = COARSE.replace('alpha = "1"', 'alpha = "100"  # kW of the largest customer')

WATCHED = """
import sys
from itertools import product
from pathlib import Path
places = [str(Path.cwd() / name) for name in ("dumps", "trusted", "published")]

def look(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir", "sqlite3.connect"):
        if any(str(arguments[0]).startswith(place) for place in places):
            raise AssertionError(f"{event} {arguments[0]}")

sys.addaudithook(look)
from tasks.plan import advise
advise.mechanism_choices = advise.share_choices = lambda _: ()  # seconds of other plans
from flows.cli.main import app
app(["advise", "--config", str(Path.cwd() / "optstream.toml"), "--scale", "5000"], standalone_mode=False)
try:
    open(Path.cwd() / "dumps" / "region=84")
except AssertionError:
    print("the watch works")
"""


@pytest.mark.parametrize("there", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_no_folder_is_opened_and_no_ledger(tmp_path, there):
    if there:
        (tmp_path / "dumps" / "region=84").mkdir(parents=True)
        (tmp_path / "trusted").mkdir()
    (tmp_path / "optstream.toml").write_text(COARSE)
    ended = subprocess.run([sys.executable, "-c", WATCHED], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "least expected error first" in ended.stdout
    assert "the watch works" in ended.stdout
    assert sorted(one.name for one in (tmp_path / "trusted").glob("*")) == []


def test_a_proposal_is_written_and_accepted(tmp_path, monkeypatch):
    every = advise.mechanism_choices

    def of_one(settings):
        return [one for one in every(settings) if "HistoryInformed" in one.label]

    monkeypatch.setattr(advise, "mechanism_choices", of_one)  # others are simulated, for seconds
    file, proposed = tmp_path / "optstream.toml", tmp_path / "proposed.toml"
    file.write_text(COARSE)
    words = ("advise", "--config", str(file), "--scale", "5000", "--write", str(proposed))
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert all(one in result.stdout for one in ("best", "as configured", "is expected to err"))
    assert "# kW of the largest customer" in proposed.read_text()
    assert load_settings(proposed).mechanism.name == "HistoryInformed"
    priced = invoke("run", "--dry-run", "--date", "2025-01-15", "--config", str(proposed))
    assert priced.exit_code == 0, priced.output
    with pytest.raises(ConfigurationError, match="exists already"):
        invoke(*words)


def test_plans_are_compared_from_a_scale_of_public_knowledge(tmp_path):
    (tmp_path / "optstream.toml").write_text(COARSE)
    with pytest.raises(ConfigurationError, match="--scale, from public knowledge"):
        invoke("advise", "--config", str(tmp_path / "optstream.toml"))

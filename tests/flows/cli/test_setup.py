"""`init`, `simulate` and `advise` as their users meet them."""

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from optstream import read_published
from optstream.errors import ConfigurationError, DumpError
from optstream.mechanisms import mechanism_named
from tasks.config import load_settings
from tasks.config.schema import MECHANISMS
from tasks.plan import advise
from tests.by_night import few
from tests.flows.command import invoke
from tests.tasks.config.test_refusals import TEMPLATES
from tests.tasks.ingest.test_yearly_files import lines_of, write
from tests.tasks.two_regions import CONFIGURATION

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["c.xlsx", "c", "deeper/c.xls", "eCO2mix_RTE_Annuel-Definitif_2016.xls"])
def test_no_file_is_passed_over(empty, name):
    for region in ("Bretagne", "PACA"):
        write(empty / "rte", region, lines_of("PACA"), "xls")
    (empty / "rte" / name).parent.mkdir(exist_ok=True)
    (empty / "rte" / name).write_text("\n".join(lines_of("PACA")))
    with pytest.raises(DumpError, match="move"):
        invoke("init", "rte", "--yes")
    assert not (empty / "optstream.toml").exists()


def test_simulate_writes_each_day_in_its_layout(empty, tmp_path):
    invoke("init")
    file = tmp_path / "optstream.toml"
    change = '[[input.changes]]\nvalid_from = 2016-02-02\nvalue = "gw"\nfactor = "1000"\nmarker = "DONE"\n'
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("[published]", f"{change}[published]"), encoding="utf-8")
    shown = invoke("simulate", "--from", "2016-02-01", "--to", "2016-02-02")
    assert shown.exit_code == 0
    for day, column, marker in (("2016-02-01", "load_mw", "_SUCCESS"), ("2016-02-02", "gw", "DONE")):
        folder = tmp_path / f"dumps/region=84/date={day}"
        rows = pl.read_parquet(folder / "part-0.parquet")
        assert rows.columns == ["timestamp", column]
        assert (folder / marker).exists()
    assert 1 < rows["gw"].mean() < 20


BY_DAY = ("HistoryInformed", (True, False), False)
BY_NIGHT = [
    (name, template, hourly)
    for name, template in product(MECHANISMS, TEMPLATES)
    for hourly in (False, True)[: 1 + mechanism_named(name).serves_hours]
    if (name, template, hourly) != BY_DAY
]


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
    """With dumps that nobody may open, and with none at all; the same is said."""
    if there:
        (tmp_path / "dumps" / "region=84").mkdir(parents=True)
        (tmp_path / "trusted").mkdir()
    (tmp_path / "optstream.toml").write_text(COARSE)
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
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
    assert "best" in result.stdout
    assert "as configured" in result.stdout
    assert "is expected to err" in result.stdout
    text = proposed.read_text()
    assert "# kW of the largest customer" in text
    assert load_settings(proposed).mechanism.name == "HistoryInformed"
    priced = invoke("run", "--dry-run", "--date", "2025-01-15", "--config", str(proposed))
    assert priced.exit_code == 0, priced.output
    with pytest.raises(ConfigurationError, match="exists already"):
        invoke(*words)


def test_plans_are_compared_from_a_scale_of_public_knowledge(tmp_path):
    (tmp_path / "optstream.toml").write_text(COARSE)
    with pytest.raises(ConfigurationError, match="--scale, from public knowledge"):
        invoke("advise", "--config", str(tmp_path / "optstream.toml"))

"""`init` and `simulate` as their users meet them."""

import json
import os
from pathlib import Path

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from optstream import read_published
from optstream.errors import DumpError, OptStreamError, ParameterError
from tasks.config import load_settings
from tests.flows.command import invoke
from tests.tasks.config.test_refusals import KINDS, Kind

pytestmark = pytest.mark.slow

NAMES = "Périmètre\tNature\tDate\tHeures\tConsommation\tThermique"


def text(perimeter="Bretagne", loads=range(3000, 3048)):
    rows = [
        f"{perimeter}\tDonnées définitives\t2016-02-01\t{slot // 2:02}:{30 * (slot % 2):02}\t{load}\t-"
        for slot, load in enumerate(loads)
    ]
    return "\n".join([NAMES, *rows, "RTE ne pourra être tenu responsable."]).encode("latin-1")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte/a.xls").write_bytes(text())
    (tmp_path / "rte/b.xls").write_bytes(text("PACA", [*range(3000, 3047), "ND"]))
    return tmp_path


def test_files_of_rte_become_dumps_and_a_configuration_that_reads_them(here):
    shown = invoke("init", "rte")
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert lines[:3] == ["read a.xls", "read b.xls", "write the dumps"]
    assert "2 files, 2 regions: 2 dumps written" in lines[3]
    assert "1 of them incomplete" in lines[3]
    assert sorted(path.name for path in (here / "dumps").iterdir()) == ["region=53", "region=93"]
    settings = load_settings(here / "optstream.toml")
    assert settings.input_folder == here / "dumps"
    assert settings.calendar.day == "fixed"
    (here / "optstream.toml").unlink()
    assert "0 dumps written" in invoke("init", "rte").output


def test_nothing_is_written_if_one_file_is_refused(here):
    (here / "rte/b.xls").write_bytes(text("France"))
    with pytest.raises(DumpError, match=r"b\.xls: line 2: 'France' is none of the 12 regions"):
        invoke("init", "rte")
    assert not (here / "dumps").exists()
    assert not (here / "optstream.toml").exists()


def test_a_folder_of_other_files_is_refused(here):
    (here / "csv").mkdir()
    (here / "csv/load.csv").write_text("a,b\n")
    with pytest.raises(OptStreamError, match="csv holds none of RTE's yearly files"):
        invoke("init", "csv")


@pytest.mark.parametrize("name", ["c.xlsx", "c.csv", "c", "deeper/c.xls", "pipe.xls"])
def test_no_file_of_rte_is_passed_over(here, name):
    (here / "rte" / name).parent.mkdir(exist_ok=True)
    os.mkfifo(here / "rte" / name) if name == "pipe.xls" else (here / "rte" / name).write_bytes(text())
    with pytest.raises(OptStreamError, match="is none of RTE's yearly files"):
        invoke("init", "rte")
    assert not (here / "dumps").exists()


def test_simulate_writes_each_day_in_its_layout(here):
    invoke("init")
    file = here / "optstream.toml"
    change = '[[input.changes]]\nvalid_from = 2016-02-02\nvalue = "gw"\nfactor = "1000"\nmarker = "DONE"\n'
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("[published]", f"{change}[published]"), encoding="utf-8")
    shown = invoke("simulate", "--from", "2016-02-01", "--to", "2016-02-02")
    assert shown.exit_code == 0
    for day, column, marker in (("2016-02-01", "load_mw", "_SUCCESS"), ("2016-02-02", "gw", "DONE")):
        folder = here / f"dumps/region=84/date={day}"
        rows = pl.read_parquet(folder / "part-0.parquet")
        assert rows.columns == ["timestamp", column]
        assert (folder / marker).exists()
    assert 1 < rows["gw"].mean() < 20


@pytest.fixture
def in_its_folder(tmp_path, monkeypatch):
    """An empty folder that is current."""
    monkeypatch.chdir(tmp_path)


def test_a_kind_without_an_example_writes_nothing(in_its_folder, tmp_path):
    with pytest.raises(ParameterError, match="mechanism of the example must be"):
        invoke("init", "--mechanism", "Kalman")
    assert list(tmp_path.iterdir()) == []


def named(kind):
    """What a kind is, as a test is called by it."""
    words = [kind.mechanism, *["counts"] * kind.counts, *["metered"] * kind.metered]
    return "_".join([*words, *["hourly"] * kind.hourly])


BY_DAY = {Kind("HistoryInformed", counts=True), Kind("HistoryInformed", hourly=True)}


@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[pytest.mark.nightly] * (one not in BY_DAY)) for one in KINDS], ids=named
)
def test_every_example_runs_by_the_command_line(in_its_folder, kind):
    """Every mechanism, readings of loads and of counts, rows a step and rows a customer, from `init` on."""
    given = ["--mechanism", kind.mechanism]
    given += ["--counts"] * kind.counts + ["--metered"] * kind.metered + ["--hourly"] * kind.hourly
    commands = [("init", *given), ("simulate", "--from", "2016-02-01", "--to", "2016-02-02")]
    commands += [("run", "--date", "2016-02-01", "--dry-run")]
    commands += [("run", "--date", f"2016-02-0{day}") for day in (1, 2)]
    commands += [("verify-published", "published"), ("ledger", "verify"), ("doctor",)]
    with temporary_settings({PREFECT_API_URL: None}):
        for command in commands:
            shown = invoke(*command)
            assert shown.exit_code == 0, (command, shown.output)
    if kind.counts and not (kind.metered or kind.hourly):
        dump = pl.read_parquet("dumps/region=84/date=2016-02-01/part-0.parquet", hive_partitioning=False)
        assert dump.columns == ["timestamp", "visits"]
        assert dump["visits"].round().equals(dump["visits"])
        assert dump["visits"].sum() > 0
    rows = read_published("published")
    assert rows["date"].n_unique() == 2
    assert rows["level"].max() == 1
    assert ("visits_low" in rows.columns) == (kind.counts and kind.mechanism == "HistoryInformed")


def test_hours_around_a_day_without_whole_hours_are_released_and_watched(in_its_folder):
    invoke("init", "--mechanism", "PeGaSus", "--hourly")
    file = Path("optstream.toml")
    file.write_text(file.read_text().replace("Europe/Paris", "America/Caracas"))
    invoke("simulate", "--from", "2007-12-08", "--to", "2007-12-10")
    with temporary_settings({PREFECT_API_URL: None}):
        assert invoke("run", "--date", "2007-12-08T23").exit_code == 0
        refused = invoke("run", "--date", "2007-12-09T03")
        assert refused.exit_code == 2
        assert "2007-12-09 in America/Caracas is not a whole number of clock hours" in refused.output
        done = invoke("backfill", "--from", "2007-12-08", "--to", "2007-12-10")
        assert done.exit_code == 0
        assert "47 published" in " ".join(done.output.split())
        found = json.loads(invoke("status", "--json").output)
        assert len(found["days"]) == 48
        assert [alarm["kind"] for alarm in found["alarms"]] == []

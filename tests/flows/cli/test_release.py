"""`optstream run`: dry runs, runs of several streams, and runs that Ctrl-C ended."""

import json
from datetime import date
from fractions import Fraction

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.cli import release as run_days
from optstream.ledger import open_ledger
from tests.by_night import few
from tests.failing import raising
from tests.flows.command import invoke
from tests.tasks.two_regions import two_products

pytestmark = pytest.mark.slow

DRY = ("run", "--date", "2016-02-01", "--dry-run")
DAY = date(2016, 6, 1)
RUN = ("run", "--date", str(DAY))


def test_a_dry_run_needs_no_dump_and_spends_nothing(installation):
    here, settings = installation.folder, installation.settings
    before = sorted(here.rglob("*"))
    shown, written = invoke(*DRY, "--date", "2016-03-27"), invoke(*DRY, "--date", "2016-03-27", "--json")
    assert (shown.exit_code, written.exit_code, "it fits" in shown.output) == (0, 0, True)
    assert max(map(len, shown.output.splitlines())) <= 80
    assert "\x1b" not in shown.output
    document = json.loads(written.output)
    assert [period["n_steps"] for period in document["periods"]] == [48, 46]
    assert document["fits"] is True
    assert sorted(here.rglob("*")) == before
    settings.trusted_folder.mkdir()
    open_ledger(settings.ledger_url).close()
    file = here / "trusted/ledger.sqlite"
    ledger, before = file.read_bytes(), sorted(here.rglob("*"))
    assert invoke(*DRY).exit_code == 0
    assert file.read_bytes() == ledger
    assert sorted(here.rglob("*")) == before


@pytest.fixture
def products(tmp_path, monkeypatch):
    """Electricity and gas, with dumps of one day; the present folder is that of their population's file."""
    monkeypatch.chdir(tmp_path)
    both = two_products(tmp_path)
    for one in both.values():
        one.simulate(DAY)
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield both


def test_products_of_one_epsilon_are_shown_side_by_side(products):
    shown = " ".join(invoke(*DRY, "--config", "population.toml").output.split())
    said = ("electricity 1/2", "gas 1/2", "by these plans together, and may lose 1: they fit")
    assert [one for one in said if one not in shown] == []
    (budget,) = json.loads(invoke(*DRY, "--config", "population.toml", "--json").output)["populations"]
    plans = [Fraction(one["plan"]["epsilon"]) for one in budget["streams"]]
    assert sum(plans) == Fraction(budget["plans"]) <= 1
    assert [states(one) for one in products.values()] == [[], []]


def states(one):
    return [record.state.value for record in one.ledger.outlines(one.settings.stream.name)]


def test_one_run_releases_all_streams_of_a_population(products):
    result = invoke(*RUN, "--config", "population.toml")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-2:] == ["electricity: 1 published", "gas: 1 published"]
    assert [states(one) for one in products.values()] == [["PUBLISHED"]] * 2
    charged = products["gas"].ledger.worst("people").epsilon
    assert 0.99 < charged <= 1
    status = invoke("status", "--config", "population.toml", "--json")
    assert [one["stream"] for one in json.loads(status.output)["streams"]] == ["electricity", "gas"]
    for words in (("ledger", "verify"), ("report",), ("backfill", "--from", str(DAY), "--to", str(DAY))):
        result = invoke(*words, "--config", "population.toml")
        assert result.exit_code == 0, result.output
    assert products["gas"].ledger.worst("people").epsilon == charged, "nothing more was spent"


@pytest.mark.parametrize("broken", few(["electricity", "gas"], 1))
def test_a_stream_that_fails_stops_no_other(products, broken):
    """Its configuration, then its day: the others are released, and the exit code says that one is left."""
    (other,) = set(products) - {broken}
    products[broken].configure('method = "equally_spaced"', 'method = "none"')
    result = invoke(*RUN, "--config", "population.toml")
    assert result.exit_code == 1
    assert f"{other}: 1 published" in result.output
    assert f"{broken}/optstream.toml: error: the configuration" in result.output
    assert states(products[other]) == ["PUBLISHED"]
    products[broken].configure('method = "none"', 'method = "equally_spaced"')
    products[broken].configure('"1/2"\nlevels', '"3/4"\nlevels')
    result = invoke(*RUN, "--config", "population.toml")
    assert result.exit_code == 1
    assert f"{broken}: 1 refused" in result.output
    assert f"{other}: 1 published already" in result.output
    for one in products.values():
        one.configure('method = "equally_spaced"', 'method = "none"')
    assert invoke(*RUN, "--config", "population.toml").exit_code == 2, "no stream can begin"


def test_ctrl_c_in_a_run_names_the_command_that_goes_on(installation, monkeypatch):
    installation.simulate(DAY)
    monkeypatch.setattr(run_days, "connect", raising(KeyboardInterrupt))
    shown = invoke(*RUN)
    assert shown.exit_code == 130
    assert "optstream run --date 2016-06-01" in shown.stderr


def test_a_first_release_names_the_day_that_stops_and_the_key_that_makes_it_whole(installation):
    """Hours by the wall clock: the remedy that is named before anything is released works."""
    installation.configure('step = "30min"', 'step = "1h"\nday = "elapsed"')
    installation.configure("window = 48", "window = 24")
    installation.simulate(date(2016, 3, 26), date(2016, 3, 27))
    local = pl.col("timestamp").dt.convert_time_zone("Europe/Paris").dt.replace_time_zone(None)
    for path in installation.folder.rglob("*.parquet"):
        pl.read_parquet(path, hive_partitioning=False).with_columns(local).write_parquet(path)
    days, said = ("--date", "2016-03-26", "--date", "2016-03-27"), "2016-03-27 will be refused if"
    with temporary_settings({PREFECT_API_URL: None}):
        assert said in " ".join(invoke("run", *days, "--dry-run").output.split())
        stopped = invoke("run", "--date", "2016-03-27")
        assert stopped.exit_code == 1
        assert f"ATTENTION {said}" in stopped.output
        assert 'set [stream] day = "fixed"' in " ".join(stopped.output.split())
        installation.configure('day = "elapsed"', 'day = "fixed"')
        whole = invoke("run", *days)
    assert whole.exit_code == 0, whole.output
    assert "ATTENTION" not in whole.output

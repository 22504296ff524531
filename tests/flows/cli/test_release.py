"""`optstream run`: dry runs, runs of several streams, and runs that Ctrl-C ended."""

import json
import re
from datetime import date
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
import typer
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.cli import release as run_days
from flows.cli.release import report_interruption, with_config
from optstream.errors import ConfigurationError
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tests.failing import raising
from tests.flows.command import invoke
from tests.tasks.products import POPULATION, SAID_THERE, two_products
from tests.tasks.two_regions import CONFIGURATION, STEPS

pytestmark = pytest.mark.slow

DRY = ("run", "--date", "2016-02-01", "--dry-run")
TOGETHER = (*DRY, "--config", "population.toml")


def change(here, old, new):
    file = here / "optstream.toml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def lines_of(result):
    """Its lines without the spaces of tables, of which none is too wide."""
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "\x1b" not in result.output
    return [" ".join(line.split()) for line in result.output.splitlines()]


def test_a_dry_run_prints_prices_bands_and_the_verdict_for_people(here, whole_spans):
    lines = lines_of(invoke(*DRY))
    for line in (
        "french-load: a dry run; no reading is read, nothing is drawn or charged",
        "0 samples answers 0.25 400 565.685",
        "1 feature day answers 0.125 3840 5430.58",
        "1 all, in any window 0.5",
        "all this day alone 1",
        "1 12 403.69 301.231 532.133",
        "any 48 steps lose at most epsilon 1 by this plan, and may lose 1: it fits",
        "budget.restatement_share is 0: no day can be measured again",
    ):
        assert line in lines
    assert any(line.startswith("a customer's 365 days: epsilon up to 3") for line in lines)
    change(here, 'restatement_share = "0"', 'restatement_share = "1/10"')
    kept = "first releases have 9/10, restatements 1/10 of it: budget.restatement_share"
    assert kept in lines_of(invoke(*DRY))


def test_a_dry_run_prints_errors_next_to_sizes_and_names_as_good_as_nothing(here):
    """HistoryInformed over regions that are publicly taken for 0.1 MW: an alpha of 10 hides them."""
    text = (here / "optstream.toml").read_text()
    text = re.sub(r"\[mechanism\].*\n(.+\n)+", '[mechanism]\nname = "HistoryInformed"\nscale = 0.1\n', text)
    for table in ("sampling", "features"):
        text = re.sub(rf"\[{table}\].*\n(.+\n)+", "", text)
    (here / "optstream.toml").write_text(text)
    shown = " ".join(lines_of(invoke(*DRY)))
    assert "expected error of a published value, next to the typical size of its node" in shown
    assert "level nodes error typical size" in shown
    assert re.search(r"level 1: error [\d.]+ at a typical 0.1: as good as nothing; give it", shown)


def test_a_dry_run_prints_one_document_for_machines(here):
    document = json.loads(invoke(*DRY, "--date", "2016-03-27", "--json").output)
    assert document["format"] == "optstream.dry-run/2"
    assert [period["n_steps"] for period in document["periods"]] == [48, 46]
    assert document["fits"] is True


def test_a_dry_run_needs_no_dump_and_spends_nothing(here):
    before = sorted(here.rglob("*"))
    assert invoke(*DRY).exit_code == 0
    assert sorted(here.rglob("*")) == before
    settings = load_settings(here / "optstream.toml")
    settings.trusted_folder.mkdir()
    open_ledger(settings.ledger_url).close()
    file = here / "trusted/ledger.sqlite"
    ledger, before = file.read_bytes(), sorted(here.rglob("*"))
    assert invoke(*DRY).exit_code == 0
    assert file.read_bytes() == ledger
    assert sorted(here.rglob("*")) == before


def test_a_dry_run_of_points_that_the_draw_chooses(here):
    change(here, '# threshold = "500"', 'threshold = "-1"')
    with pytest.raises(ConfigurationError):
        invoke(*DRY)
    change(here, 'threshold = "-1"', 'threshold = "500"')
    assert "the draw chooses the points" in " ".join(lines_of(invoke(*DRY)))


ALPHAS = {"electricity": "1", "gas": "3", "heat": "2", "water": "0.1"}
SAMPLING = '[sampling]\nmethod = "equally_spaced"\nn_samples = 10\n'
INFORMED = '[mechanism]\nname = "HistoryInformed"\nscale = 2000\n'


@pytest.fixture
def four(tmp_path, monkeypatch):
    """Four products, a quarter of epsilon each; gas and heat by HistoryInformed, water of much less."""
    monkeypatch.chdir(tmp_path)
    listed = ", ".join(f'"{name}.toml"' for name in ALPHAS)
    text = re.sub(r"streams = \[.*\]", f"streams = [{listed}]", POPULATION)
    (tmp_path / "population.toml").write_text(text)
    for name, alpha in ALPHAS.items():
        text = CONFIGURATION.replace("two-regions", name).replace('"trusted"', f'"trusted/{name}"')
        for said in SAID_THERE:
            text = text.replace(said, "")
        text = text.replace("[privacy]", '[privacy]\npopulation_file = "population.toml"')
        text = text.replace('alpha = "1"', f'alpha = "{alpha}"')
        text = text.replace("[budget]", '[budget]\nstream_share = "1/4"')
        if name in ("gas", "heat"):
            text = text.replace('[mechanism]\nname = "OptStream"\n', INFORMED).replace(SAMPLING, "")
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def test_four_products_of_one_epsilon_are_shown_side_by_side(four):
    before = sorted(four.rglob("*"))
    lines = lines_of(invoke(*TOGETHER))
    rows = [line.split()[:2] for line in lines if re.match(r"(electricity|gas|heat|water) ", line)]
    assert rows == [[name, "1/4"] for name in ALPHAS]
    assert "by these plans together, and may lose 1: they fit" in " ".join(lines)
    (budget,) = json.loads(invoke(*TOGETHER, "--json").output)["populations"]
    plans = [Fraction(one["plan"]["epsilon"]) for one in budget["streams"]]
    assert sum(plans) == Fraction(budget["plans"]) <= 1
    errors = {one["stream"]: one["periods"][0]["levels"][1]["expected"]["error"] for one in budget["streams"]}
    # the same plan at a tenth of alpha errs a tenth; a prior that knows the day errs less than none
    assert errors["water"] == pytest.approx(errors["electricity"] / 10, rel=0.01)
    assert errors["heat"] < errors["gas"]
    assert sorted(four.rglob("*")) == before


DAY = date(2016, 6, 1)
RUN = ("run", "--date", str(DAY))


@pytest.fixture
def products(tmp_path, monkeypatch):
    """Electricity and gas, with dumps of one day; the present folder is that of their population's file."""
    monkeypatch.chdir(tmp_path)
    both = two_products(tmp_path)
    for one in both.values():
        one.simulate(DAY)
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield both


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


@pytest.mark.parametrize("broken", ["electricity", "gas"])
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


def test_if_no_stream_can_begin_the_exit_code_is_2(products):
    for one in products.values():
        one.configure('method = "equally_spaced"', 'method = "none"')
    assert invoke(*RUN, "--config", "population.toml").exit_code == 2


def test_a_stream_that_is_named_twice_is_refused_before_anything_is_done(products):
    folder = products["gas"].folder
    text = (folder / "optstream.toml").read_text()
    (folder / "copy.toml").write_text(text.replace('"../population.toml"', '"none.toml"'))
    (folder / "none.toml").write_text(POPULATION[POPULATION.index("[privacy]") :])
    result = invoke(*RUN, "--config", "gas/optstream.toml", "--config", "gas/copy.toml")
    assert result.exit_code == 2
    assert "are both of stream gas: name one" in result.output
    assert not (folder / "published").exists()


def test_what_ctrl_c_left_is_said_on_standard_error(installation, capsys):
    installation.simulate(DAY)
    installation.release(DAY, steps=STEPS[:6])
    interrupted = report_interruption(installation.settings, [DAY], "optstream run …")
    with pytest.raises(typer.Exit) as ended, interrupted:
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert "1 are under way and 0 were not begun" in (error := capsys.readouterr().err)
    assert "`optstream run …`" in error


def test_ctrl_c_in_a_run_names_the_command_that_goes_on(installation, monkeypatch):
    installation.simulate(DAY)
    monkeypatch.setattr(run_days, "connect", raising(KeyboardInterrupt))
    shown = invoke(*RUN)
    assert shown.exit_code == 130
    assert "optstream run --date 2016-06-01" in shown.stderr


def test_the_configuration_is_named_where_it_is_not_the_usual_one():
    usual, other = Path("optstream.toml"), Path("other.toml")
    assert with_config("optstream run", [other]) == "optstream run --config other.toml"
    assert with_config("optstream run", [usual]) == with_config("optstream run", None) == "optstream run"
    both = "optstream run --config optstream.toml --config other.toml"
    assert with_config("optstream run", [usual, other]) == both


def test_a_run_of_days_that_are_published_loads_no_orchestrator(installation, monkeypatch):
    installation.simulate(DAY)
    installation.released(DAY)
    installation.write_pages()
    monkeypatch.setattr(run_days, "connect", raising(AssertionError("Prefect was asked for")))
    shown = invoke(*RUN)
    assert shown.exit_code == 0, shown.output
    assert "published already" in shown.output


@pytest.mark.parametrize(("kind", "needed"), [("elapsed", "fixed"), ("fixed", "elapsed")])
def test_a_first_release_names_the_day_that_stops_and_the_key_that_it_names_makes_it_whole(
    here, kind, needed
):
    """Hours by the wall clock, or instants: what is said before anything is released is done, and works."""
    change(here, 'step = "30min"', 'step = "1h"')
    change(here, "window = 48 ", "window = 24 ")
    invoke("simulate", "--from", "2016-03-26", "--to", "2016-03-27")
    if kind == "fixed":
        change(here, 'day = "elapsed"', 'day = "fixed"')
    for path in here.rglob("*.parquet") if kind == "elapsed" else ():
        local = pl.col("timestamp").dt.convert_time_zone("Europe/Paris").dt.replace_time_zone(None)
        pl.read_parquet(path, hive_partitioning=False).with_columns(local).write_parquet(path)
    days, said = ("--date", "2016-03-26", "--date", "2016-03-27"), "2016-03-27 will be refused if"
    with temporary_settings({PREFECT_API_URL: None}):
        assert said in " ".join(invoke("run", *days, "--dry-run").output.split())
        stopped = invoke("run", "--date", "2016-03-27")
        assert stopped.exit_code == 1
        assert f"ATTENTION {said}" in stopped.output
        key = re.search(r'set \[stream\] (day = "\w+")', " ".join(stopped.output.split()))
        assert key[1] == f'day = "{needed}"'
        change(here, f'day = "{kind}"', key[1])
        whole = invoke("run", *days)
    assert whole.exit_code == 0, whole.output
    assert "ATTENTION" not in whole.output

"""Runs of several streams, and runs that Ctrl-C ended."""

import json
from datetime import date
from pathlib import Path

import pytest
import typer
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.cli import release as run_days
from flows.cli.release import report_interruption, with_config
from tests.failing import raising
from tests.flows.command import invoke
from tests.tasks.products import POPULATION, two_products
from tests.tasks.two_regions import CONFIGURATION, STEPS, Installation

pytestmark = pytest.mark.slow

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
    for one in products.values():
        assert states(one) == ["PUBLISHED"]
    charged = products["gas"].ledger.worst("people").epsilon
    assert 0.99 < charged <= 1
    status = invoke("status", "--config", "population.toml", "--json")
    document = json.loads(status.output)
    assert [one["stream"] for one in document["streams"]] == ["electricity", "gas"]
    for words in (("ledger", "verify"), ("report",), ("backfill", "--from", str(DAY), "--to", str(DAY))):
        result = invoke(*words, "--config", "population.toml")
        assert result.exit_code == 0, result.output
    # and nothing more was spent
    assert products["gas"].ledger.worst("people").epsilon == charged


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
    (products["gas"].folder / "copy.toml").write_text(
        (products["gas"].folder / "optstream.toml").read_text().replace('"../population.toml"', '"none.toml"')
    )
    (products["gas"].folder / "none.toml").write_text(POPULATION[POPULATION.index("[privacy]") :])
    words = ("--config", "gas/optstream.toml", "--config", "gas/copy.toml")
    result = invoke(*RUN, *words)
    assert result.exit_code == 2
    assert "are both of stream gas: name one" in result.output
    assert not (products["gas"].folder / "published").exists()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.simulate(DAY)
    return installation


def test_what_ctrl_c_left_is_said_on_standard_error(here, capsys):
    here.release(DAY, steps=STEPS[:6])
    with pytest.raises(typer.Exit) as ended, report_interruption(here.settings, [DAY], "optstream run …"):
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert "1 are under way and 0 were not begun" in (told := capsys.readouterr().err)
    assert "`optstream run …`" in told


def test_ctrl_c_in_a_run_names_the_command_that_goes_on(here, monkeypatch):
    monkeypatch.setattr(run_days, "connect", raising(KeyboardInterrupt))
    shown = invoke("run", "--date", str(DAY))
    assert shown.exit_code == 130
    assert "optstream run --date 2016-06-01" in shown.stderr


def test_the_configuration_is_named_where_it_is_not_the_usual_one():
    usual, other = Path("optstream.toml"), Path("other.toml")
    assert with_config("optstream run", [other]) == "optstream run --config other.toml"
    assert with_config("optstream run", [usual]) == with_config("optstream run", None) == "optstream run"
    both = "optstream run --config optstream.toml --config other.toml"
    assert with_config("optstream run", [usual, other]) == both


def test_a_run_of_days_that_are_published_loads_no_orchestrator(here, monkeypatch):
    here.released(DAY)
    here.write_pages()
    monkeypatch.setattr(run_days, "connect", raising(AssertionError("Prefect was asked for")))
    shown = invoke("run", "--date", str(DAY))
    assert shown.exit_code == 0, shown.output
    assert "published already" in shown.output

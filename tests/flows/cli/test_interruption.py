"""Ctrl-C on the command line says what was left; and a run with nothing to do loads no orchestrator."""

from datetime import date
from pathlib import Path

import pytest
import typer

from flows.cli import release as run_days
from flows.cli.release import told_if_interrupted, with_config
from tests.failing import raising
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION, STEPS, Installation

DAY = date(2016, 6, 1)

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.simulate(DAY)
    return installation


def test_what_ctrl_c_left_is_said_on_standard_error(here, capsys):
    here.release(DAY, steps=STEPS[:6])
    with pytest.raises(typer.Exit) as ended, told_if_interrupted(here.settings, [DAY], "optstream run …"):
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

"""`python -m studies evaluate` from the command line, on made-up series."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from optstream.errors import ParameterError
from studies.__main__ import app
from studies.commands.evaluate import chosen_experiments


def run(*arguments: str):
    return CliRunner().invoke(app, ["evaluate", "--data", "simulated", "--processes", "1", *arguments])


@pytest.mark.nightly
def test_a_short_run_writes_results_and_page(tmp_path):
    options = ["--into", str(tmp_path / "r"), "--only", "7", "--short", "--trials", "1"]
    result = run(*options, "--page", str(tmp_path / "page.md"))
    assert result.exit_code == 0, result.output
    assert "1 experiments" in result.output
    assert "findings do not hold in these results" in result.output
    frame = pl.read_parquet(tmp_path / "r" / "results.parquet")
    assert set(frame["span"]) == {"2016-02"}
    assert (tmp_path / "page.md").read_text().startswith("# Evaluation")
    again = run(*options, "--json")
    assert json.loads(again.stdout)["experiments"] == [7]


def test_choosing():
    assert [one.number for one in chosen_experiments([3, 9], False, None)] == [3, 9]
    assert len(chosen_experiments([], True, None)) == 12
    (one,) = chosen_experiments([1], False, 2)
    assert max(cell.trials[1] for cell in one.cells()) == 2


def test_a_page_of_private_results_is_refused_before_anything_runs(tmp_path):
    result = CliRunner().invoke(
        app,
        [
            "evaluate",
            "--data",
            str(tmp_path),
            "--into",
            str(tmp_path / "r"),
            "--page",
            str(tmp_path / "p.md"),
        ],
    )
    assert isinstance(result.exception, ParameterError)
    assert "--public" in str(result.exception)
    assert not (tmp_path / "r").exists()


def test_what_is_not_installed_is_said_first(tmp_path, monkeypatch):
    from studies.papers import run as task

    monkeypatch.setattr(task, "find_spec", lambda name: None)
    result = run("--into", str(tmp_path / "r"), "--only", "3", "--short")
    assert str(result.exception) == "statsmodels not installed: pip install 'optstream[studies]'"
    assert not (tmp_path / "r").exists()

"""`optstream evaluate` from the command line, on made-up series."""

import json

import polars as pl
from typer.testing import CliRunner

from flows.command_line import app
from flows.evaluate import chosen_experiments


def run(*arguments: str):
    return CliRunner().invoke(app, ["evaluate", "--data", "simulated", "--processes", "1", *arguments])


def test_a_short_run_writes_results_and_page(tmp_path):
    options = ["--into", str(tmp_path / "r"), "--only", "6", "--short", "--trials", "1"]
    result = run(*options, "--page", str(tmp_path / "page.md"))
    assert result.exit_code == 0, result.output
    assert "1 experiments" in result.output
    assert "findings do not hold in these results" in result.output
    frame = pl.read_parquet(tmp_path / "r" / "results.parquet")
    assert set(frame["span"]) == {"2016-02"}
    assert (tmp_path / "page.md").read_text().startswith("# Evaluation")
    again = run(*options, "--json")
    assert json.loads(again.stdout)["experiments"] == [6]


def test_choosing():
    assert [one.number for one in chosen_experiments([3, 9], False, None)] == [3, 9]
    assert len(chosen_experiments([], True, None)) == 9
    (one,) = chosen_experiments([1], False, 2)
    assert max(cell.trials[1] for cell in one.cells()) == 2

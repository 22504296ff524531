"""`python -m studies evaluate` from the command line, on made-up series."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from optstream.errors import ParameterError
from studies.__main__ import app


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

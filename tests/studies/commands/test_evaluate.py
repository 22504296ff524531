"""`python -m studies evaluate` from the command line, on made-up series."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from studies.__main__ import app


def run(*arguments: str):
    return CliRunner().invoke(app, ["evaluate", "--data", "simulated", "--processes", "1", *arguments])


@pytest.mark.nightly
def test_a_short_run_writes_and_prints_results(tmp_path):
    options = ["--into", str(tmp_path / "r"), "--only", "7", "--short", "--trials", "1"]
    result = run(*options)
    assert result.exit_code == 0, result.output
    assert "1 experiments" in result.output
    assert "behind under one guarantee" in result.output
    frame = pl.read_parquet(tmp_path / "r" / "results.parquet")
    assert set(frame["span"]) == {"2016-02"}
    again = run(*options, "--json")
    assert json.loads(again.stdout)["experiments"] == [7]

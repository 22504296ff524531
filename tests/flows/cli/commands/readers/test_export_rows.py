"""`optstream export`: a file in each format, and none is overwritten."""

from datetime import date

import polars as pl
import pytest
from typer.testing import CliRunner

from flows.cli.commands.readers.export_rows import app
from optstream.catalogue import publish, read_published, stage
from tests.optstream.catalogue.conftest import make_rows, make_statement

DAY = date(2016, 2, 1)


@pytest.fixture
def folder(tmp_path):
    """One published day."""
    statement = make_statement(DAY)
    publish(tmp_path / "published", [(stage(make_rows(DAY), statement), statement)], lambda _: "h1")
    return tmp_path / "published"


def test_files_hold_what_is_published_and_none_is_overwritten(folder, tmp_path):
    def call(*words):
        return CliRunner().invoke(app, [str(folder), *words])

    output = tmp_path / "rows"
    assert call("--output", f"{output}.parquet", "--as", "parquet").exit_code == 0
    assert pl.read_parquet(f"{output}.parquet").equals(read_published(folder))
    again = call("--output", f"{output}.parquet")
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert call("--output", f"{output}.csv", "--nodes", "84,FR", "--from", str(DAY), "--daily").exit_code == 0
    assert (tmp_path / "rows.csv").read_text().splitlines()[1].startswith("2016-02-01,84,FR,1,4,64.0,16.0,")
    assert call("--output", f"{output}.sdmx.csv", "--as", "sdmx-csv").exit_code == 0
    assert (tmp_path / "rows.sdmx.csv").read_text().startswith("STRUCTURE,STRUCTURE_ID,ACTION,")

"""A night of cells of two dimensions and one of the same cells in a tree: both are published."""

import polars as pl
import pytest

from optstream.catalogue.reading.read import read_published
from studies.benchmarks.harness.measure import in_process
from studies.benchmarks.million import DAY
from studies.benchmarks.nights import two_dimensions
from studies.benchmarks.nights.two_dimensions import main, prepared


@pytest.mark.slow
@pytest.mark.parametrize("margin", [True, False])
def test_a_night_is_released(tmp_path, margin):
    settings = prepared(tmp_path, 4, 3, "Laplace", margin=margin)
    found, _ = in_process("-m", "studies.benchmarks.million", "--night", str(settings.file))
    assert {"ingest", "draw", "estimate", "publish"} <= set(found["seconds"])
    rows = read_published(settings.published_folder)
    assert set(rows["node"]) == set(settings.tree_of(DAY).nodes)
    assert rows.filter(pl.col("node") == "s0").is_empty() != margin


def test_it_prints_a_row_a_step_beside_the_limit(capsys, monkeypatch):
    seconds = {"draw": 2.5, "whole night": 4.0}
    monkeypatch.setattr(two_dimensions, "measured", lambda *_, margin: seconds if margin else {"draw": 1.0})
    main(["--regions", "2", "--sectors", "3"])
    _, _, draw, whole = capsys.readouterr().out.splitlines()
    assert draw.split() == ["draw", "2.50", "1.00"]
    assert whole.split() == ["whole", "night", "4.00", "0.00", "10"]

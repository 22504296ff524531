"""`optstream combine`: three published folders, of which one is the sum of the others."""

import json
from datetime import date

import numpy as np
import polars as pl
import pytest

from optstream import read_published
from optstream.catalogue.reading.combine import combine_published
from optstream.errors import ParameterError
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION, Installation, released_by

pytestmark = pytest.mark.slow

DAY = date(2016, 6, 1)
LAPLACE = released_by("Laplace")
NAMES = ("load", "industry", "households")


def published(folder, name, factor):
    """A stream whose readings are these many times the simulated ones, released."""
    (folder / name).mkdir()
    (folder / name / "optstream.toml").write_text(LAPLACE.replace("two-regions", name))
    one = Installation(folder / name)
    one.simulate(DAY)
    for file in (folder / name / "dumps").rglob("*.parquet"):
        pl.read_parquet(file).with_columns(pl.col("load_mw") * factor).write_parquet(file)
    one.release(DAY)
    return one


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("combined")
    for name, factor in zip(NAMES, (1.0, 0.25, 0.75), strict=True):
        published(made, name, factor)
    return made


def words(folder, *names, output="combined.csv"):
    total, *parts = (str(folder / name / "published") for name in names)
    given = [word for one in parts for word in ("--part", one)]
    return ["combine", "--total", total, *given, "--output", str(folder / output)]


def test_the_total_is_the_sum_and_every_one_errs_less(folder):
    result = invoke(*words(folder, *NAMES))
    assert result.exit_code == 0, result.output
    assert "of what was missing from the sum took load 33%, industry 33%, households 33%" in result.output
    rows = pl.read_csv(folder / "combined.csv")
    assert rows.height == 3 * 48
    load, *parts = (rows[name].to_numpy() for name in NAMES)
    assert np.allclose(load, sum(parts))
    by_node = {node: rows.filter(pl.col("node") == node) for node in ("FR", "11", "84")}
    for name in NAMES:
        assert np.allclose(by_node["FR"][name], by_node["11"][name] + by_node["84"][name])
        own = read_published(folder / name / "published").sort("date", "step", "node")
        assert rows[f"{name}_published"].to_list() == own["load_mw"].to_list()
        # a third of what is missing: sqrt(2/3) of the noise
        ratio = rows[f"{name}_noise_se"] / own["load_mw_noise_se"]
        assert np.allclose(ratio, np.sqrt(2 / 3), rtol=1e-3)
        # every step is measured: the noise is all of the error
        assert rows[f"{name}_se"].to_list() == rows[f"{name}_noise_se"].to_list()
        assert own["load_mw_se"].to_list() == own["load_mw_noise_se"].to_list()
    assert "_se is empty" not in result.output


def test_as_parquet_and_for_machines_and_nothing_is_overwritten(folder):
    asked = words(folder, *NAMES, output="combined.parquet")
    document = json.loads(invoke(*asked, "--json").output)
    assert document["rows"] == pl.read_parquet(folder / "combined.parquet").height == 144
    assert 0.5 < document["disagreement"] < 1.5
    result = invoke(*asked)
    assert result.exit_code == 2
    assert "is there already" in " ".join(result.output.replace("│", " ").split())


def test_where_a_stream_states_no_error_it_is_said(folder):
    """Points with lines between them: what the lines get wrong is no noise, and may go together."""
    (folder / "sampled").mkdir()
    (folder / "sampled" / "optstream.toml").write_text(CONFIGURATION.replace("two-regions", "sampled"))
    sampled = Installation(folder / "sampled")
    sampled.simulate(DAY)
    sampled.release(DAY)
    result = invoke(*words(folder, "sampled", "industry", "households", output="sampled.csv"))
    assert "_se is empty: sampled err by more than noise" in " ".join(result.output.split())
    rows = pl.read_csv(folder / "sampled.csv")
    assert rows["industry_se"].null_count() == rows["sampled_se"].null_count() > 0
    assert rows["industry_noise_se"].null_count() == 0


def test_a_sum_that_is_none_is_told(folder):
    """The load in place of a part of it: the sum is missed by far more than noise."""
    result = invoke(*words(folder, "industry", "load", "households", output="wrong.csv"))
    assert result.exit_code == 1
    assert "is the total in the parts' unit, and their sum?" in result.output


def test_what_cannot_be_combined_is_refused(folder):
    places = [folder / name / "published" for name in NAMES]
    with pytest.raises(ParameterError, match="at least two parts"):
        combine_published(places[0], places[1:2])
    with pytest.raises(ParameterError, match="'load' is given twice"):
        combine_published(places[0], [places[0], places[1]])
    with pytest.raises(ParameterError, match="no day of this span"):
        combine_published(places[0], places[1:], date(2017, 1, 1))
    assert invoke(*words(folder, *NAMES, output="combined.txt")).exit_code == 2

"""A release as a table, as a chart, and as a notebook shows it."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from optstream import AggregationTree, Hierarchical, Laplace, ParameterError, PrivacyModel, simulated_noise

TREE = AggregationTree.from_parents({"all": None, "A": "all", "<b>": "all"})
MODEL = PrivacyModel("1", 4, 10)
READINGS = np.full((2, 4), 50.0)


@pytest.fixture(scope="module")
def release():
    mechanism = Hierarchical(Laplace(MODEL), TREE, ["1/2", "1/2"])
    return mechanism.release(READINGS, noise=simulated_noise(1), first_step=8)


def test_a_frame_has_a_row_for_each_node_and_step(release):
    frame = release.to_frame()
    columns = ["step", "node", "parent", "level", "value", "standard_error", "noise_standard_error"]
    assert frame.columns == columns
    assert frame["step"].to_list() == [8, 9, 10, 11] * 3
    assert frame["node"].to_list() == [name for name in TREE.nodes for _ in range(4)]
    assert frame["parent"].to_list() == [None] * 4 + ["all"] * 8
    assert frame["level"].to_list() == [0] * 4 + [1] * 8
    assert frame["value"].to_numpy().reshape(3, 4).tolist() == release.values.tolist()


def test_plain_series_are_numbered():
    frame = Laplace(MODEL).release(READINGS, noise=simulated_noise(1)).to_frame()
    assert frame.columns == ["step", "node", "value", "standard_error", "noise_standard_error"]
    assert frame["node"].to_list() == ["0"] * 4 + ["1"] * 4


def test_total_errors_and_bands_of_counts_are_columns(release):
    errors = np.full((3, 4), 2.0)
    frame = replace(release, standard_errors=errors, bands=(errors, errors + 1)).to_frame()
    assert frame.select("standard_error", "lowest", "highest").row(0) == (2, 2, 3)


def test_a_chart_has_bands_only_where_total_errors_are_known(release):
    guessed = replace(release, standard_errors=None)
    assert [layer["mark"]["type"] for layer in guessed.plot().to_dict()["layer"]] == ["line"]
    known = replace(release, standard_errors=np.full((3, 4), 2.0)).plot(["A"]).to_dict()
    assert [layer["mark"]["type"] for layer in known["layer"]] == ["area", "line"]
    (rows,) = known["datasets"].values()
    assert {row["node"] for row in rows} == {"A"}
    assert rows[0]["highest"] - rows[0]["value"] == pytest.approx(3.92)


def test_a_chart_of_no_node_or_without_altair_is_refused_in_words(release, monkeypatch):
    with pytest.raises(ParameterError, match="names of the release's nodes; got 'B'"):
        release.plot(["A", "B"])
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ParameterError, match=r"needs Altair: pip install 'optstream\[plots\]'"):
        release.plot()


def test_a_notebook_shows_what_it_cost_and_no_name_as_markup(release):
    shown = release._repr_html_()
    assert "epsilon 1 in any window. Simulated noise: never to be published." in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown

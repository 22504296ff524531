"""A release as a table, as a chart, and as a notebook shows it."""

from dataclasses import replace

import numpy as np
import pytest

from optstream import AggregationTree, Hierarchical, Laplace, PrivacyModel, simulated_noise

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


def test_total_errors_and_bands_of_counts_are_columns(release):
    errors = np.full((3, 4), 2.0)
    frame = replace(release, standard_errors=errors, bands=(errors, errors + 1)).to_frame()
    assert frame.select("standard_error", "lowest", "highest").row(0) == (2, 2, 3)


def test_a_notebook_shows_what_it_cost_and_no_name_as_markup(release):
    shown = release._repr_html_()
    assert "epsilon 1 in any window. Simulated noise: never to be published." in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown

"""The benchmark of HistoryInformed's cost runs all its parts, and its trees have the sizes that it says."""

import pytest

from studies.benchmarks import history_cost
from studies.benchmarks.history_cost import main
from studies.benchmarks.inputs.fixture import tree_of


@pytest.mark.parametrize("count", [3, 13, 125, 1000])
def test_trees_have_so_many_nodes(count):
    tree = tree_of(count)
    assert len(tree.nodes) == count
    assert tree.n_levels == (2 if count <= 13 else 3)
    assert len({int(tree.depths[leaf]) for leaf in tree.leaf_indices}) == 1


def test_it_prints_a_row_for_each_size_and_the_year(capsys, monkeypatch):
    monkeypatch.setattr(history_cost, "HISTORY", 9)
    monkeypatch.setattr(history_cost.year, "__defaults__", (3,))
    main(["--nodes", "3", "20", "--epsilon", "0.01", "--year"])
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[1:3]] == ["3", "20"]
    assert printed[3].startswith("a year of 13 nodes: ")


def test_a_tree_too_small_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--nodes", "2"])
    assert "--nodes must be at least 3" in capsys.readouterr().err

"""The tree of regions: its order, its sums, and what is refused."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import AggregationTree, Lattice
from optstream.stream.lattice import Margin

RAGGED = {"b1": "b", "world": None, "a": "world", "b": "world", "b2": "b"}


def test_nodes_stand_root_first_and_in_input_order_within_a_level():
    tree = AggregationTree.from_parents(RAGGED)
    assert tree.nodes == ("world", "a", "b", "b1", "b2")
    assert tree.leaves == ("a", "b1", "b2")
    assert tree.levels == (range(0, 1), range(1, 3), range(3, 5))
    assert tree.leaves_below.tolist() == [3, 1, 2, 1, 1]


def test_every_node_is_the_sum_of_its_children():
    tree = AggregationTree.from_parents(RAGGED)
    leaves = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    totals = tree.add_up(leaves)
    assert totals.dtype == np.int64
    assert np.array_equal(totals[:, 2], leaves[:, 1] + leaves[:, 2])
    assert np.array_equal(totals[:, 0], leaves.sum(axis=1))
    for empty in (leaves[..., :0], leaves[:0]):
        assert tree.add_up(empty).shape == (*empty.shape[:-2], len(tree.nodes), empty.shape[-1])
    with pytest.raises(ParameterError, match="3 leaves"):
        tree.add_up(leaves[:, :2])


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": None, "b": None}, "exactly one root.*'a', 'b'"),
        ({"a": "b", "b": "a"}, "exactly one root.*none"),
        ({"r": None, "a": "b", "b": "a"}, "cycle through 'a', 'b'"),
        ({"r": None, "a": "x"}, "parent 'x' of node 'a'"),
        ({"": None}, "not empty"),
        ({}, "exactly one root"),
        ([("a", None)], r"given as \{node: parent\}, such as .*; got list"),
    ],
)
def test_what_is_not_a_tree_is_refused(parents, message):
    with pytest.raises(ParameterError, match=message):
        AggregationTree.from_parents(parents)


def test_equal_trees_are_one_key_in_every_process_and_others_are_not():
    tree, again = AggregationTree.from_parents(RAGGED), AggregationTree.from_parents(dict(RAGGED))
    renamed = AggregationTree.from_parents({"x": None, "a": "x", "b": "x", "b1": "b", "b2": "b"})
    assert hash(tree) == hash(tree.parents), "texts hash otherwise in every process"
    assert {tree: 1, renamed: 2}[again] == 1
    assert tree != renamed
    assert hash(renamed) == hash(tree), "of one shape: distinguished by their names"


TREE = AggregationTree.from_parents(
    {"all": None, "A": "all", "B": "all", "A-x": "A", "A-y": "A", "B-x": "B", "B-y": "B"}
)
CELLS = {"x": ["A-x", "B-x"], "y": ["A-y", "B-y"]}
LATTICE = Lattice.of_tree(TREE, "sector", CELLS)


def test_leaves_add_up_both_ways():
    cells = np.array([[1, 10], [2, 20], [3, 30], [4, 40]])
    found = LATTICE.add_up(cells)
    assert found[:, 0].tolist() == [10, 3, 7, 1, 2, 3, 4, 4, 6]
    assert LATTICE.heights.tolist() == [2, 1, 1, 0, 0, 0, 0, 1, 1]
    assert LATTICE.depths.tolist() == [0, 1, 1, 2, 2, 2, 2, 3, 3]
    assert found.dtype == cells.dtype
    assert np.array_equal(found[:, 1], 10 * found[:, 0])
    assert np.array_equal(LATTICE.add_up(np.stack([cells, cells]))[1], found)
    for parts, wholes in LATTICE.sums:
        sums = np.zeros_like(found)
        np.add.at(sums, wholes, found[parts])
        assert np.array_equal(sums[np.unique(wholes)], found[np.unique(wholes)])


def test_a_sum_may_take_nodes_of_tree_or_margin_that_share_no_leaf():
    assert LATTICE.leaves_in(["x"]).tolist() == [1, 0, 1, 0]
    assert LATTICE.leaves_in(["x", "A-y"]).tolist() == [1, 1, 1, 0]
    for nodes in (["x", "A"], ["all", "y"], []):
        with pytest.raises(ParameterError):
            LATTICE.leaves_in(nodes)
    with pytest.raises(ParameterError, match="'nobody'"):
        LATTICE.leaves_in(["nobody"])


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"x": ["A-x", "B-x"], "y": ["A-y"]}, "all leaves of the hierarchy and nothing else; see 'B-y'"),
        ({"x": ["A-x", "B-x"], "y": ["A-y", "B-y", "B-x"]}, "each leaf in one node; 'B-x' is in 'y'"),
        ({"x": ["A-x", "B-x", "B"], "y": ["A-y", "B-y"]}, "nothing else; see 'B'"),
        ({"A": ["A-x", "B-x"], "y": ["A-y", "B-y"]}, "must not be in the tree; got 'A'"),
        ({**CELLS, "z": []}, "each node of a margin must have a leaf"),
    ],
)
def test_what_is_no_partition_is_refused(cells, says):
    with pytest.raises(ParameterError, match=says):
        Lattice.of_tree(TREE, "sector", cells)


def test_codes_of_cells_that_are_not_there_must_stand_for_one_node_too():
    """Rows of (a, b-c), which is no cell, would be counted as those of (a-b, c)."""
    tree = AggregationTree.from_parents({"all": None, "a": "all", "a-b": "all"})
    cells = (("a", ("c", "x")), ("a-b", ("c", "b-c")))
    with pytest.raises(ParameterError, match="'a-b-c' would be used twice"):
        Margin("sector", ("c", "b-c", "x"), cells).on(tree)

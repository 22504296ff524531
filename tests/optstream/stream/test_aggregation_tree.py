"""The tree of regions: its order, its sums, and what is refused."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import AggregationTree

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
    assert hash(renamed) == hash(tree), "of one shape: told apart by their names"

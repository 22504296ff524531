"""The tree of regions, its margins, and hierarchies valid from a date: sums, order, what is refused."""

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import AggregationTree, DatedHierarchy, Lattice, TreeChange
from optstream.stream.lattice import Margin

RAGGED = {"b1": "b", "world": None, "a": "world", "b": "world", "b2": "b"}
TREE = AggregationTree.from_parents(
    {"all": None, "A": "all", "B": "all", "A-x": "A", "A-y": "A", "B-x": "B", "B-y": "B"}
)
CELLS = {"x": ["A-x", "B-x"], "y": ["A-y", "B-y"]}
LATTICE = Lattice.of_tree(TREE, "sector", CELLS)
LEAVES = (("21", "EAST"), ("42", "EAST"), ("53", "WEST"), ("84", "WEST"))
FR = (("FR", None), ("EAST", "FR"), ("WEST", "FR"), *LEAVES)
FIRST, SECOND = date(2016, 7, 1), date(2017, 1, 1)
DAY = timedelta(days=1)


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


def after(**operations):
    return DatedHierarchy(FR, (TreeChange(FIRST, **operations),)).tree_of(FIRST)


def test_the_day_before_has_the_old_tree_and_the_day_itself_the_new_one():
    hierarchy = DatedHierarchy(
        FR, (TreeChange(FIRST, renamed={"42": "44"}), TreeChange(SECOND, removed=("21",)))
    )
    oldest = AggregationTree.from_parents(dict(FR))
    assert hierarchy.tree_of(date.min) == hierarchy.tree_of(FIRST - DAY) == oldest
    assert hierarchy.tree_of(FIRST).leaves == ("21", "44", "53", "84")
    assert hierarchy.tree_of(SECOND - DAY) == hierarchy.tree_of(FIRST)
    assert hierarchy.tree_of(SECOND).leaves == hierarchy.tree_of(date.max).leaves == ("44", "53", "84")
    assert hierarchy.leaves() == ("21", "42", "53", "84", "44")


def test_parts_stand_where_the_split_unit_stood_and_a_merged_unit_where_its_first_did():
    split = after(split={"42": {"42N": Fraction(2), "42S": Fraction(1)}})
    assert split.leaves == ("21", "42N", "42S", "53", "84")
    assert [split.nodes[split.parents[split.nodes.index(one)]] for one in ("42N", "42S")] == ["EAST", "EAST"]
    assert after(merged={"28": ("53", "84")}).leaves == ("21", "42", "28")


def test_units_come_go_and_move_with_their_parents_of_the_new_day():
    tree = after(added={"SOUTH": "FR", "94": "SOUTH"}, moved={"53": "SOUTH"}, removed=("21",))
    assert tree.nodes == ("FR", "EAST", "WEST", "SOUTH", "42", "53", "84", "94")
    assert dict(tree.parents_by_name())["53"] == "SOUTH"


@pytest.mark.parametrize(
    ("operations", "rule"),
    [
        ({"renamed": {"43": "44"}}, "renamed: '43' is no unit on the day before"),
        ({"split": {"42": {"a": Fraction(1)}}}, "split: '42' must become at least two units"),
        ({"split": {"EAST": {"a": Fraction(1), "b": Fraction(1)}}}, "only leaves can be split"),
        ({"merged": {"28": ("21", "53")}}, "merged: '28' must be made of units below one parent"),
        ({"merged": {"28": ("21",)}}, "merged: '28' must be made of at least two units"),
        ({"added": {"21": "EAST"}}, "'21' is a code that was used before"),
        ({"renamed": {"42": "21"}, "removed": ("21",)}, "'21' is a code that was used before"),
        ({"renamed": {"42": "44"}, "removed": ("42",)}, "'42' is named twice"),
        ({"renamed": {"42": "44"}, "added": {"44": "EAST"}}, "'44' begins twice"),
        ({"removed": ("42",), "moved": {"42": "WEST"}}, "moved: '42' ends on that day"),
        ({"added": {"94": "SOUTH"}}, "the parent 'SOUTH' of node '94' is not itself a node"),
        ({"added": {"94": "42"}}, "'42' is a leaf, and nothing can be put below it: split it"),
        ({"removed": ("53", "84")}, "'WEST' keeps nothing below it and would become a leaf"),
        ({"removed": ("FR",)}, "a hierarchy must have exactly one root"),
        ({"moved": {"EAST": "WEST"}}, "the hierarchy must keep its 3 levels"),
        ({"moved": {"EAST": "21"}}, "'21' is a leaf"),
        ({}, "it must change something"),
    ],
)
def test_what_is_no_change_is_refused_by_change_code_and_rule(operations, rule):
    with pytest.raises(ParameterError) as caught:
        after(**operations)
    assert str(caught.value).startswith("change 1, from 2016-07-01: ")
    assert rule in str(caught.value)


def test_more_than_can_be_worked_out_is_refused():
    many = [
        TreeChange(FIRST + number * DAY, renamed={f"x{number}": f"x{number + 1}"}) for number in range(1001)
    ]
    wide = [*FR, ("x0", "EAST"), *((f"y{number}", "EAST") for number in range(5000))]
    with pytest.raises(ParameterError, match="at most 1000 changes are allowed; got 1001"):
        DatedHierarchy((*FR, ("x0", "EAST")), tuple(many))
    with pytest.raises(ParameterError, match=r"must be at most 4,194,304.*got 900 times 5,908"):
        DatedHierarchy(tuple(wide), tuple(many[:900]))


def test_a_list_that_goes_on_from_another_holds_its_hashes():
    one = TreeChange(FIRST, split={"84": {"a": Fraction(2), "b": Fraction(1)}})
    short, long = DatedHierarchy(FR, (one,)), DatedHierarchy(FR, (one, TreeChange(SECOND, removed=("21",))))
    assert long.hashes[:2] == short.hashes
    assert short.hashes[:1] == DatedHierarchy(FR).hashes
    others = [
        replace(one, valid_from=FIRST + DAY),
        replace(one, split={"84": {"a": Fraction(1), "b": Fraction(1)}}),
        replace(one, split={"84": {"b": Fraction(1), "a": Fraction(2)}}),
    ]
    assert len({DatedHierarchy(FR, (each,)).hashes[-1] for each in (one, *others)}) == 4


def test_the_map_over_several_changes_says_what_each_leaf_was():
    hierarchy = DatedHierarchy(
        FR,
        (
            TreeChange(FIRST, renamed={"42": "44"}, split={"84": {"a": Fraction(2), "b": Fraction(1)}}),
            TreeChange(SECOND, merged={"ab": ("a", "b")}, added={"94": "WEST"}, removed=("21",)),
        ),
    )
    half_way = hierarchy.map_between(FIRST - DAY, FIRST)
    assert dict(zip(half_way.after.leaves, half_way.leaves, strict=True)) == {
        "21": {"21": 1}, "44": {"42": 1}, "53": {"53": 1},
        "a": {"84": Fraction(2, 3)}, "b": {"84": Fraction(1, 3)},
    }  # fmt: skip
    whole = hierarchy.map_between(FIRST - DAY, SECOND)
    assert dict(zip(whole.after.leaves, whole.leaves, strict=True)) == {
        "44": {"42": 1}, "53": {"53": 1}, "ab": {"84": 1}, "94": {},
    }  # fmt: skip
    assert dict(whole.nodes) == {"FR": "FR", "EAST": "EAST", "WEST": "WEST", "44": "42", "53": "53"}
    assert whole.with_new == {"94"}
    joins = TreeChange(SECOND + DAY, merged={"m": ("53", "94")}, renamed={"44": "45"})
    joined = AggregationTree.from_parents(joins.applied(dict(whole.after.parents_by_name())))
    assert whole.then(joins, joined).with_new == {"m"}
    assert not whole.is_renaming
    assert not half_way.is_renaming


def test_random_lists_of_changes_keep_every_total():
    random = np.random.default_rng(26)
    for _ in range(200):
        hierarchy = _random_hierarchy(random)
        between = hierarchy.map_between(date(2015, 1, 1), date(2030, 1, 1))
        parts = [share for one in between.leaves for share in one.items()]
        total = {leaf: sum((own for name, own in parts if name == leaf), Fraction(0)) for leaf, _ in parts}
        assert max(total.values()) <= 1
        if not any(change.removed for change in hierarchy.changes):
            assert total == dict.fromkeys(between.before.leaves, 1)
        assert {one.code for one in hierarchy.units()} == set(hierarchy.nodes())


def _random_hierarchy(random):
    changes, codes = [], iter(range(1000))
    for number in range(4):
        tree = DatedHierarchy(FR, tuple(changes)).periods[-1][1]
        leaf, other = random.permutation(tree.leaves)[:2].tolist()
        parent = dict(tree.parents_by_name())
        new, second = (f"n{next(codes)}" for _ in range(2))
        choices = [
            {"renamed": {leaf: new}}, {"split": {leaf: {new: Fraction(3), second: Fraction(1)}}},
            {"merged": {new: (leaf, other)}}, {"added": {new: parent[leaf]}}, {"removed": (leaf,)},
            {"moved": {leaf: parent[other]}},
        ]  # fmt: skip
        try:
            change = TreeChange(FIRST + number * DAY, **choices[random.integers(len(choices))])
            DatedHierarchy(FR, (*changes, change))
        except ParameterError:
            continue
        changes.append(change)
    return DatedHierarchy(FR, tuple(changes))

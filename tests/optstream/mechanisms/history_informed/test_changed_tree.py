"""What was learned goes over a change of the tree: exact sums, learned shares, levels that stay sure."""

from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from optstream.history.blocks import BlockHistory
from optstream.history.changed_tree import carried_levels, guesses, refined
from optstream.stream import DatedHierarchy, TreeChange

OLDEST = (("FR", None), ("N", "FR"), ("S", "FR"), ("1", "N"), ("2", "N"), ("3", "S"), ("4", "S"))
CHANGED = date(2016, 7, 1)
STEPS, SINCE = 48, 480
LEAVES = np.array([[10.0, 20.0], [100.0, 200.0], [1000.0, 2000.0], [10000.0, 20000.0]])
"""Of the oldest leaves, over two blocks."""


def mapped(**operations):
    """The map of one change, and the blocks of the days before it at the current nodes, by node."""
    hierarchy = DatedHierarchy(OLDEST, (TreeChange(CHANGED, **operations),))
    between = hierarchy.map_between(CHANGED - timedelta(days=1), CHANGED)
    sums = between.before.add_up(LEAVES)
    levels = {
        str(level): {
            "mechanism": "HistoryInformed",
            "history": BlockHistory(
                np.array([0, 24]), np.array([2, 2]), np.array([5.0, 5.0]), sums[nodes.start : nodes.stop]
            ).to_document(),
        }
        for level, nodes in enumerate(between.before.levels)
    }
    carried = carried_levels(levels, between)
    histories = {
        level: BlockHistory.from_document(carried[str(level)]["history"], len(nodes))
        for level, nodes in enumerate(between.after.levels)
    }
    return between, histories


def by_node(between, histories):
    rows = np.concatenate([histories[level].sums for level in range(between.after.n_levels)])
    return {node: row.tolist() for node, row in zip(between.after.nodes, rows, strict=True)}


def test_noise_goes_on_at_the_root_alone():
    """Of several nodes some customer may be in another one now, and would meet two orders in a window."""
    hierarchy = DatedHierarchy(OLDEST, (TreeChange(CHANGED, merged={"12": ["1", "2"]}),))
    between = hierarchy.map_between(CHANGED - timedelta(days=1), CHANGED)
    carried = carried_levels({str(level): {"order": {"order": 0}} for level in range(3)}, between)
    assert [bool(carried[str(level)]) for level in range(3)] == [True, False, False]


def test_a_new_unit_is_a_typical_neighbour_until_it_is_measured_and_then_as_it_is():
    between, histories = mapped(added={"5": "S"})
    guessed = guesses(between, SINCE)
    assert [one["at"] for one in guessed] == [[2, 4]]
    before = by_node(between, refined(guessed, histories))
    assert before["5"] == [5500, 11000]  # half of its sibling
    assert before["FR"] == [11110 + 5500, 22220 + 11000]
    # measured since: a tenth of its neighbours together
    new = {level: _with_block(history, between, level) for level, history in histories.items()}
    after = by_node(between, refined(guessed, new))
    assert after["5"][0] == pytest.approx(1100, rel=0.05)
    assert after["S"][0] == pytest.approx(11000 + after["5"][0])


def _with_block(history, between, level):
    """The same history with one large, precise block of the days since."""
    leaves = np.array([[10.0], [100.0], [1000.0], [10000.0], [1100.0]]) * 100
    nodes = between.after.levels[level]
    sums = between.after.add_up(leaves)[nodes.start : nodes.stop]
    return history.joined(BlockHistory(np.array([SINCE]), np.array([2]), np.array([1.0]), sums))


def test_shares_of_parts_are_learned_and_add_up_to_the_whole():
    between, histories = mapped(split={"2": {"2a": Fraction(1), "2b": Fraction(1)}})
    guessed = guesses(between, SINCE)
    assert [one["share"] for one in guessed] == [0.5, 0.5]
    sums = {0: [[11110.0]], 1: [[110.0], [11000.0]], 2: [[10.0], [80.0], [20.0], [1000.0], [10000.0]]}
    new = {
        level: history.joined(
            BlockHistory(np.array([SINCE]), np.array([2]), np.array([0.1]), np.array(sums[level]))
        )
        for level, history in histories.items()
    }
    found = by_node(between, refined(guessed, new))
    assert found["2a"][0] == pytest.approx(80, rel=0.05)
    assert found["2a"][0] + found["2b"][0] == pytest.approx(100)
    assert found["N"][:2] == [110, 220]


def test_a_part_that_was_merged_before_it_was_measured_is_counted_once():
    """Of a split with one part merged with a neighbour since, no row says how large that part was."""
    changes = (
        TreeChange(CHANGED, split={"2": {one: Fraction(1) for one in ("2a", "2b", "2c")}}),
        TreeChange(CHANGED + timedelta(days=1), merged={"12": ("1", "2c")}),
    )
    between = DatedHierarchy(OLDEST, changes).map_between(date(2016, 6, 30), date(2016, 7, 2))
    guessed = guesses(between, SINCE)
    assert {between.after.nodes[between.after.levels[one["at"][0]][one["at"][1]]] for one in guessed} == {
        "2a",
        "2b",
    }
    carried = np.array([[100.0], [60.0], [60.0], [1000.0], [1000.0]])
    order = [between.after.leaves.index(one) for one in ("12", "2a", "2b", "3", "4")]
    sums = np.zeros((5, 2))
    sums[order, 0] = carried[:, 0]
    sums[order, 1] = [300.0, 90.0, 30.0, 1000.0, 1000.0]
    history = BlockHistory(np.array([0, SINCE]), np.array([2, 2]), np.array([0.1, 0.1]), sums)
    found = refined(guessed, {2: history})[2].sums[order, 0]
    assert found == pytest.approx([100, 90, 30, 1000, 1000], rel=0.01)

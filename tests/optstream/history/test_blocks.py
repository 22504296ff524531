"""Histories of blocks: their documents, joint noise, selection and retention, and changes of the tree."""

import json
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.history.blocks import BlockHistory, n_series_of, packed, unpacked
from optstream.history.changed_tree import carried_levels, guesses, refined
from optstream.history.filter import MOST_FITTED, NEAR_DAYS, around, in_sight, latest
from optstream.measurement.blocks import BLOCKS, measure_blocks
from optstream.measurement.ordered import draw_ordered
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, StepSpend
from optstream.stream import DatedHierarchy, PrivatePeriod, TreeChange

OLDEST = (("FR", None), ("N", "FR"), ("S", "FR"), ("1", "N"), ("2", "N"), ("3", "S"), ("4", "S"))
CHANGED = date(2016, 7, 1)
STEPS, SINCE = 48, 480
LEAVES = np.array([[10.0, 20.0], [100.0, 200.0], [1000.0, 2000.0], [10000.0, 20000.0]])
"""Of the oldest leaves, over two blocks."""


def history_of(n, n_series=2):
    sums = np.rint(np.random.default_rng(0).normal(600, 50, (n_series, n)))
    return BlockHistory(3 * np.arange(n), np.full(n, 2), np.full(n, 3.0), sums)


@pytest.mark.parametrize("most", [2**31 - 1, 2**31, 2**52])
def test_packed_sums_are_the_same_whole_numbers(most):
    sums = np.array([[most, -most, 0.0], [1.0, -(2.0**31), 7.0]])
    document = json.loads(json.dumps(packed(sums)))
    assert document["kind"] == ("<i4" if most < 2**31 else "<i8")
    assert np.array_equal(unpacked(document), sums)
    assert unpacked(packed(np.zeros((3, 0)))).shape == (3, 0)


def test_a_history_survives_its_document_and_that_of_a_version_that_wrote_lists():
    history = history_of(5, n_series=3)
    written = history.to_document()
    lists = {**written, "sums": history.sums.astype(int).tolist()}
    for document in (written, lists):
        assert BlockHistory.from_document(document, 3).to_document() == written
        assert n_series_of(document) == 3
    assert BlockHistory.from_document(None, 3).sums.shape == (3, 0)
    with pytest.raises(ParameterError, match="the state is of 3 series; the period has 2"):
        BlockHistory.from_document(written, 2)
    with pytest.raises(ParameterError, match="<i4 or <i8"):
        unpacked({"rows": 1, "kind": "object", "base64": ""})


def test_each_block_of_joint_noise_keeps_its_own_variance():
    """Groups of two blocks and of three; independent noise has one scale, and a day without blocks none."""
    parts = [range(2 * at, 2 * at + 2) for at in range(5)]
    period = PrivatePeriod.from_values(np.zeros((2, 10)), resolution=Fraction(1), first_step=20)
    steps = StepSpend(0, BLOCKS, 20, (1,) * 10, Fraction(6), 1)
    plain = measure_blocks(period, parts, steps, simulated_noise(1))
    assert BlockHistory.of(plain).scales.tolist() == [6] * 5
    # as earlier versions stored it
    variances = 6.0**2 * np.array([[12, 12, 20, 20, 20]] * 2) / 3
    answers = replace(plain.answers, variances=(variances,))
    history = BlockHistory.of(
        replace(plain, answers=answers, choices=plain.choices | {"group_sizes": [2, 3]})
    )
    assert np.allclose(2 * history.scales**2, variances[0])
    assert history.starts.tolist() == [20, 22, 24, 26, 28]
    assert history.like_group.tolist() == [2, 2, 3, 3, 3]
    assert BlockHistory.from_document(history.to_document()).like_group.tolist() == [2, 2, 3, 3, 3]
    joint = OrderSpend(0, BLOCKS, 20, 10, tuple(parts), Fraction(6), 1, 2, 2, 10, 5, 1, 20)
    for some in (parts, []):
        spend = replace(joint, parts=tuple(some))
        ordered = draw_ordered(spend, lambda first, n_steps: parts, "here", None, simulated_noise(1))
        history = BlockHistory.of(measure_blocks(period, some, spend, simulated_noise(1), ordered))
        assert history.like_group.tolist() == [4] * len(some)


def test_blocks_are_joined_in_time_and_the_latest_are_kept():
    first, second = history_of(10).between(0, 12), history_of(10).between(12, 30)
    assert second.joined(first).to_document() == history_of(10).to_document()
    assert latest(history_of(10), 3).starts.tolist() == [21, 24, 27]


def random_history(generator, steps_per_day, n_days=80):
    rates = generator.choice([0.0, 0.1, 0.5, 1.0], n_days, p=[0.1, 0.2, 0.3, 0.4])
    starts = np.flatnonzero(generator.random(n_days * steps_per_day) < np.repeat(rates, steps_per_day))
    return BlockHistory(starts, np.ones_like(starts), np.ones(starts.size), np.zeros((1, starts.size)))


def test_what_is_forgotten_is_no_part_of_any_window_of_the_last_days():
    """Brute force over histories with gaps; the latest blocks alone would not do."""
    generator, missed = np.random.default_rng(5), 0
    for steps_per_day in (24, 48, 96) * 10:
        history = random_history(generator, steps_per_day)
        kept, too_few = in_sight(history, steps_per_day), latest(history, MOST_FITTED)
        assert kept.n_blocks < history.n_blocks
        wide = replace(history, sums=np.zeros((300, history.n_blocks)))  # another level of the same tree
        assert np.array_equal(in_sight(wide, steps_per_day).starts, kept.starts)
        newest = int(history.starts[-1]) // steps_per_day
        for day in range(newest - NEAR_DAYS, newest + 1):
            steps = range(day * steps_per_day, (day + 1) * steps_per_day)
            asked = around(history, steps, MOST_FITTED).starts
            assert np.array_equal(around(kept, steps, MOST_FITTED).starts, asked)
            missed += not np.array_equal(around(too_few, steps, MOST_FITTED).starts, asked)
    assert missed


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


def measured_since(between, histories, leaves, scale):
    """The same histories with a block of the days since, of these leaves."""
    sums, block = between.after.add_up(leaves[:, None]), (np.array([SINCE]), np.array([2]), np.array([scale]))
    return {
        level: history.joined(BlockHistory(*block, sums[list(between.after.levels[level])]))
        for level, history in histories.items()
    }


def by_node(between, histories):
    rows = np.concatenate([histories[level].sums for level in range(between.after.n_levels)])
    return {node: row.tolist() for node, row in zip(between.after.nodes, rows, strict=True)}


def test_noise_goes_on_at_the_root_alone():
    """Of several nodes some customer may be in another one now, and would meet two orders in a window."""
    between, _ = mapped(merged={"12": ["1", "2"]})
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
    since = measured_since(between, histories, np.array([1000.0, 10_000, 100_000, 1_000_000, 110_000]), 1.0)
    after = by_node(between, refined(guessed, since))
    assert after["5"][0] == pytest.approx(1100, rel=0.05)
    assert after["S"][0] == pytest.approx(11000 + after["5"][0])


def test_shares_of_parts_are_learned_and_add_up_to_the_whole():
    between, histories = mapped(split={"2": {"2a": Fraction(1), "2b": Fraction(1)}})
    guessed = guesses(between, SINCE)
    assert [one["share"] for one in guessed] == [0.5, 0.5]
    since = measured_since(between, histories, np.array([10.0, 80, 20, 1000, 10_000]), 0.1)
    found = by_node(between, refined(guessed, since))
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
    leaves = between.after.levels[2]
    assert {between.after.nodes[leaves[place]] for _, place in (one["at"] for one in guessed)} == {"2a", "2b"}
    order = [between.after.leaves.index(one) for one in ("12", "2a", "2b", "3", "4")]
    sums = np.zeros((5, 2))
    sums[order] = [[100, 300], [60, 90], [60, 30], [1000, 1000], [1000, 1000]]
    history = BlockHistory(np.array([0, SINCE]), np.array([2, 2]), np.array([0.1, 0.1]), sums)
    found = refined(guessed, {2: history})[2].sums[order, 0]
    assert found == pytest.approx([100, 90, 30, 1000, 1000], rel=0.01)

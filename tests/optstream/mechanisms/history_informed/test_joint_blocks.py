"""HistoryInformed with joint noise: what is drawn, who may have it, on a tree, beside another plan."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.measurement.blocks import DriftingBlocks
from optstream.mechanisms import HistoryInformed
from optstream.noise import joint_noise, simulated_noise
from optstream.privacy import JointSpend, StepSpend, worst_window
from tests.optstream.mechanisms.history_informed.joint_streams import (
    DAYS,
    MODEL,
    draw,
    informed,
    on_tree,
    spends_of,
)

# what is drawn


@pytest.mark.parametrize("blocks", [(16, 1), (6, 4)])
def test_whole_blocks_are_drawn_in_groups_of_the_scale_that_is_charged(blocks):
    mechanism = informed(blocks, n_nodes=3, declared_leaves=1)
    (measured,) = draw(mechanism, [48], n_series=3)
    (spend,) = measured.spends
    assert isinstance(spend, JointSpend)
    assert spend.n_nodes == 3
    assert {len(part) for part in spend.parts} == {blocks[1]}
    assert spend.scale == Fraction(mechanism.joint_groups.worst * 1000)
    assert measured.choices["blocks"] == [[part.start, part.stop] for part in spend.parts]
    assert measured.choices["group_sizes"] == [len(group) for group in spend.groups]
    exact, noise = 100_000 * blocks[1], simulated_noise([1, 0])
    sizes = sorted({len(group) for group in spend.groups}, reverse=True)
    for size in sizes:
        columns = [
            column
            for column, of in enumerate(len(group) for group in spend.groups for _ in group)
            if of == size
        ]
        drawn = joint_noise(noise, float(spend.scale), size, 3 * len(columns) // size)
        assert np.array_equal(measured.answers.values[0][:, columns], drawn.reshape(3, -1) + exact)
    variances = measured.answers.variances[0][0]
    own = [len(group) for group in spend.groups for _ in group]
    assert np.allclose(variances, [float(spend.scale) ** 2 * (n + 1) * (n + 2) / 3 for n in own])


def test_independent_noise_is_drawn_as_before_joint_noise_came():
    """The same bytes, whatever would say for whom noise might be joint; midnight's pieces among them."""
    (plain,) = draw(HistoryInformed(MODEL, 6, 4, days=DAYS), [48], first_step=48, n_series=2)
    rule = DriftingBlocks(48, 6, 4, 1).parts(48, 48)
    assert plain.choices["blocks"] == [[part.start, part.stop] for part in rule]
    lengths = np.array([len(part) for part in rule])
    by_hand = 100_000 * lengths + simulated_noise([1, 48]).discrete_laplace(24_000.0, (2, len(rule)))
    assert np.array_equal(plain.answers.values[0], by_hand)
    for given in (
        {"noise": "laplace", "n_nodes": 2, "declared_leaves": 1},
        {"noise": None, "n_nodes": 2, "declared_leaves": None},
        {"noise": None, "n_nodes": 2, "declared_leaves": 1, "lengths": None},
    ):
        (again,) = draw(informed((6, 4), **given), [48], first_step=48, n_series=2)
        assert again.answers.values[0].tobytes() == plain.answers.values[0].tobytes()
        assert again.spends == plain.spends


# on a tree


def test_all_levels_share_their_groups_where_customers_stay_and_the_root_alone_has_them_elsewhere():
    for mechanism, kinds in (
        (on_tree(), [JointSpend, JointSpend]),
        (on_tree(declared_leaves=None), [JointSpend, StepSpend]),
        (on_tree(noise="laplace"), [StepSpend, StepSpend]),
    ):
        drawn = draw(mechanism, [48, 46, 50, 48], n_series=2)
        for one in drawn:
            assert [type(spend) for spend in one.spends] == kinds
            assert len({str(part.choices["blocks"]) for part in one.parts}) == 1
            assert [spend.weights for spend in one.spends[:1]] == [one.spends[1].weights]
        assert worst_window(spends_of(drawn), 48).epsilon <= mechanism.epsilon <= 1
        release = mechanism.estimate(drawn[-1])
        assert np.allclose(release.values[0], release.values[1:].sum(axis=0))
        assert np.isfinite(release.standard_errors).all()
    groups = [spend.groups for spend in on_tree().plan(48)]
    assert groups[0] == groups[1]
    assert [spend.n_nodes for spend in on_tree().plan(48)] == [1, 2]


@pytest.mark.parametrize("declared", [1, None])
@pytest.mark.parametrize("blocks", [(16, 1), (6, 4)])
def test_weeks_on_a_tree_cost_no_window_more_than_epsilon(blocks, declared):
    days = [48] * 50
    days[12], days[36] = 46, 50
    mechanism = on_tree(blocks, ["1/3", "2/3"], declared_leaves=declared)
    drawn = draw(mechanism, days, n_series=2)
    cost = worst_window(spends_of(drawn), 48).epsilon
    assert 1 - Fraction(1, 10**9) < cost <= mechanism.epsilon <= 1
    # all that was planned was measured
    at = 0
    for one, length in zip(drawn, days, strict=True):
        planned = mechanism.levels[0][1].groups(length, at)
        assert one.spends[0].groups == planned
        at += length


# beside days of another plan


def test_a_late_day_and_a_restatement_see_what_is_around_them():
    mechanism = on_tree()
    around = [*draw(mechanism, [48], n_series=2), *draw(mechanism, [48], first_step=96, n_series=2)]
    late = draw(mechanism, [48], mechanism.recall(spends_of(around)), 48, n_series=2)
    known = [*spends_of(around), *spends_of(late)]
    assert worst_window(known, 48).epsilon <= 1
    assert late[0].spends[0].groups == mechanism.levels[0][1].groups(48, 48)
    again = draw(mechanism, [48], mechanism.recall(known), 48, n_series=2)
    assert worst_window([*known, *spends_of(again)], 48).epsilon <= 1


def test_a_day_whose_groups_were_cut_by_another_rule_is_charged_as_it_was_drawn():
    """A stream that says another length later: the same blocks, other groups."""
    before, after = on_tree(lengths=(48,)), on_tree(lengths=(24, 48))
    first = draw(before, [48, 48], n_series=2)
    second = draw(after, [48, 24], after.recall(spends_of(first)), 96, n_series=2)
    assert worst_window([*spends_of(first), *spends_of(second)], 48).epsilon <= 1

"""HistoryInformed with joint noise: what is drawn, who may have it, on a tree, beside another plan."""

import numpy as np

from optstream.privacy import JointSpend, StepSpend, worst_window
from tests.optstream.mechanisms.history_informed.joint_streams import (
    draw,
    on_tree,
    spends_of,
)

# what is drawn


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

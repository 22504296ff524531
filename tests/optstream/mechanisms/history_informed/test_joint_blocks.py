"""Half-hourly days by HistoryInformed with joint noise, for its tests."""

from datetime import date
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement.blocks import DriftingBlocks
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.mechanisms import blocks as block_groups
from optstream.mechanisms import history_informed as module
from optstream.mechanisms.blocks import BlockGroups
from optstream.privacy import JointSpend, PrivacyModel, StepSpend, worst_window
from optstream.privacy.rules import cut_evenly
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays
from tests.optstream.mechanisms.planned_days import drawn, plans, spends_of

HALF_HOURS = (46, 48, 50)
MODEL = PrivacyModel("1", 48, 1)
DAYS = PublicDays.from_date(date(2025, 1, 6), 48)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
HALVES = ["1/2", "1/2"]


def informed(blocks=(16, 1), model=MODEL, lengths=HALF_HOURS, **given):
    """Joint noise, by default on one series; blocks: how many a window has, and their steps."""
    given = {
        "noise": "joint",
        "period_lengths": lengths,
        "n_nodes": 1,
        "days": DAYS,
        "relearn_days": 0,
    } | given
    return HistoryInformed(model, *blocks, **given)


def on_tree(blocks=(16, 1), shares=HALVES, noise=None, declared_leaves=1, **given):
    pattern = informed(blocks, noise=noise, n_nodes=None, declared_leaves=declared_leaves, **given)
    return HistoryInformedTree(pattern, TREE, shares)


def draw(mechanism, lengths, state=None, first_step=0, n_series=1):
    return drawn(mechanism, np.full((n_series, sum(lengths)), 100.0), lengths, state, first_step)


LAYOUTS = [
    # by day every layout drifts by one, and one of them by all
    pytest.param(blocks, drift, marks=[] if drift == 1 or blocks == (2, 2) else [pytest.mark.nightly])
    for blocks in ((2, 1), (3, 1), (2, 2), (3, 2), (5, 1), (2, 3))
    for drift in (0, 1, 3)
]


@pytest.mark.parametrize(("blocks", "drift"), LAYOUTS)
def test_the_worst_window_is_that_of_the_accountant_over_periods_in_any_order(blocks, drift):
    """Every order of three days, which is all that a window touches, of three lengths, from every place of
    the cycle: brute force over plans.
    """
    window, lengths = 7, (4, 5, 6)
    rule = DriftingBlocks(window, *blocks, drift)
    for size in {Fraction(number, n) for number in range(2, 5) for n in range(1, number)}:
        groups = BlockGroups(rule, size, lengths)
        found = 0
        for first_step in range(rule.cycle):
            for days in product(lengths, repeat=3):
                spends, at = [], first_step
                for n_steps in days:
                    cut = groups.of(at, n_steps)
                    if cut:
                        spends.append(JointSpend(0, "blocks", at, n_steps, cut, Fraction(1), 1, 1))
                    at += n_steps
                if spends:
                    found = max(found, worst_window(spends, window).epsilon)
        assert found == groups.worst


@pytest.mark.parametrize("seed", range(4))
def test_no_window_costs_more_over_random_plans_days_and_gaps(seed):
    dice = Random(seed)
    for _ in range(6):
        window = dice.choice([6, 11, 24, 48])
        count = dice.randint(2, max(window // 4, 2))
        blocks = (count, dice.randint(1, window // count))
        lengths = tuple(sorted(dice.sample(range(window // 2, 2 * window), 3)))
        model = PrivacyModel("1", window, 1)
        size = Fraction(dice.randint(5, 16), 4)
        try:
            mechanism = informed(
                blocks, model, lengths, group_size=size, days=PublicDays(dice.randint(1, 50))
            )
        except ParameterError:
            continue  # no period has two whole blocks
        days = [dice.choice([*lengths, -dice.choice(lengths)]) for _ in range(8)]
        spends = plans(mechanism, [lengths[0], *days], dice.randrange(300))
        assert worst_window(spends, window).epsilon <= mechanism.epsilon <= 1


class Short(BlockGroups):
    """The broken twin: a window that cuts two groups is charged for one of them."""

    @property
    def worst(self):
        return super().worst - self.blocks.length


class Pieces(BlockGroups):
    """The broken twin: the count of Lemma 16 for single steps, with pieces of blocks at midnight."""

    @property
    def worst(self):
        return ((self.blocks.n_blocks - 2) // int(self.size) + 2) * self.blocks.length

    def _cut(self, first_step, n_steps):
        parts = self.blocks.parts(first_step, n_steps)
        return cut_evenly(parts, max(len(parts) // int(self.size), 1))


@pytest.mark.parametrize(("twin", "blocks"), [(Short, (16, 1)), (Short, (6, 4)), (Pieces, (5, 4))])
def test_broken_twins_cost_more_than_they_say(twin, blocks, monkeypatch):
    mechanism = informed(blocks, group_size=2)
    honest = worst_window(plans(mechanism, [48] * 60), 48).epsilon
    assert honest <= mechanism.epsilon <= 1
    monkeypatch.setattr(module, "chosen_groups", block_groups.chosen_groups.__wrapped__)
    monkeypatch.setattr(block_groups, "BlockGroups", twin)
    broken = informed(blocks, group_size=2)
    assert broken.epsilon <= 1
    assert worst_window(plans(broken, [48] * 60), 48).epsilon > 1


def test_a_window_of_whole_blocks_costs_no_more_than_the_count_says():
    """With every group of g blocks or more: T = floor((m - 2) / g) + 2 groups in full."""
    for count, length in [(16, 1), (12, 2), (6, 4), (5, 4), (4, 8)]:
        for least in range(2, count):
            rule = DriftingBlocks(48, count, length, 1)
            groups = BlockGroups(rule, Fraction(least), HALF_HOURS)
            if all(n // max(k, 1) >= least for n, k in groups.numbers):
                assert groups.worst <= ((count - 2) // least + 2) * length


def test_all_levels_share_their_groups_where_customers_stay_and_the_root_alone_has_them_elsewhere():
    for mechanism, kinds in (
        (on_tree(), [JointSpend, JointSpend]),
        (on_tree(declared_leaves=None), [JointSpend, StepSpend]),
        (on_tree(noise="laplace"), [StepSpend, StepSpend]),
    ):
        days = draw(mechanism, [48, 46, 50, 48], n_series=2)
        for one in days:
            assert [type(spend) for spend in one.spends] == kinds
            assert len({str(part.choices["blocks"]) for part in one.parts}) == 1
            assert [spend.weights for spend in one.spends[:1]] == [one.spends[1].weights]
        assert worst_window(spends_of(days), 48).epsilon <= mechanism.epsilon <= 1
        release = mechanism.estimate(days[-1])
        assert np.allclose(release.values[0], release.values[1:].sum(axis=0))
        assert np.isfinite(release.standard_errors).all()
    groups = [spend.groups for spend in on_tree().plan(48)]
    assert groups[0] == groups[1]
    assert [spend.n_nodes for spend in on_tree().plan(48)] == [1, 2]


# next to days of another plan


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

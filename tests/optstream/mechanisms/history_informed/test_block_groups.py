"""Groups of whole blocks: no window costs more than epsilon, by brute force, and broken twins do."""

from fractions import Fraction
from itertools import product
from random import Random

import pytest

from optstream.errors import ParameterError
from optstream.measurement.blocks import DriftingBlocks
from optstream.mechanisms import blocks as block_groups
from optstream.mechanisms import history_informed as module
from optstream.mechanisms.blocks import BlockGroups
from optstream.privacy import JointSpend, PrivacyModel, worst_window
from optstream.privacy.rules import cut_evenly
from optstream.stream.public_days import PublicDays
from tests.optstream.mechanisms.history_informed.joint_streams import HALF_HOURS, informed
from tests.optstream.mechanisms.planned_days import plans

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
    """The broken twin: the count of Lemma 16 for single steps, and pieces of blocks at midnight beside it."""

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

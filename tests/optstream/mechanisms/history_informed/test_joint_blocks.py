"""HistoryInformed with joint noise: groups of whole blocks, no window above epsilon, who may have which."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement.drifting_blocks import DriftingBlocks
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace
from optstream.mechanisms.history_informed import block_groups
from optstream.mechanisms.history_informed import block_plan as module
from optstream.mechanisms.history_informed.block_groups import BlockGroups, best_groups
from optstream.noise import joint_noise, simulated_noise
from optstream.privacy import JointSpend, PrivacyModel, StepSpend, worst_window
from optstream.privacy.rules.groups import cut_evenly, worst_of_cycle
from optstream.stream import AggregationTree, Measured
from optstream.stream.public_days import PublicDays

HALF_HOURS = (46, 48, 50)
MODEL = PrivacyModel("1", 48, 1)
DAYS = PublicDays.from_date(date(2025, 1, 6), 48)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
HALVES = ["1/2", "1/2"]


def informed(blocks=(16, 1), model=MODEL, lengths=HALF_HOURS, **given):
    """Joint noise on one series, unless told otherwise; blocks: how many a window has, and their steps."""
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


def plans(mechanism, lengths, first_step=0):
    """Days in a row, each planned by itself, as if nothing else were spent; a negative length is a gap."""
    found, at = [], first_step
    for length in lengths:
        if length > 0:
            found += mechanism.plan(length, at)
        at += abs(length)
    return found


def draw(mechanism, lengths, state=None, first_step=0, n_series=1):
    drawn, at = [], first_step
    for length in lengths:
        values = np.full((n_series, length), 100.0)
        drawn.append(mechanism.measure(values, noise=simulated_noise([1, at]), first_step=at, state=state))
        state, at = drawn[-1].state, at + length
    return drawn


def spends_of(drawn):
    return [spend for one in drawn for spend in one.spends]


# what a window costs


LAYOUTS = [
    # by day every layout drifts by one, and one of them by all
    pytest.param(blocks, drift, marks=[] if drift == 1 or blocks == (2, 2) else [pytest.mark.nightly])
    for blocks in ((2, 1), (3, 1), (2, 2), (3, 2), (5, 1), (2, 3))
    for drift in (0, 1, 3)
]


@pytest.mark.parametrize(("blocks", "drift"), LAYOUTS)
def test_the_worst_window_is_that_of_the_accountant_over_periods_in_any_order(blocks, drift):
    """Every order of four days of three lengths, from every place of the cycle: brute force over plans."""
    window, lengths = 7, (4, 5, 6)
    rule = DriftingBlocks(window, *blocks, drift)
    for size in {Fraction(number, n) for number in range(2, 5) for n in range(1, number)}:
        groups = BlockGroups(rule, size, lengths)
        found = 0
        for first_step in range(rule.cycle):
            for days in product(lengths, repeat=4):
                spends, at = [], first_step
                for n_steps in days:
                    cut = groups.of(at, n_steps)
                    if cut:
                        spends.append(JointSpend(0, "blocks", at, n_steps, cut, Fraction(1), 1, 1))
                    at += n_steps
                if spends:
                    found = max(found, worst_window(spends, window).epsilon)
        assert found == groups.worst


def test_where_a_layout_hangs_on_its_first_step_not_every_order_is_possible():
    """Two places that follow each other: the dear layout is at one of them, and no window meets it twice."""
    dear, cheap = ((range(1),), (range(1, 2),)), ((range(2),),)
    layouts = [[(1, (dear[0],))], [(1, ())]]
    assert worst_of_cycle(layouts, 2) == 1
    assert worst_of_cycle([[(1, (dear[0],))]], 2) == 2
    assert worst_of_cycle([[(2, cheap)], [(2, cheap)]], 3) == 3


@pytest.mark.parametrize("blocks", [(48, 1), (16, 1), (12, 2), (12, 4), (6, 4), (8, 1)])
def test_a_year_of_half_hours_costs_no_window_more_than_epsilon(blocks):
    days = [48] * 365
    days[86], days[300] = 46, 50
    mechanism = informed(blocks)
    cost = worst_window(plans(mechanism, days, 7), 48).epsilon
    assert 1 - Fraction(1, 10**9) < cost <= mechanism.epsilon <= 1
    assert {type(spend) for spend in plans(mechanism, days[:3])} == {JointSpend}


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


@pytest.mark.parametrize("window", [2, 3, 4])
def test_the_plan_loses_exactly_what_it_is_charged(window):
    """Two days of four and five steps in pairs of blocks: every change of a window by -1, 0 or 1 units."""
    model = PrivacyModel("1", window, 1, resolution=1)
    for blocks in ((2, 1), (1, 2)) if window < 4 else ((2, 1), (2, 2), (1, 3)):
        rule = DriftingBlocks(window, *blocks)
        groups = BlockGroups(rule, Fraction(2), (4, 5))
        spends = [
            JointSpend(0, "blocks", at, n, groups.of(at, n), Fraction(groups.worst), model.alpha_units, 1)
            for at, n in ((0, 4), (4, 5))
        ]
        worst = 0
        for start in range(1 - window, 9):
            inside = [step for step in range(start, start + window) if 0 <= step < 9]
            for changes in product((-1, 0, 1), repeat=len(inside)):
                moved = dict(zip(inside, changes, strict=True))
                lost = 0
                for spend in spends:
                    for group in spend.groups:
                        sums = [sum(moved.get(spend.first_step + step, 0) for step in part) for part in group]
                        # Lemma 15, by enumeration in test_joint.py
                        lost += max(map(abs, sums)) / spend.scale
                worst = max(worst, lost)
        assert worst == worst_window(spends, window).epsilon <= 1


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
    module._joint_groups.cache_clear()
    monkeypatch.setattr(block_groups, "BlockGroups", twin)
    try:
        broken = informed(blocks, group_size=2)
        assert broken.epsilon <= 1
        assert worst_window(plans(broken, [48] * 60), 48).epsilon > 1
    finally:
        module._joint_groups.cache_clear()


def test_a_window_of_whole_blocks_costs_no_more_than_the_count_says():
    """With every group of g blocks or more: T = floor((m - 2) / g) + 2 groups in full."""
    for count, length in [(16, 1), (12, 2), (6, 4), (5, 4), (4, 8)]:
        for least in range(2, count):
            rule = DriftingBlocks(48, count, length, 1)
            groups = BlockGroups(rule, Fraction(least), HALF_HOURS)
            if all(n // max(k, 1) >= least for n, k in groups.numbers):
                assert groups.worst <= ((count - 2) // least + 2) * length


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


def test_a_stored_measurement_and_a_state_are_read_back():
    drawn = draw(informed(), [48, 48])
    for one in drawn:
        assert Measured.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()
    again = informed().rebuild(drawn)
    assert again["history"] == drawn[-1].state["history"]


def test_with_as_little_noise_estimates_come_nearer():
    """Sixteen single steps a window: 0.475 times the variance; six weeks, ten series, seeded."""
    values = np.full((10, 48), 5000.0) * (1 + 0.1 * np.sin(np.arange(48) * np.pi / 24))
    missed = {}
    for noise in ("joint", "laplace"):
        mechanism = informed(model=PrivacyModel("1/10", 48, 1), noise=noise, n_nodes=10, declared_leaves=1,
                             scale=5000.0)  # fmt: skip
        state, errors = None, []
        for day in range(28):
            release = mechanism.release(
                values, noise=simulated_noise([2, day]), first_step=48 * day, state=state
            )
            state = release.state
            errors.append(np.abs(release.values - values).mean())
        missed[noise] = np.mean(errors[14:])
    assert missed["joint"] < 0.9 * missed["laplace"]


# who has it


@pytest.mark.parametrize(
    ("unit", "n_nodes", "declared", "has_it"),
    [
        ("customer", 1, None, True),
        ("roaming", 1, None, True),
        ("customer", 2, 1, True),
        ("customer", 2, None, False),
        ("customer", 2, 2, False),
        ("roaming", 2, 1, False),
        ("customer", None, 1, False),
    ],
)
def test_noise_is_joint_only_where_a_lemma_allows_it(unit, n_nodes, declared, has_it):
    model = PrivacyModel("1", 48, 1, unit=unit)
    mechanism = informed(model=model, noise=None, n_nodes=n_nodes, declared_leaves=declared)
    (spend,) = mechanism.plan(48)
    assert isinstance(spend, JointSpend) == has_it
    if has_it:
        assert (spend.n_nodes, spend.leaves_changed, spend.stage) == (n_nodes, 1, "blocks")
    else:
        assert isinstance(spend, StepSpend)
        assert spend.scale == 16_000


def test_the_default_is_what_is_expected_to_err_less():
    assert informed((4, 4), noise=None).joint_groups is None
    assert informed((4, 4)).joint_groups.error >= 2 * 16**2
    assert informed((6, 4), noise=None).joint_groups.error < 2 * 24**2
    assert informed(noise=None, lengths=None).joint_groups is None


def test_no_other_size_of_groups_has_less_noise():
    for blocks in ((48, 1), (16, 1), (12, 2), (6, 4)):
        rule = DriftingBlocks(48, *blocks, 1)
        found = best_groups(rule, HALF_HOURS, Fraction(1000))
        for n_groups in range(1, blocks[0]):
            assert BlockGroups(rule, Fraction(blocks[0], n_groups), HALF_HOURS).error >= found.error * 0.97


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_nodes": 2}, r"on a level of 2 nodes is for customers whose .* one leaf: say so"),
        ({"blocks": (1, 4)}, "needs two measurements or more in every .* n_blocks is 1"),
        ({"model": PrivacyModel("1000", 48, 1, resolution=1)}, "a quarter of a group's measurements"),
        ({"lengths": ()}, "period_lengths must have at least one length"),
        ({"noise": "loud"}, 'noise must be "joint" or "laplace"'),
        ({"group_size": 1}, "group_size of HistoryInformed must be greater than 1; got 1"),
        ({"group_size": 2.5}, "group_size of HistoryInformed must be exact"),
    ],
)
def test_joint_noise_that_cannot_be_had_is_refused_when_planning(given, message):
    with pytest.raises(ParameterError, match=message):
        informed(**given)


def test_periods_of_other_lengths_are_refused_and_so_is_step_by_step():
    for n_steps in (1, 47, 96):
        with pytest.raises(ParameterError, match=f"46, 48, 50, and this period has {n_steps} steps"):
            informed().plan(n_steps)
    with pytest.raises(ParameterError, match="step by step there is"):
        informed().step(informed().start(), 3.0, noise=simulated_noise(1))
    with pytest.raises(ParameterError, match="n_nodes of HistoryInformed must be given"):
        informed(n_nodes=None).plan(48)


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
def test_a_year_on_a_tree_costs_no_window_more_than_epsilon(blocks, declared):
    days = [48] * 70
    days[20], days[50] = 46, 50
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


@pytest.mark.parametrize("declared", [1, None])
@pytest.mark.parametrize(
    "before",
    [
        lambda: Hierarchical(Laplace(MODEL), TREE, HALVES),
        lambda: on_tree(noise="laplace"),
        lambda: on_tree((6, 4)),
        lambda: on_tree((16, 1), ["9/10", "1/10"]),
        lambda: on_tree((2, 4), group_size=2, noise="joint"),
    ],
    ids=["Laplace", "independent", "longer blocks", "root first", "few"],
)
def test_after_another_plan_no_window_loses_more(before, declared):
    for n_before in (1, 2):
        first = draw(before(), [48] * n_before, n_series=2)
        mechanism = on_tree(declared_leaves=declared)
        state = mechanism.recall(spends_of(first), None)
        second = draw(mechanism, [48, 48, 48], state, 48 * n_before, n_series=2)
        assert worst_window([*spends_of(first), *spends_of(second)], 48).epsilon <= 1
        full = mechanism.levels[0][1].groups(48, 48 * (n_before + 2))
        assert second[2].spends[0].groups == full


def test_without_what_was_spent_some_change_of_plan_breaks_it():
    first = draw(on_tree((6, 4)), [48], n_series=2)
    second = draw(on_tree(), [48], first_step=48, n_series=2)
    assert worst_window([*spends_of(first), *spends_of(second)], 48).epsilon > 1


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


def test_a_mixed_trees_levels_weigh_blocks_alike():
    """Groups of five and of six beside Laplace noise at the leaves: no block is left out of the estimate."""
    mechanism = on_tree(declared_leaves=None, group_size=Fraction(5))
    drawn = draw(mechanism, [48] * 8, n_series=2)
    sizes = {len(group) for one in drawn for group in one.spends[0].groups}
    assert len(sizes) > 1
    release = mechanism.estimate(drawn[-1])
    # the values are constant: what is left is noise over some hundred blocks
    assert np.abs(release.values[1:] - 100.0).max() < 30
    assert replace(mechanism.pattern, noise="laplace").joint_groups is None

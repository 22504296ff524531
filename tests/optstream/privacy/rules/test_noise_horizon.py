"""Joint or Laplace noise by the price of a span: the same answer as a search for the scale of equal price."""

from dataclasses import replace
from fractions import Fraction

import pytest

from optstream import PrivacyModel
from optstream.mechanisms import HistoryInformed, HistoryInformedTree, Laplace
from optstream.mechanisms.history_informed import tree_figures
from optstream.privacy import JointSpend
from optstream.privacy.horizon import loss_over
from optstream.privacy.rules import Draws, Horizon, errs_less
from optstream.stream import AggregationTree

WINDOW, DELTA = 48, Fraction(1, 10**6)


def laplace(epsilon="1", **given):
    model = PrivacyModel(epsilon, WINDOW, 1)
    return Laplace(model, period_lengths=(WINDOW,), n_nodes=1, **given)


def span(days):
    return Horizon(WINDOW * days, DELTA)


def test_a_price_is_what_the_ledger_composes_of_the_plan():
    for mechanism in (laplace(noise="joint"), laplace(noise="laplace")):
        groups = mechanism.joint_groups
        charged = mechanism.model.pure_epsilon
        draws = (
            Draws(charged / WINDOW, Fraction(1))
            if groups is None
            else Draws(charged / groups.worst, groups.per_step)
        )
        spends = [spend for day in range(3) for spend in mechanism.plan(WINDOW, WINDOW * day)]
        found = loss_over(spends, DELTA, adaptive=False, window=None)
        assert span(3).price(draws) == pytest.approx(found.epsilon, rel=1e-3)


def test_noise_whose_scale_may_not_grow_errs_no_less():
    draws = Draws(Fraction(1, 4), Fraction(1))
    assert [errs_less(ratio, draws, draws, None) for ratio in (0.9, 1.0, 1.1)] == [False, False, True]
    assert not errs_less(1.0, replace(draws, epsilon=Fraction(1, 5)), draws, span(1))


def test_a_window_prefers_joint_noise_and_a_year_laplace_noise():
    assert laplace().joint_groups is not None
    assert laplace("10", horizon=span(1)).joint_groups is not None
    assert laplace("10", horizon=span(7)).joint_groups is None
    assert laplace(horizon=span(365)).joint_groups is None


@pytest.mark.parametrize(("ratio", "days"), [(1.2, 1), (1.6, 3), (2.5, 7), (3.5, 7)])
def test_it_is_the_noise_that_errs_less_at_the_scale_of_equal_price(ratio, days):
    joint, plain, horizon = (
        Draws(Fraction(1, 4), Fraction(3, WINDOW)),
        Draws(Fraction(1, 16), Fraction(1, 3)),
        span(days),
    )
    low, high = 0.25, 8.0
    for _ in range(12):  # by what the scale grows until the span costs as much as with Laplace noise
        middle = (low * high) ** 0.5
        low, high = (middle, high) if horizon.price(joint, middle) > horizon.price(plain) else (low, middle)
    assert horizon.prefers_joint(ratio, joint, plain) == (low < ratio)


def test_blocks_are_chosen_for_the_noise_that_they_will_have():
    model = PrivacyModel("0.1", WINDOW, 1)
    given = {"n_blocks": 16, "block_length": 1, "scale": 5000.0, "period_lengths": (WINDOW,), "n_nodes": 1}
    window, month = (HistoryInformed(model, **given, horizon=one) for one in (None, span(30)))
    assert window.joint_groups is not None
    assert window.figures([1]).groups(16, 1) == [window.joint_groups]
    assert month.joint_groups is None
    assert month.figures([1]).groups(16, 1) == [None]
    # what was asked for is not compared
    assert replace(month, noise="joint").joint_groups == window.joint_groups


def test_each_level_of_a_tree_expects_the_noise_that_it_draws():
    """Half of epsilon each: at 5 three days have joint noise where it is whole, and none at its halves."""
    tree = AggregationTree(("FR", *map(str, range(12))), (-1, *([0] * 12)))
    given = {"scale": 5000.0, "n_blocks": 32, "block_length": 1, "period_lengths": (46, 48, 50)}
    pattern = HistoryInformed(PrivacyModel("5", WINDOW, 10), **given, declared_leaves=1, horizon=span(3))
    mechanism, figures = HistoryInformedTree(pattern, tree, ["1/2", "1/2"]), tree_figures(pattern, tree)
    assert figures.groups(32, 1) != [None]
    expected = [noise.sizes != ((1, 1.0),) for noise in figures.noises((32, 1), [0.5, 0.5])]
    assert expected == [isinstance(spend, JointSpend) for spend in mechanism.plan(48, 0)] == [False, False]

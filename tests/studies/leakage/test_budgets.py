"""Budgets that keep total leakage at alpha, checked by the leakage that they cause."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.leakage import constant_budget, exact_budgets, supremum, total_leakage

alphas = st.floats(0.01, 60)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.data(), alphas)
def test_a_constant_budget_never_exceeds_alpha_and_none_larger_would_do(chains, data, alpha):
    known = {"backward": data.draw(chains.matrices), "forward": data.draw(chains.matrices)}
    epsilon = constant_budget(alpha, **known)
    assert 0 <= epsilon <= alpha
    assert (total_leakage(np.full(400, epsilon), **known) <= alpha * (1 + 1e-12)).all()
    more = epsilon * (1 + 1e-6) + 1e-9
    ends = supremum(known["backward"], more) + supremum(known["forward"], more) - more
    assert ends > alpha or epsilon == alpha


@settings(max_examples=80, deadline=None)
@given(st.data(), alphas, st.integers(2, 60))
def test_exact_budgets_attain_alpha_at_every_step(chains, data, alpha, n_steps):
    known = {"backward": data.draw(chains.matrices), "forward": data.draw(chains.matrices)}
    budgets = exact_budgets(alpha, **known)
    leakage = total_leakage(budgets.series(n_steps), **known)
    np.testing.assert_allclose(leakage, alpha, rtol=1e-10)
    assert 0 <= budgets.middle <= min(budgets.first, budgets.last) * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("known", [np.eye(3), np.eye(2)[::-1]])
def test_what_is_never_forgotten_leaves_no_constant_budget(known):
    """Both ways identity: any split of alpha over the ends is exact; over endless time no constant does."""
    assert constant_budget(2, backward=known, forward=known) == 0
    budgets = exact_budgets(2, backward=known, forward=known)
    assert (budgets.first, budgets.middle, budgets.last) == pytest.approx((1, 0, 1), abs=1e-9)


def test_who_knows_nothing_is_kept_at_alpha_each_step():
    assert constant_budget(0.7, backward=None, forward=None) == 0.7
    budgets = exact_budgets(0.7, backward=None, forward=None)
    assert (budgets.first, budgets.middle, budgets.last) == pytest.approx((0.7, 0.7, 0.7), rel=1e-12)
    one_way = exact_budgets(1, backward=[[0.8, 0.2], [0, 1]], forward=None)
    assert one_way.first == pytest.approx(1)
    left = 1 - math.log(0.8 * math.expm1(1) + 1)
    assert (one_way.middle, one_way.last) == pytest.approx((left, left))
